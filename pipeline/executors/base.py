"""How a list of tasks is run: the one thing a build or a stream knows of the machines it runs on.

One try of one task is the same on every executor: `attempt` says what may be tried again and what may not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gramline.kernels.errors import KernelError
from gramline.learners.errors import LearnerError
from gramline.pipeline.errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")

# The user's input, the same on every try: trying again would only cost time.
FINAL = (KernelError, LearnerError, InputError)


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
        not started. Raises ClusterError when the cluster itself is lost.
        """
        ...


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
