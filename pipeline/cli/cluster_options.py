"""Where tiles are computed: in this process, on a local Dask cluster, or on a scheduler by address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any, TypeVar

import click

from gramline.pipeline.cli.job_file.file import JobFile, either
from gramline.pipeline.cli.terminal.notation import in_bytes
from gramline.pipeline.cli.terminal.stopping import defer_signals
from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.executors.connect import connect, quiet
from gramline.pipeline.executors.dask import DaskExecutor

F = TypeVar("F", bound=Callable[..., Any])
OF_A_SCHEDULER = ("tls_ca", "tls_cert", "tls_key", "insecure_plain_text")


def cluster_options(command: F) -> F:
    """Adds the options of `executor_from`."""
    for option in reversed(
        [
            click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler, tls://host:8786 or tcp://host:8786."),
            click.option("--workers", type=click.IntRange(1), help="Local worker processes [default: one per core]."),
            click.option("--threads", type=click.IntRange(1), help="Threads per worker [default: 1]."),
            click.option(
                "--memory-limit", callback=in_bytes, metavar="BYTES", help="Memory of each worker, such as 2GiB."
            ),
            click.option("--tls-ca", metavar="FILE", help="Certificate authority of a tls:// scheduler."),
            click.option("--tls-cert", metavar="FILE", help="Certificate shown to a tls:// scheduler."),
            click.option("--tls-key", metavar="FILE", help="Key of that certificate."),
            click.option(
                "--insecure-plain-text",
                is_flag=True,
                default=None,
                help="Allow a tcp:// scheduler on a network. Dangerous: anyone who reaches its port runs code as you.",
            ),
            click.option("--inline/--cluster", default=None, help="Compute in this process, without Dask."),
        ]
    ):
        command = option(command)
    return command


@contextmanager
def executor_from(job: JobFile, **options: Any) -> Iterator[Executor]:
    """The executor that the options and the job file describe together; a local cluster ends with it."""
    settings = options | {key: either(options[key], setting) for key, setting in asdict(job.cluster).items()}
    if settings.pop("inline"):
        if settings["scheduler"] is not None and options["scheduler"] is not None:
            raise InputError("--inline computes in this process and --scheduler elsewhere; choose one of them")
        _refuse_ignored(options, ("workers", *OF_A_SCHEDULER), "with --inline, which computes in this process")

        yield InlineExecutor(settings["threads"])
        return

    quiet()
    address = settings.pop("scheduler")
    if address is not None and options["workers"]:
        raise InputError("--workers starts a local cluster and --scheduler uses one that runs; choose one of them")
    if address is None:
        _refuse_ignored(options, OF_A_SCHEDULER, "without --scheduler ADDRESS")
    # Never from a job file, which may be a stranger's.
    settings["insecure_plain_text"] = bool(options["insecure_plain_text"])
    with ExitStack() as stack:
        try:
            with defer_signals():
                client = stack.enter_context(connect(address, dashboard=find_spec("bokeh") is not None, **settings))
        except ClusterError as error:
            # Nothing has begun: an address where nobody answers is wrong input, not a job that failed.
            raise InputError(error.problem, advice=error.advice) from error
        yield DaskExecutor(client, insecure_plain_text=settings["insecure_plain_text"])


def _refuse_ignored(options: dict[str, Any], names: tuple[str, ...], where: str) -> None:
    """An option that would change nothing is a mistake; not so in a job file, which may be made for several places."""
    for name in names:
        if options[name]:
            raise InputError(f"--{name.replace('_', '-')} has no effect {where}; leave it out")
