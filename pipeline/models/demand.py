"""What a learner asks of a Gram matrix: how often it reads the stored tiles, how many values it computes without them.

Measured by training on a sample of the structures, once on tiles and once on values that are computed: passes and
shares of N^2 are about the same at every size. Mistakes become rarer with more structures, so that a large corpus
takes rather less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gramline.kernels.base import Kernel
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.estimator import Learner
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.corpus.corpus import Corpus

SAMPLE_POSITIONS = 3000
SAMPLE_BLOCKS = 12  # tiles of a sample are as small beside it as those of a large matrix


@dataclass(frozen=True)
class Demand:
    """Of one training; a pass reads every stored tile once."""

    passes: float  # over stored tiles
    values: float  # kernel values computed where none is kept, in N^2
    own_seconds: float  # of a position, besides tiles


class _CountingGram(DenseGram):
    """Counts the tiles that a learner asks for."""

    n_reads = 0

    def tile(self, i: int, j: int) -> Tile:
        self.n_reads += 1
        return super().tile(i, j)

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        for i, tile in super().column_blocks(j, rows):
            self.n_reads += 1
            yield i, tile

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        self.n_reads += self.layout.n_tiles
        return super().matmul(W, transpose=transpose)

    def select(self, rows: Indices, cols: Indices) -> Tile:
        starts = self.layout.rows.block_starts
        blocks = [len(np.unique(np.searchsorted(starts, part, "right"))) for part in (rows, cols)]
        self.n_reads += blocks[0] * blocks[1]
        return super().select(rows, cols)


def spread_sample(lengths: Indices, limit: int) -> Indices:
    """Structures of about `limit` positions, at least two, evenly spread."""
    share = min(1.0, limit / max(1, int(lengths.sum())))
    n_chosen = min(len(lengths), max(2, round(share * len(lengths))))
    return np.unique(np.linspace(0, len(lengths) - 1, n_chosen).astype(np.int64))


def measure_demand(learner: Learner, kernel: Kernel, corpus: Corpus) -> Demand:
    """By training on a sample of `corpus`."""
    part = corpus.select(spread_sample(corpus.lengths, SAMPLE_POSITIONS))
    packed = kernel.prepare(part.packed())
    longest = int(kernel.row_lengths(packed).max())
    block_rows = max(longest, part.n_positions // SAMPLE_BLOCKS)
    tiles = _CountingGram(
        kernel.tile(packed, packed),
        kernel.row_lengths(packed),
        label_names=packed.vocabulary.labels or None,
        row_prior=packed.prior,
        label_kernel=kernel.label_matrix(),
        block_rows=block_rows,
    )
    computed = ComputedGram(kernel, packed, block_rows=block_rows)
    trained: Any = learner.fresh()
    trained.fit(tiles, part.labels)  # compiled code is loaded now
    tiles.n_reads = 0
    begin = perf_counter()
    trained.fresh().fit(tiles, part.labels)
    seconds = perf_counter() - begin
    trained.fresh().fit(computed, part.labels)
    n_rows = tiles.shape[0]
    return Demand(
        passes=tiles.n_reads / tiles.layout.n_tiles,
        values=computed.values_computed / n_rows**2,
        own_seconds=seconds / n_rows,
    )
