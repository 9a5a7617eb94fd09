"""Where a training leaves its state, so that another one can go on from there and end the same, bit by bit.

Knows no files. A state is a mapping of names to plain arrays. A training offers it wherever it could go on from; who
keeps it decides when that is worth a copy, and may raise to end the training there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

State = Mapping[str, NDArray[Any]]


class Checkpoint(Protocol):
    """What `fit(..., checkpoint=)` takes."""

    def restore(self) -> State | None:
        """What an earlier training of the same learner on the same data left; None: begin at the beginning."""

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        """The training could go on from here, `after` something such as "round 3 of 10".

        `state` must be called now or never. `is_last`: nothing is left to train.
        """


class Nowhere:
    """Keeps nothing."""

    def restore(self) -> State | None:
        return None

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        """Not worth a copy."""


NOWHERE: Checkpoint = Nowhere()


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """A copy with the same layout in memory, on which the order of sums depends."""
    return array.copy("K")


def number(value: float) -> NDArray[Any]:
    """A number, or True or False, as an array of a state."""
    return np.array(value)


def named(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    """The state of a part, to be put into that of the whole."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def part_of(state: State, prefix: str) -> dict[str, NDArray[Any]]:
    """The state of a part."""
    begin = f"{prefix}."
    return {name.removeprefix(begin): array for name, array in state.items() if name.startswith(begin)}
