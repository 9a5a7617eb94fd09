"""What a learner asks of a Gram matrix: how often it reads the stored tiles, how many values it computes without them.

Measured by training on two samples of the structures, a small and a larger one, on tiles and, where that may be other
work, on values that are computed. What grew from one to the other (iterations), or became rarer (mistakes), is taken to
go on as that power of the number of positions. Seconds are those of the thread that learns: what other programs take of
this machine meanwhile says nothing about the learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import thread_time
from typing import Any

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packed
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.estimator import Learner
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.layout import tiles_of
from gramline.pipeline.corpus.corpus import Corpus

SAMPLE_POSITIONS = (750, 3000)
SAMPLE_BLOCKS = 12  # tiles of a sample are as small beside it as those of a large matrix


@dataclass(frozen=True)
class Demand:
    """Of one training; a pass reads every stored tile once."""

    passes: float  # over stored tiles
    columns: float  # that all tiles are multiplied with, in all passes together
    values: float  # kernel values computed where none is kept, in N^2
    stored_seconds: float  # of the learner itself, beside stored tiles
    computed_seconds: float  # of the learner itself, beside computed values
    precision: str = "float64"  # of the products


AMOUNTS = ("passes", "columns", "values", "stored_seconds", "computed_seconds")
# Iterations of a solve grow with the root of the number of positions in the end, but more slowly on samples that have
# few directions to solve for (measured, kernel Z-score: powers of 0.27, 0.36 and 0.40 on the way to 12,200 positions).
ITERATED = ("passes", "columns", "values")

# Powers of the number of positions by which a demand may grow. A learner that works on vectors of all positions takes
# more than in proportion: those of a sample stay in the cache (measured from 2,800 positions to 12,200: 1.53, Gaussian
# process of rank 100).
LEAST = Demand(passes=-0.5, columns=-0.5, values=-0.5, stored_seconds=0.5, computed_seconds=0.5)
LEAST_OF_VECTORS = 1.5
PASSES_PER_ROUND = 2  # at most, of a lazy learner: a visit of a block reads its whole row of blocks
MOST = Demand(passes=0.5, columns=0.5, values=0.5, stored_seconds=3.0, computed_seconds=3.0)


class _CountingGram(DenseGram):
    """Counts and times the tiles that a learner asks for; blocks of a column are tiles one by one."""

    n_reads = n_columns = 0
    seconds = 0.0
    precision = "float32"  # until a product is in another

    def tile(self, i: int, j: int) -> Tile:
        self.n_reads += 1
        return super().tile(i, j)

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        self.n_reads += self.layout.n_tiles
        self.n_columns += W.size // len(W)
        self.precision = np.result_type(self.precision, W).name
        begin = thread_time()
        product = super().matmul(W, transpose=transpose)
        self.seconds += thread_time() - begin
        return product

    def select(self, rows: Indices, cols: Indices) -> Tile:
        self.n_reads += len(tiles_of(self.layout, rows, cols))
        return super().select(rows, cols)


class _TimedGram(ComputedGram):
    """Times products and values; values that are computed elsewhere take as long as those of a plain tile."""

    seconds = 0.0
    seconds_per_value = 0.0
    _is_inside = False

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        self._is_inside, begin = True, thread_time()
        product = super().matmul(W, transpose=transpose)
        self._is_inside, self.seconds = False, self.seconds + thread_time() - begin
        return product

    def count_values(self, n_values: int) -> None:
        super().count_values(n_values)
        if not self._is_inside:
            self.seconds += n_values * self.seconds_per_value


def spread_sample(lengths: Indices, limit: int) -> Indices:
    """Structures of about `limit` positions, at least two, evenly spread."""
    share = min(1.0, limit / max(1, int(lengths.sum())))
    n_chosen = min(len(lengths), max(2, round(share * len(lengths))))
    return np.unique(np.linspace(0, len(lengths) - 1, n_chosen).astype(np.int64))


def _sample(corpus: Corpus, limit: int) -> Corpus:
    return corpus.select(spread_sample(corpus.lengths, limit))


def measure_demand(learner: Learner, kernel: Kernel, corpus: Corpus, *, merges: bool = False) -> Demand:
    """Of training on `corpus`, from samples of it; whether a product compares equal rows once, which no store does."""
    samples = [_sample(corpus, limit) for limit in SAMPLE_POSITIONS]
    both = merges or learner.is_lazy
    _measured(learner, kernel, samples[0].select(range(min(2, len(samples[0])))), both=both)  # loads compiled code
    small, large = (_measured(learner, kernel, sample, both=both) for sample in samples)
    sizes = [part.n_positions for part in (*samples, corpus)]
    if not learner.is_lazy:
        own = LEAST_OF_VECTORS
        return extrapolated(small, large, sizes, replace(LEAST, stored_seconds=own, computed_seconds=own))
    demand = extrapolated(small, large, sizes)
    return replace(demand, passes=min(demand.passes, PASSES_PER_ROUND * float(learner.round_limit or np.inf)))


def extrapolated(small: Demand, large: Demand, sizes: Sequence[int], least: Demand = LEAST) -> Demand:
    """The demand at the last of three sizes, from those at the two others; `least` are the smallest powers."""
    lever, reach = sizes[1] / sizes[0], sizes[2] / sizes[1]
    if reach <= 1 or lever <= 1:
        return large
    amounts = {}
    for name in AMOUNTS:
        before, amount = getattr(small, name), getattr(large, name)
        power = np.log(amount / before) / np.log(lever) if amount > 0 and before > 0 else 0.0
        most = getattr(MOST, name)
        if name in ITERATED and 0 < power < most:
            power *= 2 - power / most
        amounts[name] = amount * reach ** float(np.clip(power, getattr(least, name), most))
    return replace(large, **amounts)


def _measured(learner: Learner, kernel: Kernel, corpus: Corpus, *, both: bool) -> Demand:
    """On tiles, and if `both` on computed values, too; otherwise the learner does the same there, on the same tiles."""
    packed = kernel.prepare(corpus.packed())
    lengths = kernel.row_lengths(packed)
    block_rows = max(int(lengths.max()), int(lengths.sum()) // SAMPLE_BLOCKS)
    tiles = _CountingGram(
        kernel.tile(packed, packed),
        lengths,
        label_names=packed.vocabulary.labels or None,
        row_prior=packed.prior,
        label_kernel=kernel.label_matrix(),
        block_rows=block_rows,
    )
    own = _own_seconds(learner, tiles, corpus)
    passes = tiles.n_reads / tiles.layout.n_tiles
    # A tile that is computed in every pass serves (i, j) and (j, i).
    demand = Demand(passes, tiles.n_columns, passes / 2, own, own, tiles.precision)
    if not both:
        return demand
    computed = _TimedGram(kernel, packed, block_rows=block_rows)
    computed.seconds_per_value = _seconds_per_value(kernel, packed)
    own = _own_seconds(learner, computed, corpus)
    return replace(demand, values=computed.values_computed / tiles.shape[0] ** 2, computed_seconds=own)


def _own_seconds(learner: Learner, gram: _CountingGram | _TimedGram, corpus: Corpus) -> float:
    """Of a training on `gram`, without what that takes itself."""
    trained: Any = learner.fresh()
    begin = thread_time()
    trained.fit(gram, corpus.labels)
    return max(0.0, thread_time() - begin - gram.seconds)


def seconds_per_value(kernel: Kernel, corpus: Corpus) -> float:
    """Of one thread, from a tile between structures of `corpus` that is large enough to show what values cost."""
    return _seconds_per_value(kernel, kernel.prepare(_sample(corpus, SAMPLE_POSITIONS[-1]).packed()))


def _seconds_per_value(kernel: Kernel, packed: Packed) -> float:
    """Of a tile between the first half of the structures and the second."""
    middle = max(1, len(packed) // 2)
    halves = packed.structures(0, middle), packed.structures(middle, len(packed))
    taken = []
    for _ in range(2):
        begin = thread_time()
        size = kernel.tile(*halves).size
        taken.append(thread_time() - begin)
    return min(taken) / max(1, size)
