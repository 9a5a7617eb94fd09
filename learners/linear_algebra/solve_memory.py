"""What an iterative solve leaves before every product, so that another one can go on with that product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gramline.learners.checkpoints import State, named, part_of


class SolveMemory:
    """Of one solve: where it begins, None at the beginning, and where it is.

    Nobody changes the arrays of a state, so that it may be kept without a copy.
    """

    def __init__(self, begun: State | None = None) -> None:
        self.begun = begun
        self.state: State = {}

    def begin(self, state: State) -> None:
        """Before the first step of the solve."""
        self.begun = self.state = state


def numbered(states: Sequence[State]) -> dict[str, NDArray[Any]]:
    """Several states as one, by their numbers."""
    return {name: array for number, state in enumerate(states) for name, array in named(str(number), state).items()}


def begin_all(memories: Sequence[SolveMemory], state: State) -> None:
    """Every solve goes on from its part of what `numbered` gave."""
    for number, memory in enumerate(memories):
        memory.begin(part_of(state, str(number)))
