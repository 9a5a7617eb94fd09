"""A whole tile of the contiguous labeling kernel on binary features, in single precision. Jitted functions only.

One row structure after the other: its counts against all columns, then chunk by chunk of columns k_x and D' from its
last row to its first, U' and the finished values from its first row to its last. All of a chunk stays in the cache, and
of the tile every value is written once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import ask_for, jit, jit_apart
from gramline.kernels.marginals import multiply_marginals
from gramline.kernels.observations.count_loops import (
    PADDING,
    Counts,
    SinglePowers,
    Singles,
    count_common,
    raise_rows,
    raised,
    room_for_counts,
)
from gramline.kernels.observations.product_loops import RowSlots, SlottedColumns
from gramline.kernels.packing import Offsets

Tile = NDArray[np.float32]
Places = NDArray[np.uint32]  # unsigned numbers are looked up faster
Numbers = tuple[np.float32, np.float32, np.float32]  # factor, scale and limit
Power = tuple[np.float32, int, np.float32]  # offset, degree and scale of the row

VECTOR = 16  # numbers of a cache line
FIRST = VECTOR - 1
PIECE = 256  # columns of a row that are written at once while as many of the next row are asked for; measured
ONE = np.float32(1.0)


class CountedSequences(NamedTuple):
    """Both sides of the tile: where sequences begin, which features they have, and what is known of their labels."""

    row_starts: Offsets
    col_starts: Offsets
    chunks: Offsets  # first structure of each chunk of columns, and the number of all
    bounds: Places  # of every chunk: first column of each structure and its own end, counted from its start
    rows: RowSlots
    cols: SlottedColumns
    powers: SinglePowers  # with scales and units for PADDING columns more
    left: Singles  # shape (n_rows, n_labels), or (0, 0) under a uniform prior
    by_label: Singles  # shape (n_labels, n_cols), or (0, 0)


class ColumnChunk(NamedTuple):
    """Some whole structures of the columns."""

    begin: int
    end: int
    width: int  # how many columns are computed; those from `end` on are never written
    bounds: Places  # first column of each structure, and the end, counted from `begin`


class ChunkRows(NamedTuple):
    """Room for the rows of a row structure over a chunk of columns and its padding; a row starts a cache line."""

    kx: Singles  # no rows where it is computed twice
    weights: Singles  # `kx` itself under a uniform prior
    below: Singles  # kap (1+D'), a row and a column more
    above: Singles  # kap (1+U') of two rows in turns, from column VECTOR on


@jit_apart
def continue_down(weights: Singles, below: Singles, factor: np.float32, row: Singles) -> None:
    """row = kap (1+D'), where 1+D' = 1 + what is below and one to the right."""
    for t in range(len(row)):
        row[t] = (factor * weights[t]) * (ONE + below[t])


@jit_apart
def finish_row(
    kx: Singles, weights: Singles, above: Singles, below: Singles, numbers: Numbers, row: Singles, finished: Singles
) -> int:
    """finished = scale kx (1+U') (1+D') and row = kap (1+U'); how many values, none negative, are beyond the limit."""
    factor, scale, limit = numbers
    n_bad = np.int32(0)  # as wide as the values, for the vectors' sake
    for t in range(len(finished)):
        up = ONE + above[t]
        value = (scale * kx[t]) * (up * (ONE + below[t]))
        row[t] = (factor * weights[t]) * up
        n_bad = np.int32(n_bad + np.int32(not (value <= limit)))
        finished[t] = value
    return int(n_bad)


@jit_apart
def continue_counts(
    counts: Counts, power: Power, scales: Singles, below: Singles, factor: np.float32, row: Singles
) -> None:
    """`continue_down` under a uniform prior, kx from counts: to compute it twice takes less time than to keep it."""
    offset, degree, row_scale = power
    for t in range(len(row)):
        kx = raised(np.float32(counts[t]) + offset, degree) * (row_scale * scales[t])
        row[t] = (factor * kx) * (ONE + below[t])


@jit_apart
def finish_counts(
    counts: Counts,
    power: Power,
    scales: Singles,
    above: Singles,
    below: Singles,
    numbers: Numbers,
    row: Singles,
    finished: Singles,
) -> int:
    """`finish_row` under a uniform prior, kx from counts."""
    offset, degree, row_scale = power
    factor, scale, limit = numbers
    n_bad = np.int32(0)
    for t in range(len(finished)):
        kx = raised(np.float32(counts[t]) + offset, degree) * (row_scale * scales[t])
        up = ONE + above[t]
        value = (scale * kx) * (up * (ONE + below[t]))
        row[t] = (factor * kx) * up
        n_bad = np.int32(n_bad + np.int32(not (value <= limit)))
        finished[t] = value
    return int(n_bad)


@jit
def is_plain(pair: CountedSequences) -> bool:
    """Whether a row of kx is a power of its counts and the only weights: it is not kept, then."""
    return len(pair.left) == 0 and len(pair.powers.row_units) == 0


@jit
def sweep_down(
    pair: CountedSequences, chunk: ColumnChunk, first: int, factor: np.float32, counts: Counts, rows: ChunkRows
) -> None:
    """`below`, and kx and weights where they are kept, of the row structure that starts at row `first`.

    `below` is 0 where a structure starts: the column before is the last of its own.
    """
    begin, end, width, bounds, n_rows = chunk.begin, chunk.end, chunk.width, chunk.bounds, len(counts)
    kx, weights, below, left, plain = rows.kx, rows.weights, rows.below, pair.left, is_plain(pair)
    offset, degree, row_scales = pair.powers.offset, pair.powers.degree, pair.powers.row_scales
    scales = pair.powers.col_scales[begin:]
    if not plain:
        raise_rows(first, (begin, begin + width), counts, pair.powers, kx)
    if len(left) > 0:
        multiply_marginals(left[first : first + n_rows], pair.by_label[:, begin:end].copy(), kx, weights)
    below[n_rows, :] = 0.0
    for i in range(n_rows - 1, -1, -1):
        row, beneath = below[i], below[i + 1, 1 : width + 1]
        if plain:
            power, found = (offset, degree, row_scales[first + i]), counts[i, begin : begin + width]
            continue_counts(found, power, scales, beneath, factor, row[:width])
        else:
            continue_down(weights[i, :width], beneath, factor, row[:width])
        for bound in bounds:
            row[bound] = 0.0


@jit
def sweep_up(
    pair: CountedSequences, chunk: ColumnChunk, first: int, numbers: Numbers, counts: Counts, rows: ChunkRows, out: Tile
) -> int:
    """Write the row structure that starts at row `first` and a chunk; how many values are beyond the limit."""
    begin, end, bounds, width = chunk.begin, chunk.end, chunk.bounds, chunk.end - chunk.begin
    kx, weights, below, above, plain = rows.kx, rows.weights, rows.below, rows.above, is_plain(pair)
    offset, degree, row_scales = pair.powers.offset, pair.powers.degree, pair.powers.row_scales
    scales = pair.powers.col_scales[begin:]
    above[:] = 0.0
    n_bad = 0
    for i in range(len(counts)):
        before, after, beneath = above[1 - i % 2, FIRST:], above[i % 2, FIRST:], below[i + 1, 1 : width + 1]
        target, coming = out[first + i, begin:end], out[min(first + i + 1, len(out) - 1), begin:end]
        if plain:
            power, found = (offset, degree, row_scales[first + i]), counts[i, begin:end]
            for low in range(0, width, PIECE):
                high = min(low + PIECE, width)
                row, finished, up, down = after[low + 1 : high + 1], target[low:high], before[low:], beneath[low:]
                ask_for(coming[low:high])
                n_bad += finish_counts(found[low:], power, scales[low:], up, down, numbers, row, finished)
        else:
            for low in range(0, width, PIECE):
                high = min(low + PIECE, width)
                row, finished, up, down = after[low + 1 : high + 1], target[low:high], before[low:], beneath[low:]
                ask_for(coming[low:high])
                n_bad += finish_row(kx[i, low:], weights[i, low:], up, down, numbers, row, finished)
        for bound in bounds:
            after[bound] = 0.0
    return n_bad


@jit
def padded(n_cols: int) -> int:
    """The next number of columns that leaves no rest."""
    return (n_cols + PADDING - 1) // PADDING * PADDING


@jit
def aligned(n_rows: int, n_cols: int) -> Singles:
    """Zeros for that many columns and at least one more, every row at the start of a cache line."""
    width = (n_cols // VECTOR + 1) * VECTOR
    memory = np.zeros(n_rows * width + VECTOR, np.float32)
    skipped = (-(memory.ctypes.data // 4)) % VECTOR
    return memory[skipped : skipped + n_rows * width].reshape(n_rows, width)


@jit
def room_for_chunks(pair: CountedSequences, longest: int) -> ChunkRows:
    """Room for the longest row structure and the widest chunk."""
    widest = 0
    for chunk in range(len(pair.chunks) - 1):
        begin, end = pair.chunks[chunk], pair.chunks[chunk + 1]
        widest = max(widest, pair.col_starts[end] - pair.col_starts[begin])
    width = padded(widest)
    kx = aligned(0 if is_plain(pair) else longest, width)
    weights = kx if pair.left.shape[0] == 0 else aligned(longest, width)
    return ChunkRows(kx, weights, aligned(longest + 1, width), aligned(2, VECTOR + width))


@jit
def sweep_counted(pair: CountedSequences, numbers: Numbers, room: Counts, out: Tile) -> bool:
    """out = scale kx (1+U') (1+D') of a whole tile; whether all of it is within the limit.

    `room` is for the counts of the longest row structure, with PADDING columns more than a line has bits.
    """
    row_starts, chunks = pair.row_starts, pair.chunks
    count_room = room_for_counts(pair.cols)
    rows = room_for_chunks(pair, len(room))
    n_bad = 0
    for structure in range(len(row_starts) - 1):
        first, last = row_starts[structure], row_starts[structure + 1]
        counts = room[: last - first]
        count_common(first, pair.rows, pair.cols, count_room, counts)
        for number in range(len(chunks) - 1):
            begin, end = pair.col_starts[chunks[number]], pair.col_starts[chunks[number + 1]]
            bounds = pair.bounds[chunks[number] + number : chunks[number + 1] + number + 1]
            chunk = ColumnChunk(begin, end, padded(end - begin), bounds)
            sweep_down(pair, chunk, first, numbers[0], counts, rows)
            n_bad += sweep_up(pair, chunk, first, numbers, counts, rows, out)
    return n_bad == 0
