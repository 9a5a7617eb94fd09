"""Two observation kernels added: what both see at a position counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.errors import KernelParameterError
from gramline.kernels.observations.base import Normalized, ObservationKernel, RoundedStrips, Strips, inverse_norms
from gramline.kernels.observations.products import ScaledStrips
from gramline.kernels.packing import Floats, Ints, Packed
from gramline.kernels.parameters import Positive


@dataclass(frozen=True)
class Sum(ObservationKernel):
    """k_x = first + weight * second: positive semidefinite when both are. Either may be a sum itself.

    >>> from gramline.kernels import Identity, Linear, PositionKernel, Sum
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> PositionKernel(Sum(Linear(), Identity(), weight=0.5)).gram(corpus)
    array([[5.5, 1. ],
           [1. , 1.5]])
    """

    name: ClassVar[str] = "sum"
    summary: ClassVar[str] = "two observation kernels added"

    first: Annotated[ObservationKernel, "an observation kernel"]
    second: Annotated[ObservationKernel, "another one"]
    weight: Annotated[Positive, "how much the second counts beside the first"] = 1.0
    normalized: Normalized = False

    def __post_init__(self) -> None:
        super().__post_init__()
        alphabets = {part.alphabet() for part in (self.first, self.second)} - {None}
        if len(alphabets) > 1:
            raise KernelParameterError(
                "the two observation kernels of a sum have different symbols",
                advice="give both matrices the same symbols in the same order",
                key="second",
            )

    def alphabet(self) -> tuple[str, ...] | None:
        return self.first.alphabet() or self.second.alphabet()

    def encode(self, packed: Packed) -> Ints | None:
        codes = self.first.encode(packed)
        return self.second.encode(packed) if codes is None else codes

    def check_codes(self, packed: Packed) -> None:
        self.first.check_codes(packed)
        self.second.check_codes(packed)

    def strips(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64) -> Strips:
        strips: Strips = AddedStrips(self.first.strips(rows, cols), self.second.strips(rows, cols), self.weight)
        if self.normalized:
            strips = ScaledStrips(strips, *(inverse_norms(self.diagonal(packed)) for packed in (rows, cols)))
        return strips if dtype == np.float64 else RoundedStrips(strips, cols.n_positions)

    def is_never_negative(self, rows: Packed, cols: Packed) -> bool:
        return self.first.is_never_negative(rows, cols) and self.second.is_never_negative(rows, cols)

    def diagonal(self, packed: Packed) -> Floats:
        total: Floats = self.first.self_similarity(packed) + self.weight * self.second.self_similarity(packed)
        return total


class AddedStrips:
    """first + weight * second, cell by cell."""

    def __init__(self, first: Strips, second: Strips, weight: float) -> None:
        self.first, self.second, self.weight = first, second, weight

    def fill(self, first: int, last: int, out: Floats) -> None:
        self.first.fill(first, last, out)
        other = np.empty_like(out)
        self.second.fill(first, last, other)
        other *= self.weight
        out += other
