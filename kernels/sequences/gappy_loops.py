"""The two sweeps of the gappy sequence labeling kernel over a strip of row structures. Jitted functions only.

Columns are sorted by their place in their sequence (`RankedColumns`), so the sums along a sequence are vector
operations from one rank to the next, over all sequences of a chunk; only the finished row is put in order again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Offsets
from gramline.kernels.sequences.ranks import RankedColumns

Line = NDArray[Any]  # float64 or float32, all of one precision


@jit
def continue_forward(sums: Line, ranks: Offsets, row: Line) -> None:
    """row = 1+U': one and S of the place before, nothing at the first of a sequence."""
    for t in range(ranks[1]):
        row[t] = 1.0
    for rank in range(1, len(ranks) - 1):
        low, size, left = ranks[rank], ranks[rank + 1] - ranks[rank], ranks[rank - 1]
        target, before = row[low : low + size], sums[left : left + size]
        for i in range(size):
            target[i] = 1.0 + before[i]


@jit
def continue_backward(sums: Line, ranks: Offsets, row: Line) -> None:
    """row = 1+D': one and S of the place behind, nothing at the last of a sequence."""
    for rank in range(len(ranks) - 1):
        low, high = ranks[rank], ranks[rank + 1]
        size = ranks[rank + 2] - high if rank + 2 < len(ranks) else 0  # sequences that go on
        target, behind = row[low : low + size], sums[high : high + size]
        for i in range(size):
            target[i] = 1.0 + behind[i]
        for t in range(low + size, high):
            row[t] = 1.0


@jit
def accumulate_forward(
    values: Line, row: Line, factor: float, gap: float, ranks: Offsets, runs: Line, sums: Line
) -> None:
    """r(t) = factor values(t) row(t) + gap r(t-1) and S(t) = r(t) + gap S(t), in place; `runs` is room for r."""
    for t in range(ranks[1]):
        runs[t] = factor * values[t] * row[t]
    for rank in range(1, len(ranks) - 1):
        low, size, left = ranks[rank], ranks[rank + 1] - ranks[rank], ranks[rank - 1]
        target, before = runs[low : low + size], runs[left : left + size]
        seen, factors = values[low : low + size], row[low : low + size]
        for i in range(size):
            target[i] = factor * seen[i] * factors[i] + gap * before[i]
    for t in range(len(values)):
        sums[t] = runs[t] + gap * sums[t]


@jit
def accumulate_backward(
    values: Line, row: Line, factor: float, gap: float, ranks: Offsets, runs: Line, sums: Line
) -> None:
    """r(t) = factor values(t) row(t) + gap r(t+1) and S(t) = r(t) + gap S(t), in place."""
    for rank in range(len(ranks) - 2, -1, -1):
        low, high = ranks[rank], ranks[rank + 1]
        size = ranks[rank + 2] - high if rank + 2 < len(ranks) else 0
        target, behind = runs[low : low + size], runs[high : high + size]
        seen, factors = values[low : low + size], row[low : low + size]
        for i in range(size):
            target[i] = factor * seen[i] * factors[i] + gap * behind[i]
        for t in range(low + size, high):
            runs[t] = factor * values[t] * row[t]
    for t in range(len(values)):
        sums[t] = runs[t] + gap * sums[t]


@jit
def sweep_gappy(row_starts: Offsets, cols: RankedColumns, strip: Strip, gap: float, upward: Line) -> bool:
    """out = scale * kx * (1+U') * (1+D') with kap = factor * weights; every skipped position counts `gap`.

    `upward` is room for 1+U' of the longest row structure and the widest chunk. Returns whether all is within +-limit.
    """
    kx, weights, out = strip.kx, strip.weights, strip.out
    factor, scale, limit = strip.factor, strip.scale, strip.limit
    starts = row_starts[strip.first : strip.last + 1]
    lines = np.empty((4, upward.shape[1]), upward.dtype)
    n_bad = 0
    for chunk in range(len(cols.chunks) - 1):
        begin, end = cols.chunks[chunk], cols.chunks[chunk + 1]
        width = end - begin
        if width == 0:
            continue
        ranks = cols.rank_starts[cols.rank_indptr[chunk] : cols.rank_indptr[chunk + 1]]
        places = cols.places[begin:end]
        sums, runs, downward, products = lines[0, :width], lines[1, :width], lines[2, :width], lines[3, :width]
        for structure in range(len(starts) - 1):
            first, last = starts[structure] - starts[0], starts[structure + 1] - starts[0]
            sums[:] = 0.0
            for i in range(first, last):
                above = upward[i - first, :width]
                continue_forward(sums, ranks, above)
                accumulate_forward(weights[i, begin:end], above, factor, gap, ranks, runs, sums)
            sums[:] = 0.0
            for i in range(last - 1, first - 1, -1):
                above, observed, target = upward[i - first, :width], kx[i, begin:end], out[i, begin:end]
                continue_backward(sums, ranks, downward)
                for t in range(width):
                    value = scale * observed[t] * (above[t] * downward[t])
                    n_bad += not (abs(value) <= limit)
                    products[t] = value
                for t in range(width):
                    target[t] = products[places[t]]
                accumulate_backward(weights[i, begin:end], downward, factor, gap, ranks, runs, sums)
    return n_bad == 0
