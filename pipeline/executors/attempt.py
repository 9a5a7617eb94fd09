"""One try of one task, the same on every executor: what may be tried again and what may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gramline.kernels.errors import KernelError
from gramline.learners.errors import LearnerError
from gramline.pipeline.errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")

# The same input gives the same refusal: trying again would only cost time.
FINAL = (KernelError, LearnerError, InputError)


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
