"""The labeling kernel between positions of sequences, over consecutive or gappy features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gramline.kernels.base import Tile, chunk_starts, is_same, mirror, structure_runs, tile_memory
from gramline.kernels.marginalized import (
    LabelKernel,
    LabelPrior,
    Observation,
    Reach,
    ReachingLabeling,
    Recursion,
    Strip,
    Work,
)
from gramline.kernels.marginals import Marginals, MarginalTables
from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.count_loops import PADDING
from gramline.kernels.observations.equal_columns import EqualColumns, list_equal_columns
from gramline.kernels.observations.products import PowerStrips
from gramline.kernels.packing import Floats, Offsets, Packed
from gramline.kernels.parameters import Weight, ZeroToOne
from gramline.kernels.priors import UniformPrior
from gramline.kernels.sequences.chain_loops import sweep_chains
from gramline.kernels.sequences.counted_loops import CountedSequences, sweep_counted
from gramline.kernels.sequences.gappy_loops import GappyRows, sweep_gappy
from gramline.kernels.sequences.matching_loops import SequencePair, fill_runs
from gramline.kernels.sequences.side_by_side import LANES, SideBySide
from gramline.kernels.sequences.sweep_loops import sweep_contiguous

CHUNK_COLUMNS = 1024  # 1+U' of a sentence of 40 positions stays in the second-level cache; measured
COUNTED_COLUMNS = 2048  # kap (1+D') of such a sentence stays there, too; memory takes whole rows faster; measured
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
                out = tile_memory(rows.n_positions, cols.n_positions, dtype, memory)
                if self._fill_runs(rows, cols, equal, out):
                    return out[:, : cols.n_positions]
        return super().tile(rows, cols, dtype, memory)

    def _fill_runs(self, rows: Packed, cols: Packed, equal: EqualColumns, out: Tile) -> bool:
        """Fill the tile from its equal pairs alone: few of them when the observations are words.

        False where float32 does not hold a number on the way; sweeps know what to do then.
        """
        is_single = out.dtype == np.float32 and self.is_single(rows, cols)
        precision = np.float32 if is_single else np.float64
        marginals = Marginals(rows, cols, self.label_matrix(), precision)
        pair = SequencePair(rows.starts, rows.observed, cols.observed, continuations(cols.starts))
        link = precision(self.link(rows.n_labels) * marginals.factor)
        tables = MarginalTables(marginals.left, marginals.right, link)
        scale, limit = precision(float(self.c) ** 2), precision(np.finfo(out.dtype).max)
        failed = fill_runs(pair, equal, tables, scale, limit, out)
        if failed >= 0 and not is_single:
            raise self.overflow_in(rows, cols, (failed, failed + 1), out.dtype)
        if failed < 0 and is_same(rows, cols):
            mirror(out)
        return failed < 0

    def recursion(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> Recursion:
        if self.gap == 0:
            return Sweeps(rows.starts, cols.starts, precision)
        kind = Chains if precision is np.float64 else GappySweeps
        return kind(rows.starts, cols.starts, float(self.gap))

    def is_mirrored(self, work: Work) -> bool:
        return self.gap == 0 and self.label_kernel is None and isinstance(work.observed, PowerStrips)

    def fill(self, work: Work, out: Tile) -> Iterator[tuple[int, int]]:
        if self.gap > 0 or not isinstance(work.observed, PowerStrips):
            yield from super().fill(work, out)
        elif not sweep_counted(*_counted(work, work.observed), out):
            yield 0, len(work.rows)


def _counted(work: Work, observed: PowerStrips) -> tuple[CountedSequences, tuple[Any, Any, Any], NDArray[Any]]:
    """What the loop over a whole tile of binary features takes."""
    marginals, counted, starts = work.marginals, observed.counted, work.cols.starts
    n_chunks = max(1, round(work.cols.n_positions / COUNTED_COLUMNS))
    widest = -(-work.cols.n_positions // n_chunks) + int(work.cols.lengths.max(initial=0))
    runs = list(structure_runs(starts, widest))
    bounds = [starts[first : last + 1] - starts[first] for first, last in runs]
    pair = CountedSequences(
        row_starts=work.rows.starts,
        col_starts=starts,
        chunks=np.array([0, *(last for _, last in runs)], np.int64),
        bounds=np.concatenate([starts[:0], *bounds]).astype(np.uint32),
        rows=counted.rows,
        cols=counted.cols,
        powers=observed.powers,
        left=marginals.left,
        by_label=marginals.left if marginals.is_uniform else marginals.by_label,
    )
    longest = int(work.rows.lengths.max(initial=0))
    room = np.zeros((longest, counted.room.shape[1] + PADDING), counted.room.dtype)
    return pair, (work.factor, work.scale, work.limit), room


class Sweeps:
    """U' and D' by one sweep down and one up the rows of a strip, over all columns at once."""

    columns = None

    def __init__(self, row_starts: Offsets, col_starts: Offsets, precision: type[np.floating[Any]]) -> None:
        self.row_starts, self.col_starts, self.precision = row_starts, col_starts, precision

    @cached_property
    def sides(self) -> tuple[NDArray[Any], Offsets, NDArray[Any]]:
        """Where positions continue, chunks of columns, and room; a tile that is filled at once needs none of them."""
        continues = continuations(self.col_starts).astype(self.precision)
        chunks = chunk_starts(self.col_starts, CHUNK_COLUMNS)
        shape = int(np.diff(self.row_starts).max(initial=0)), int(np.diff(chunks).max(initial=0))
        return continues, chunks, np.empty(shape, self.precision)

    def run(self, strip: Strip) -> bool:
        continues, chunks, upward = self.sides
        return sweep_contiguous(self.row_starts, chunks, strip, strip.factor * continues, upward)


class Chains:
    """The same in double precision where positions may be skipped: sums along the columns of a sequence, too."""

    columns = None

    def __init__(self, row_starts: Offsets, col_starts: Offsets, gap: float) -> None:
        self.row_starts, self.gap = row_starts, gap
        self.continues = continuations(col_starts)
        cuts = chunk_starts(col_starts, CHUNK_COLUMNS)
        self.chunks = np.array([quarters(col_starts, *cut) for cut in pairwise(cuts)], np.int64).reshape(-1, 5)
        self.upward = np.empty((int(np.diff(row_starts).max(initial=0)), int(np.diff(cuts).max(initial=0))))

    def run(self, strip: Strip) -> bool:
        return sweep_chains(self.row_starts, self.chunks, strip, self.continues, self.gap, self.upward)


class GappySweeps:
    """The same in single precision, sequences side by side."""

    def __init__(self, row_starts: Offsets, col_starts: Offsets, gap: float) -> None:
        self.row_starts, self.gap = row_starts, np.float32(gap)
        self.cols = SideBySide.of(col_starts, CHUNK_COLUMNS, np.float32)
        longest, widest = (int(np.diff(bounds).max(initial=0)) for bounds in (row_starts, self.cols.chunks))
        upward = np.empty((longest, len(self.cols.columns)), np.float32)
        self.rows = GappyRows(upward, *np.zeros((4, widest + 2 * LANES), np.float32))

    @property
    def columns(self) -> Offsets:
        return self.cols.columns

    def run(self, strip: Strip) -> bool:
        return sweep_gappy(self.row_starts, self.cols, strip, self.gap, self.rows)


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
