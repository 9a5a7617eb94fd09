"""Where tiles are computed: in this process, on a local Dask cluster, or on a scheduler by address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from gramline.pipeline.cli.job_file.file import JobFile
from gramline.pipeline.cli.job_file.options import certificate_options, table_option, threads_option, together
from gramline.pipeline.cli.terminal.stopping import defer_signals
from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.executors.connect import connect, quiet
from gramline.pipeline.executors.dask import DaskExecutor

OF_A_SCHEDULER = ("tls_ca", "tls_cert", "tls_key")
cluster_options = together(
    table_option(
        "cluster.scheduler",
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler, tls://host:8786 or tcp://host:8786.",
    ),
    table_option("cluster.workers", "--workers", help="Local worker processes [default: one per core]."),
    threads_option,
    table_option("cluster.memory_limit", "--memory-limit", help="Memory of each worker, such as 2GiB."),
    certificate_options,
    table_option("cluster.inline", "--inline/--cluster", help="Compute in this process, without Dask."),
)


@contextmanager
def executor_from(job: JobFile) -> Iterator[Executor]:
    """The executor that the options and the job file describe together; a local cluster ends with it."""
    cluster, insecure = job.cluster, job.given.insecure_plain_text
    if cluster.inline:
        if "scheduler" in job.given.of("cluster"):
            raise InputError("--inline computes in this process and --scheduler elsewhere; choose one of them")
        _refuse_ignored(job, ("workers", *OF_A_SCHEDULER), "with --inline, which computes in this process")
        yield InlineExecutor(cluster.threads)
        return

    quiet()
    if cluster.scheduler is None:
        _refuse_ignored(job, OF_A_SCHEDULER, "without --scheduler ADDRESS")
    elif "workers" in job.given.of("cluster"):
        raise InputError("--workers starts a local cluster and --scheduler uses one that runs; choose one of them")
    with ExitStack() as stack:
        try:
            with defer_signals():
                client = connect(
                    cluster.scheduler,
                    workers=cluster.workers,
                    threads=cluster.threads,
                    memory_limit=cluster.memory_limit,
                    tls_ca=cluster.tls_ca,
                    tls_cert=cluster.tls_cert,
                    tls_key=cluster.tls_key,
                    dashboard=find_spec("bokeh") is not None,
                    insecure_plain_text=insecure,
                )
                stack.enter_context(client)
        except ClusterError as error:
            # Nothing has begun: an address where nobody answers is wrong input, not a job that failed.
            advice = error.advice if cluster.scheduler else "give it fewer --workers, or compute --inline"
            raise InputError(error.problem, advice=advice) from error
        yield DaskExecutor(client, insecure_plain_text=insecure)


def _refuse_ignored(job: JobFile, keys: tuple[str, ...], where: str) -> None:
    """An option that would change nothing is a mistake; not so in a job file, which may be made for several places."""
    ignored = [key for key in keys if key in job.given.of("cluster")]
    if job.given.insecure_plain_text:
        ignored.append("insecure_plain_text")
    if ignored:
        raise InputError(f"--{ignored[0].replace('_', '-')} has no effect {where}; leave it out")
