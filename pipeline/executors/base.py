"""How a list of tasks is run: the one thing a build or a stream knows of the machines it runs on.

`InlineExecutor` runs them in this process: no cluster, for small data and for tests. One try of one task is the
same on every executor: `attempt` says what may be tried again and what may not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from gramline.kernels.errors import KernelError
from gramline.learners.errors import LearnerError
from gramline.pipeline.cost import Cost, shares, this_process
from gramline.pipeline.errors import InputError, named_line
from gramline.pipeline.events import Listener, TaskRetried, silent

Task = TypeVar("Task")
Result = TypeVar("Result")

# The user's input, the same on every try: trying again would only cost time.
FINAL = (KernelError, LearnerError, InputError)
AHEAD = 2  # tasks in flight per thread: one computes, one is ready


@dataclass(frozen=True)
class Outcome(Generic[Task, Result]):
    """What became of one task: its result, or the error of its last try."""

    task: Task
    result: Result | None
    error: BaseException | None = None


class Executor(Protocol):
    """Runs one function over many tasks, a bounded number at a time."""

    @property
    def n_threads(self) -> int:
        """How many tasks compute at the same time."""
        ...

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Generator[Outcome[Task, Result], None, None]:
        """One outcome per task, as they complete; a failing task yields its error and stops no other.

        Tasks are drawn lazily, a few per thread ahead. Closing the generator (`contextlib.closing`) abandons what has
        not started. Raises ClusterError when the cluster itself is lost. What has a `title` is called by it; one with a
        `place` runs, if possible, where the last task of this place ran; `may_run_twice` and `may_be_bundled` (with
        others of its kind) allow a cluster just that.
        """
        ...


@runtime_checkable
class StartsTasks(Protocol):
    """An executor whose tasks run while the caller does something else: other processes."""

    def start(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2, is_urgent: bool = False
    ) -> Generator[Outcome[Task, Result], None, None]:
        """All tasks are on their way when this returns; their outcomes come as in `Executor.run`.

        Those that are urgent go before all that wait.
        """
        ...


@runtime_checkable
class HasDashboard(Protocol):
    """An executor whose work can be watched in a browser."""

    @property
    def dashboard_link(self) -> str:
        """Where the page would be; nobody may serve it."""
        ...


@dataclass(frozen=True)
class WorkerMemory:
    """What one worker process may use, all its threads together."""

    worker: str  # its address
    limit_bytes: int
    threads: int


@runtime_checkable
class KnowsMemory(Protocol):
    """An executor that knows the memory of its workers."""

    def worker_memory(self) -> list[WorkerMemory]:
        """Of the workers that are there now and have a limit."""
        ...


def call_name(function: Callable[..., Any], task: object) -> str:
    """What a task is called where people see it: the function, and the title of the task where it has one."""
    name, title = getattr(function, "__name__", "task"), getattr(task, "title", "")
    return f"{name}-{title}" if title else str(name)


@dataclass(frozen=True)
class Refusal:
    """A task's final error, handed back as a value so that nobody retries it."""

    error: Exception


def attempt(function: Callable[[Task], Result], task: Task) -> Result | Refusal:
    """`function(task)`; an error that no retry can mend comes back as a Refusal, every other one is raised."""
    try:
        return function(task)
    except FINAL as error:
        return Refusal(error)


@dataclass(frozen=True)
class Measured(Generic[Result]):
    """What a task gave in another process, and what it cost there."""

    result: Result | Refusal
    cost: Cost
    process: str
    worker: str = ""  # its address, where it has one
    seconds: float = 0.0  # by the clock


def attempt_measured(function: Callable[[Task], Result], task: Task) -> Measured[Result]:
    """`attempt` on a worker whose counters nobody reads: what it spent travels with the result."""
    begin = perf_counter()
    result, cost = shares.run(lambda: attempt(function, task))
    return Measured(result, cost, this_process(), seconds=perf_counter() - begin)


class InlineExecutor:
    """Runs tasks in the calling thread, or in `n_threads` threads of this process (kernel loops release the GIL)."""

    def __init__(self, n_threads: int = 1, *, listener: Listener = silent) -> None:
        if n_threads < 1:
            raise InputError(f"an executor needs at least 1 thread, got {n_threads}")
        self._n_threads = n_threads
        self._listener, self._one_at_a_time = listener, Lock()

    @property
    def n_threads(self) -> int:
        return self._n_threads

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Generator[Outcome[Task, Result], None, None]:
        """One outcome per task as they complete; see `Executor.run`."""
        if self._n_threads == 1:
            for task in tasks:
                yield self._outcome(function, task, retries)
            return
        remaining = iter(tasks)
        pool = ThreadPoolExecutor(self._n_threads, thread_name_prefix="gramline")
        running: set[Future[Outcome[Task, Result]]] = set()
        try:
            while True:
                for task in islice(remaining, AHEAD * self._n_threads - len(running)):
                    running.add(pool.submit(self._outcome, function, task, retries))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _outcome(self, function: Callable[[Task], Result], task: Task, retries: int) -> Outcome[Task, Result]:
        for n_tries in range(1, retries + 2):
            try:
                result = attempt(function, task)
            except Exception as error:  # noqa: BLE001 - whatever a task raises is that task's outcome
                if n_tries > retries:
                    return Outcome(task, None, error)
                with self._one_at_a_time:
                    self._listener(TaskRetried(call_name(function, task), named_line(error), n_tries))
            else:
                return Outcome(task, None, result.error) if isinstance(result, Refusal) else Outcome(task, result)
        raise InputError(f"retries must be at least 0, got {retries}")
