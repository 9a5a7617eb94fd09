"""A whole tile of the contiguous labeling kernel on binary features, in single precision. Jitted functions only.

Counts, power, normalization and both sweeps of a row structure are done while it is in the cache. What no row
structure needs any more is never written to memory; of the tile, every value is written once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginals import multiply_marginals
from gramline.kernels.observations.count_loops import SinglePowers, Singles, count_common, raise_counts
from gramline.kernels.observations.product_loops import RowSlots, SlottedColumns
from gramline.kernels.packing import Offsets


class CountedSequences(NamedTuple):
    """Both sides of the tile: where sequences begin, which features they have, and what is known of their labels."""

    row_starts: Offsets
    col_starts: Offsets
    chunks: Offsets  # first structure of each chunk of columns, and the number of all
    rows: RowSlots
    cols: SlottedColumns
    powers: SinglePowers
    left: Singles  # shape (n_rows, n_labels), or (0, 0) under a uniform prior
    by_label: Singles  # shape (n_labels, n_cols), or (0, 0)


@jit
def sweep_up(weights: Singles, factor: np.float32, starts: Offsets, begin: int, end: int, upward: Singles) -> None:
    """upward[i, t] = 1+U' of all rows of a structure and the columns begin..end-1, where the `starts` lie."""
    width = end - begin
    upward[0, :width] = 1.0
    for i in range(1, len(weights)):
        values, above, row = weights[i - 1, begin : end - 1], upward[i - 1, : width - 1], upward[i, 1:width]
        for t in range(width - 1):
            row[t] = 1.0 + (factor * values[t]) * above[t]
        for start in starts:
            upward[i, start - begin] = 1.0


@jit
def sweep_down(
    kx: Singles,
    weights: Singles,
    numbers: tuple[np.float32, np.float32, np.float32],
    starts: Offsets,
    begin: int,
    end: int,
    upward: Singles,
    downward: Singles,
    out: NDArray[Any],
) -> int:
    """out = scale kx (1+U') (1+D') for the same rows and columns; how many values are beyond +-limit.

    `numbers` are factor, scale and limit. `downward` has an entry more than there are columns, and so do kx and
    weights: 1+D' of a column whose successor starts a sequence is 1, because downward is set to 0 there first.
    """
    factor, scale, limit = numbers
    width, n_bad = end - begin, 0
    downward[: width + 1] = 0.0
    for i in range(len(kx) - 1, -1, -1):
        observed, above, target = kx[i, begin:end], upward[i, :width], out[i, begin:end]
        values = weights[i + 1, begin + 1 : end + 1]
        for t in range(width):
            downward[t] = 1.0 + (factor * values[t]) * downward[t + 1]
        for t in range(width):
            value = scale * observed[t] * (above[t] * downward[t])
            n_bad += not (abs(value) <= limit)
            target[t] = value
        for start in starts:
            downward[start - begin] = 0.0
    return n_bad


@jit
def sweep_counted(
    pair: CountedSequences, numbers: tuple[np.float32, np.float32, np.float32], room: NDArray[Any], out: NDArray[Any]
) -> bool:
    """out = scale kx (1+U') (1+D') of a whole tile; whether all of it is within +-limit. `room` is for counts."""
    row_starts, n_cols = pair.row_starts, pair.col_starts[-1]
    is_uniform = pair.left.shape[0] == 0
    longest = widest = 0
    for structure in range(len(row_starts) - 1):
        longest = max(longest, row_starts[structure + 1] - row_starts[structure])
    for chunk in range(len(pair.chunks) - 1):
        widest = max(widest, pair.col_starts[pair.chunks[chunk + 1]] - pair.col_starts[pair.chunks[chunk]])
    kx = np.zeros((longest + 1, n_cols + 1), np.float32)
    weights = kx if is_uniform else np.zeros((longest + 1, n_cols + 1), np.float32)
    upward, downward = np.empty((longest, widest + 1), np.float32), np.empty(widest + 1, np.float32)
    halves = np.empty(pair.cols.dense.shape[1], np.uint8)
    n_bad = 0
    for structure in range(len(row_starts) - 1):
        first, last = row_starts[structure], row_starts[structure + 1]
        n_rows = last - first
        for i in range(n_rows):
            count_common(first + i, pair.rows, pair.cols, halves, room)
            raise_counts(first + i, room, pair.powers, kx[i, :n_cols])
        if not is_uniform:
            multiply_marginals(pair.left[first:last], pair.by_label, kx, weights)
        for chunk in range(len(pair.chunks) - 1):
            starts = pair.col_starts[pair.chunks[chunk] : pair.chunks[chunk + 1]]
            begin, end = starts[0], pair.col_starts[pair.chunks[chunk + 1]]
            if begin < end:
                sweep_up(weights[:n_rows], numbers[0], starts, begin, end, upward)
                n_bad += sweep_down(
                    kx[:n_rows], weights[: n_rows + 1], numbers, starts, begin, end, upward, downward, out[first:last]
                )
    return n_bad == 0
