"""A whole tile of the contiguous labeling kernel on binary features, in single precision. Jitted functions only.

Counts, power, normalization and both sweeps of a row structure are done while it is in the cache. What no row
structure needs any more is never written to memory; of the tile, every value is written once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginals import multiply_marginals
from gramline.kernels.observations.count_loops import MOST_LINES, SinglePowers, Singles, count_common, raise_counts
from gramline.kernels.observations.product_loops import RowSlots, SlottedColumns
from gramline.kernels.packing import Offsets

Tile = NDArray[np.float32]

Places = NDArray[np.uint32]  # unsigned numbers are looked up faster

VECTOR = 16  # numbers of a cache line
FIRST = VECTOR - 1


class CountedSequences(NamedTuple):
    """Both sides of the tile: where sequences begin, which features they have, and what is known of their labels."""

    row_starts: Offsets
    col_starts: Offsets
    chunks: Offsets  # first structure of each chunk of columns, and the number of all
    starts: Places  # first column of each structure, counted from the start of its chunk
    shifted_starts: Places  # FIRST + col_starts
    rows: RowSlots
    cols: SlottedColumns
    powers: SinglePowers
    left: Singles  # shape (n_rows, n_labels), or (0, 0) under a uniform prior
    by_label: Singles  # shape (n_labels, n_cols), or (0, 0)


class StructureRows(NamedTuple):
    """Room for all rows of a row structure and one more; columns of the tile and one more, whose k_x is 0."""

    kx: Singles
    weights: Singles  # `kx` itself under a uniform prior
    upward: Singles  # 1+U', from column FIRST on
    downward: Singles  # shape (2, columns of a chunk + 1)


@jit
def continue_up(values: Singles, above: Singles, factor: np.float32, starts: Places, row: Singles) -> None:
    """row = 1+U' of the row below one with these values and `above` = 1+U'; 1 where a column starts a sequence."""
    before, target = above[FIRST:], row[FIRST + 1 :]  # what is written is aligned
    for t in range(len(values)):
        target[t] = 1.0 + (factor * values[t]) * before[t]
    for start in starts:
        row[start] = 1.0


@jit
def sweep_down(
    rows: StructureRows, n_rows: int, begin: int, end: int, starts: Places, factor: np.float32, scale: np.float32
) -> None:
    """upward = scale kx (1+U') (1+D') in place for one structure and the columns begin..end-1; starts count from there.

    1+D' of two rows takes turns in `downward`: a row that is read and written at places side by side is three times as
    slow. It is 1 where the next column starts a sequence, because the row below is set to 0 there.
    """
    width = end - begin
    rows.downward[:, : width + 1] = 0.0
    for i in range(n_rows - 1, -1, -1):
        values, observed = rows.weights[i + 1, begin + 1 : end + 1], rows.kx[i, begin:end]
        row, below = rows.downward[i % 2, :width], rows.downward[1 - i % 2, 1 : width + 1]
        above = rows.upward[i, FIRST + begin : FIRST + end]
        for t in range(width):
            down = np.float32(1.0) + (factor * values[t]) * below[t]
            row[t] = down
            above[t] = scale * observed[t] * (above[t] * down)
        finished = rows.downward[i % 2]
        for start in starts:
            finished[start] = 0.0


@jit
def write_rows(finished: Singles, n_cols: int, limit: np.float32, out: Tile) -> int:
    """Copy finished rows into the tile; how many values are beyond +-limit.

    Rows are made from the last to the first, but memory takes them twice as fast from the first to the last.
    """
    n_bad = np.int32(0)  # as wide as the values, for the vectors' sake
    for i in range(len(out)):
        values, target = finished[i, FIRST : FIRST + n_cols], out[i, :n_cols]
        for t in range(n_cols):
            value = values[t]
            n_bad = np.int32(n_bad + np.int32(not (abs(value) <= limit)))
            target[t] = value
    return int(n_bad)


@jit
def aligned(n_rows: int, n_cols: int) -> Singles:
    """Zeros for that many columns and at least one more, every row at the start of a cache line."""
    width = (n_cols // VECTOR + 1) * VECTOR
    memory = np.zeros(n_rows * width + VECTOR, np.float32)
    skipped = (-(memory.ctypes.data // 4)) % VECTOR
    return memory[skipped : skipped + n_rows * width].reshape(n_rows, width)


@jit
def room_for_rows(pair: CountedSequences) -> StructureRows:
    """Room for the longest row structure."""
    longest = widest = 0
    for structure in range(len(pair.row_starts) - 1):
        longest = max(longest, pair.row_starts[structure + 1] - pair.row_starts[structure])
    for chunk in range(len(pair.chunks) - 1):
        begin, end = pair.chunks[chunk], pair.chunks[chunk + 1]
        widest = max(widest, pair.col_starts[end] - pair.col_starts[begin])
    n_rows, n_cols = longest + 1, pair.col_starts[-1]
    kx = aligned(n_rows, n_cols)
    weights = kx if pair.left.shape[0] == 0 else aligned(n_rows, n_cols)
    upward = aligned(n_rows, FIRST + n_cols)
    upward[0] = 1.0
    return StructureRows(kx, weights, upward, aligned(2, widest + VECTOR))


@jit
def sweep_counted(
    pair: CountedSequences, numbers: tuple[np.float32, np.float32, np.float32], room: NDArray[Any], out: Tile
) -> bool:
    """out = scale kx (1+U') (1+D') of a whole tile; whether all of it is within +-limit. `room` is for counts."""
    row_starts, col_starts, chunks = pair.row_starts, pair.col_starts, pair.chunks
    n_cols, is_uniform = col_starts[-1], pair.left.shape[0] == 0
    rows = room_for_rows(pair)
    lines, halves = np.empty(MOST_LINES, np.int64), np.empty(pair.cols.dense.shape[1], np.uint8)
    n_bad = 0
    for structure in range(len(row_starts) - 1):
        first, last = row_starts[structure], row_starts[structure + 1]
        for i in range(last - first):
            count_common(first + i, pair.rows, pair.cols, lines, halves, room)
            raise_counts(first + i, room, pair.powers, rows.kx[i, :n_cols])
            if not is_uniform:
                left = pair.left[first + i : first + i + 1]
                multiply_marginals(left, pair.by_label, rows.kx[i : i + 1], rows.weights[i : i + 1])
            continue_up(rows.weights[i, :n_cols], rows.upward[i], numbers[0], pair.shifted_starts, rows.upward[i + 1])
        for chunk in range(len(chunks) - 1):
            begin, end = col_starts[chunks[chunk]], col_starts[chunks[chunk + 1]]
            starts = pair.starts[chunks[chunk] : chunks[chunk + 1]]
            sweep_down(rows, last - first, begin, end, starts, numbers[0], numbers[1])
        n_bad += write_rows(rows.upward, n_cols, numbers[2], out[first:last])
        rows.upward[0] = 1.0
    return n_bad == 0
