"""Common features of binary rows, counted one row against all columns, and k_x from the counts. Jitted functions only.

Dense lines hold two columns a byte: column t in the lower half of byte t, column t + n/2 in its upper half. Lines are
added as bytes, up to 15 of them before a half can overflow into the other. The last line is 0: it fills up fives.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.observations.product_loops import NOWHERE, RowSlots, SlottedColumns
from gramline.kernels.packing import Floats, Ints, Offsets

Counts = NDArray[Any]  # unsigned integers, wide enough
Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]

MOST_LINES = 15  # that a half byte can count


class SinglePowers(NamedTuple):
    """k_x = (x . x' + offset)^degree row_scale col_scale in single precision, degree 1 to 4.

    Where there are units, x . x' is multiplied by those of row and column first.
    """

    offset: np.float32
    degree: int
    row_scales: Singles  # shape (n_rows,)
    col_scales: Singles  # shape (n_cols,)
    row_units: Singles  # shape (n_rows,), or empty
    col_units: Singles  # shape (n_cols,), or empty


@jit
def place_columns(col_indptr: Offsets, col_slots: Ints, cols: SlottedColumns) -> None:
    """Fill the dense lines and the rare lists from binary columns."""
    dense, rare_cols = cols.dense, cols.rare_cols
    half = dense.shape[1]
    dense[:] = 0
    free = cols.rare_starts.copy()
    for t in range(len(col_indptr) - 1):
        byte, one = (t, 1) if t < half else (t - half, 16)
        for e in range(col_indptr[t], col_indptr[t + 1]):
            slot = col_slots[e]
            if slot == NOWHERE:
                continue
            if slot & 1:
                rare_cols[free[slot >> 1]] = t
                free[slot >> 1] += 1
            else:
                dense[slot >> 1, byte] += one


@jit
def add_lines(dense: Bytes, lines: Offsets, n_lines: int, halves: Bytes, counts: Counts) -> None:
    """counts += the sum of the dense lines lines[:n_lines], at most MOST_LINES; `halves` is room for a line."""
    n_bytes = len(halves)
    while n_lines % 5 != 0:
        lines[n_lines] = len(dense) - 1
        n_lines += 1
    halves[:] = 0
    for k in range(0, n_lines, 5):
        line_0, line_1, line_2 = dense[lines[k]], dense[lines[k + 1]], dense[lines[k + 2]]
        line_3, line_4 = dense[lines[k + 3]], dense[lines[k + 4]]
        for t in range(n_bytes):
            halves[t] += line_0[t] + line_1[t] + line_2[t] + line_3[t] + line_4[t]
    lower, upper = counts[:n_bytes], counts[n_bytes:]
    for t in range(n_bytes):
        lower[t] += halves[t] & 15
    for t in range(n_bytes):
        upper[t] += halves[t] >> 4


@jit
def count_common(row: int, rows: RowSlots, cols: SlottedColumns, lines: Offsets, halves: Bytes, counts: Counts) -> None:
    """counts[t] = number of features that row and column t share; `counts` has two entries per byte of a line.

    `lines` is room for MOST_LINES numbers, `halves` for a line.
    """
    dense, rare_starts, rare_cols = cols.dense, cols.rare_starts, cols.rare_cols
    n_lines = 0
    counts[:] = 0
    for e in range(rows.indptr[row], rows.indptr[row + 1]):
        slot = rows.slots[e]
        if slot & 1:
            for k in range(rare_starts[slot >> 1], rare_starts[(slot >> 1) + 1]):
                counts[rare_cols[k]] += 1
            continue
        lines[n_lines] = slot >> 1
        n_lines += 1
        if n_lines == MOST_LINES:
            add_lines(dense, lines, n_lines, halves, counts)
            n_lines = 0
    if n_lines > 0:
        add_lines(dense, lines, n_lines, halves, counts)


@jit
def fill_from_counts(
    first: int, rows: RowSlots, cols: SlottedColumns, table: Floats, counts: Counts, out: Floats
) -> None:
    """out[i, t] = table[dot(first + i, t)]; `counts` is room for a row."""
    lines, halves = np.empty(MOST_LINES, np.int64), np.empty(cols.dense.shape[1], np.uint8)
    for i in range(len(out)):
        count_common(first + i, rows, cols, lines, halves, counts)
        line = out[i]
        for t in range(len(line)):
            line[t] = table[counts[t]]


@jit
def fill_from_distances(
    first: int, rows: RowSlots, cols: SlottedColumns, col_sizes: Offsets, table: Floats, counts: Counts, out: Floats
) -> None:
    """out[i, t] = table[|x - x'|^2]; |x - x'|^2 = size + size' - 2 dot."""
    lines, halves = np.empty(MOST_LINES, np.int64), np.empty(cols.dense.shape[1], np.uint8)
    for i in range(len(out)):
        count_common(first + i, rows, cols, lines, halves, counts)
        line = out[i]
        size = rows.indptr[first + i + 1] - rows.indptr[first + i]
        for t in range(len(line)):
            line[t] = table[size + col_sizes[t] - 2 * np.int64(counts[t])]


@jit
def raise_counts(row: int, counts: Counts, powers: SinglePowers, line: Singles) -> None:
    """line[t] = k_x of the row from its counts, all in float32: one loop, or two where rows are of unit length."""
    offset, degree = powers.offset, powers.degree
    scale, scales = powers.row_scales[row], powers.col_scales
    if len(powers.col_units) == 0:
        for t in range(len(line)):
            base = np.float32(counts[t]) + offset
            power = base
            if degree > 1:
                power *= base
            if degree > 2:
                power *= base
            if degree > 3:
                power *= base
            line[t] = power * (scale * scales[t])
        return
    unit, units = powers.row_units[row], powers.col_units
    for t in range(len(line)):
        line[t] = np.float32(counts[t]) * (unit * units[t]) + offset
    for t in range(len(line)):
        base = line[t]
        power = base
        if degree > 1:
            power *= base
        if degree > 2:
            power *= base
        if degree > 3:
            power *= base
        line[t] = power * (scale * scales[t])


@jit
def fill_powers(
    first: int, rows: RowSlots, cols: SlottedColumns, powers: SinglePowers, counts: Counts, out: Singles
) -> None:
    """out[i, t] = k_x of row first + i and column t in float32; `counts` is room for a row."""
    lines, halves = np.empty(MOST_LINES, np.int64), np.empty(cols.dense.shape[1], np.uint8)
    for i in range(len(out)):
        count_common(first + i, rows, cols, lines, halves, counts)
        raise_counts(first + i, counts, powers, out[i])
