"""Tasks that take longer on one worker than on all others; importable on workers that run in the tests' process."""

from __future__ import annotations

from dataclasses import dataclass
from time import sleep
from typing import ClassVar

from distributed import get_worker


@dataclass(frozen=True)
class SlowPart:
    """A part of a pass."""

    number: int
    seconds: float
    slow: str  # address of the slow worker
    slower: int  # how many times as long it takes there

    may_run_twice: ClassVar[bool] = True

    @property
    def place(self) -> int:
        return self.number


def slowly(part: SlowPart) -> int:
    """The number of the part, after its time."""
    sleep(part.seconds * (part.slower if get_worker().address == part.slow else 1))
    return part.number
