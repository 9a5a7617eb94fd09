"""Where the tasks of a command run: a scheduler that is named, a local cluster, or this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

from gramline.pipeline.cli.job_file.file import JobFile
from gramline.pipeline.cli.terminal.output import say_notes
from gramline.pipeline.cli.terminal.stopping import defer_signals
from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.executors.connect import connect, quiet
from gramline.pipeline.executors.dask import DaskExecutor

OF_A_SCHEDULER = ("tls_ca", "tls_cert", "tls_key")
NOTHING_TO_DO = "nothing was left to compute there"
HERE = "this training runs in this process"


@dataclass
class Workplace:
    """What gives the executor of a command to whoever needs it, and why nobody did where that is so."""

    open: Callable[[], AbstractContextManager[Executor]]
    named: Executor | None = None  # on a scheduler that was named: it has been reached
    why_unused: str = NOTHING_TO_DO

    def n_threads(self, otherwise: int) -> int:
        """Of the cluster that was reached; `otherwise` for one that is started when it is needed."""
        return otherwise if self.named is None else self.named.n_threads


@contextmanager
def workplace(job: JobFile, listener: Listener = silent) -> Iterator[Workplace]:
    """A scheduler that is named is reached at once, or the command ends here; a local cluster starts when it is needed.

    Where no task was sent to a scheduler that was named, the command says so at its end, and why.
    """
    _refuse_contradictions(job)
    if job.cluster.scheduler is None or job.cluster.inline:
        yield Workplace(partial(executor_from, job, listener))
        return
    with executor_from(job, listener) as executor:
        place = Workplace(lambda: nullcontext(executor), executor)
        yield place
        if isinstance(executor, DaskExecutor) and not executor.n_sent:
            say_notes([f"the scheduler at {job.cluster.scheduler} was reached but not used: {place.why_unused}"])


def here_unless_asked(job: JobFile) -> JobFile:
    """Of a command that is rarely worth a cluster of its own: it runs in this process unless somebody asks."""
    cluster = job.cluster
    if "inline" in job.given.of("cluster") or cluster.scheduler is not None or cluster.workers is not None:
        return job
    return replace(job, cluster=replace(cluster, inline=True))


def say_unused(job: JobFile, why: str = HERE) -> None:
    """Of a command that never uses a scheduler: one that is named is reached all the same, and told of."""
    with workplace(job) as place:
        place.why_unused = why


@contextmanager
def executor_from(job: JobFile, listener: Listener = silent) -> Iterator[Executor]:
    """The executor that the options and the job file describe together; a local cluster ends with it."""
    cluster, insecure = job.cluster, job.given.insecure_plain_text
    _refuse_contradictions(job)
    if cluster.inline:
        yield InlineExecutor(cluster.threads, listener=listener)
        return

    quiet()
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
        yield DaskExecutor(client, insecure_plain_text=insecure, listener=listener)


def _refuse_contradictions(job: JobFile) -> None:
    """Options of which only one can hold, before anything is started or reached."""
    given = job.given.of("cluster")
    if job.cluster.inline:
        if "scheduler" in given:
            raise InputError("--inline computes in this process and --scheduler elsewhere; choose one of them")
        _refuse_ignored(job, ("workers", *OF_A_SCHEDULER), "with --inline, which computes in this process")
    elif job.cluster.scheduler is None:
        _refuse_ignored(job, OF_A_SCHEDULER, "without --scheduler ADDRESS")
    elif "workers" in given:
        raise InputError("--workers starts a local cluster and --scheduler uses one that runs; choose one of them")


def _refuse_ignored(job: JobFile, keys: tuple[str, ...], where: str) -> None:
    """An option that would change nothing is a mistake; not so in a job file, which may be made for several places."""
    ignored = [key for key in keys if key in job.given.of("cluster")]
    if job.given.insecure_plain_text:
        ignored.append("insecure_plain_text")
    if ignored:
        raise InputError(f"--{ignored[0].replace('_', '-')} has no effect {where}; leave it out")
