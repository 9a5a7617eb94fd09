"""The labeling kernel between positions of sequences, over consecutive or gappy features."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.base import Tile, chunk_starts, is_same, mirror, tile_memory
from gramline.kernels.marginalized import (
    LabelKernel,
    LabelPrior,
    Marginals,
    MarginalTables,
    Observation,
    Reach,
    ReachingLabeling,
    Strip,
)
from gramline.kernels.observations.base import Identity
from gramline.kernels.packing import Floats, Offsets, Packed
from gramline.kernels.parameters import Weight, ZeroToOne
from gramline.kernels.priors import UniformPrior
from gramline.kernels.sequences.matching_loops import EqualColumns, SequencePair, fill_runs, list_equal_columns
from gramline.kernels.sequences.sweep_loops import sweep_contiguous, sweep_gappy

CHUNK_COLUMNS = 1024  # 1+U' of a sentence of 40 positions stays in the second-level cache; measured
SPARSE_SHARE = 0.15  # share of equal pairs below which visiting only them beats sweeping over all; measured


@dataclass(frozen=True)
class SequenceLabeling(ReachingLabeling):
    """G(tau,t) = c^2 kx(tau,t) (1+U'(tau,t)) (1+D'(tau,t)); features are labelled runs of positions.

    gap = 0:   U'(tau,t) = kap(tau-1,t-1) (1 + U'(tau-1,t-1))                  D' the same on both sequences reversed
    gap > 0:   positions may be skipped, each counting `gap` (0 <= gap <= 1):   U'(tau,t) = S(tau-1,t-1),
               r(tau,t) = kap (1+U')(tau,t) + gap r(tau,t-1),                   S(tau,t) = r(tau,t) + gap S(tau-1,t)

    O(T T') per pair. Positive semidefinite when kx is. Marginalized labeling kernel, equations (1)-(3).

    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["the", "dog"], ["dog"]], [["D", "N"], ["N"]])
    >>> SequenceLabeling().gram(corpus)
    array([[1.5, 0. , 0. ],
           [0. , 1.5, 1. ],
           [0. , 1. , 1. ]])
    >>> SequenceLabeling().full(corpus).shape  # (positions, positions, labels, labels)
    (3, 3, 2, 2)
    """

    name: ClassVar[str] = "sequence-labeling"
    summary: ClassVar[str] = "runs of neighbours"
    packed_kind: ClassVar[str] = "sequences"

    c: Annotated[
        Weight, "weight of every position of a run; larger reaches further, and overflows when far too large"
    ] = 1.0
    gap: Annotated[ZeroToOne, "between 0 and 1: runs may skip positions, each counting this much"] = 0.0
    observation: Observation = field(default_factory=Identity)
    prior: LabelPrior = field(default_factory=UniformPrior)
    label_kernel: LabelKernel = None
    reach: Reach = None

    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        if self.gap == 0 and isinstance(self.observation, Identity):
            equal = list_equal_columns(rows.observed, cols.observed)
            if equal.n_equal < SPARSE_SHARE * rows.n_positions * cols.n_positions:
                return self._tile_of_runs(rows, cols, equal, np.dtype(dtype), memory)
        return super().tile(rows, cols, dtype, memory)

    def _tile_of_runs(
        self, rows: Packed, cols: Packed, equal: EqualColumns, dtype: np.dtype[Any], memory: Tile | None
    ) -> Tile:
        """The tile from its equal pairs alone: few of them when the observations are words."""
        out = tile_memory(rows.n_positions, cols.n_positions, dtype, memory)
        marginals = Marginals(rows, cols, self.label_matrix())
        scale, limit = float(self.c) ** 2, float(np.finfo(dtype).max)
        pair = SequencePair(rows.starts, rows.observed, cols.observed, continuations(cols.starts))
        tables = MarginalTables(marginals.left, marginals.right, self.link(rows.n_labels) * marginals.factor)
        failed = fill_runs(pair, equal, tables, scale, limit, out)
        if failed >= 0:
            raise self.overflow_in(rows, cols, (failed, failed + 1), dtype)
        if is_same(rows, cols):
            mirror(out)
        return out[:, : cols.n_positions]

    def recursion(self, rows: Packed, cols: Packed) -> Sweeps:
        return Sweeps(rows.starts, cols.starts, float(self.gap))


class Sweeps:
    """U' and D' by one sweep down and one up the rows of a strip, over all columns at once."""

    def __init__(self, row_starts: Offsets, col_starts: Offsets, gap: float) -> None:
        self.row_starts, self.gap = row_starts, gap
        self.continues = continuations(col_starts)
        cuts = chunk_starts(col_starts, CHUNK_COLUMNS)
        self.chunks = np.array([quarters(col_starts, *cut) for cut in pairwise(cuts)], np.int64).reshape(-1, 5)
        self.upward = np.empty((int(np.diff(row_starts).max(initial=0)), int(np.diff(cuts).max(initial=0))))

    def run(self, strip: Strip) -> bool:
        if self.gap == 0:
            link = strip.factor * self.continues
            return sweep_contiguous(self.row_starts, self.chunks, strip, link, self.upward)
        return sweep_gappy(self.row_starts, self.chunks, strip, self.continues, self.gap, self.upward)


def continuations(starts: Offsets) -> Floats:
    """1 where a position has a predecessor in its structure, 0 where a structure starts; shape (n,)."""
    continues = np.ones(int(starts[-1]))
    continues[starts[:-1]] = 0.0
    return continues


def quarters(starts: Offsets, begin: int, end: int) -> list[int]:
    """Five bounds that split the positions begin..end-1 into four nearly equal parts of whole structures."""
    targets = begin + (end - begin) * np.arange(1, 4) // 4
    inside = starts[np.searchsorted(starts, targets)]
    return [int(begin), *(int(bound) for bound in inside), int(end)]
