"""Which neighbours a label of the Gaussian-process labeler depends on: numbers, or the name of a usual set of them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Annotated, Any

import numpy as np

from gramline.kernels.value_kinds import Kind, Refused

NAMED_OFFSETS: dict[str, tuple[int, ...]] = {"GPSL1": (-1,), "GPSL2": (-1, 1), "GPSL4": (-2, -1, 1, 2)}


class NeighbourOffsets(Kind):
    """Whole numbers, not 0, no repeats; or a name."""

    words = f"a list of whole numbers, or one of {', '.join(NAMED_OFFSETS)}"
    depth = 1

    def plain(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, str) and value.upper() in NAMED_OFFSETS:
            return NAMED_OFFSETS[value.upper()]
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
            raise Refused
        if not all(isinstance(offset, Integral) and not isinstance(offset, bool) for offset in value):
            raise Refused
        offsets = tuple(int(offset) for offset in value)  # of any size: one beyond every structure changes nothing
        if 0 in offsets:
            raise Refused(f"must not contain 0, a position is no neighbour of itself; got {offsets}")
        if len(set(offsets)) != len(offsets):
            raise Refused(f"must not repeat, got {offsets}")
        return offsets

    def are_several(self, value: list[Any]) -> bool:
        return any(isinstance(item, str | list) for item in value)

    @property
    def schema(self) -> dict[str, Any]:
        numbers = {"type": "array", "items": {"type": "integer", "not": {"const": 0}}, "uniqueItems": True}
        return {"anyOf": [numbers, {"enum": list(NAMED_OFFSETS)}]}


Neighbours = Annotated[
    Sequence[int] | str,
    NeighbourOffsets(),
    'neighbours that a label depends on (`--set offsets=[-1]`); `"GPSL1"`, `"GPSL2"`, `"GPSL4"` name the usual ones',
]


def named_offsets(offsets: Sequence[int] | str) -> tuple[int, ...]:
    """The offsets behind a name, or the given ones."""
    return NeighbourOffsets().plain(offsets)
