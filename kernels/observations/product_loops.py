"""Dot products of sparse feature rows, one strip of rows against all columns. Jitted functions only.

A feature that many columns have is *dense*: a whole line over the columns, added with vector instructions. Any other
is *rare*: the list of its columns. Slot 2 d is dense line d, slot 2 p + 1 is rare list p, NOWHERE is no row's feature.
List 0 is empty: ABSENT is the slot of features that no column has.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets

Lines = NDArray[Any]  # words for counts (`count_loops`), float64 for sums

NOWHERE, ABSENT = -1, 1


class RowSlots(NamedTuple):
    """Feature rows in CSR form, every entry with the slot of its feature."""

    indptr: Offsets  # shape (n_rows + 1,)
    slots: Ints  # shape (nnz,)
    values: Floats  # shape (nnz,), or empty where every value is 1


class SlottedColumns(NamedTuple):
    """The columns by feature: a line over all columns for a dense one, a list of columns for a rare one."""

    dense: Lines  # shape (n_dense, n_cols) for sums; for counts a bit per column, and a line of 0 at the end
    rare_starts: Offsets  # rare list p is rare_starts[p]:rare_starts[p + 1]; list 0 is empty
    rare_cols: Ints
    rare_values: Floats  # of the length of rare_cols, or empty where every value is 1


@jit
def count_columns(row_indices: Ints, col_indices: Ints) -> Ints:
    """How many columns have each feature, int32; entries of features that do not occur hold anything.

    They are not visited where the vocabulary is far larger than the tile.
    """
    highest = -1
    for feature in row_indices:
        highest = max(highest, feature)
    for feature in col_indices:
        highest = max(highest, feature)
    if highest < 4 * (len(row_indices) + len(col_indices)):
        counts = np.zeros(highest + 1, np.int32)
    else:
        counts = np.empty(highest + 1, np.int32)
        for feature in row_indices:
            counts[feature] = 0
        for feature in col_indices:
            counts[feature] = 0
    for feature in col_indices:
        counts[feature] += 1
    return counts


@jit
def assign_slots(row_indices: Ints, col_indices: Ints, least_dense: int) -> tuple[Ints, Ints, int, Offsets]:
    """(row_slots, col_slots, n_dense, rare_starts): the slot of every entry of both sides, in the order of the rows.

    A feature that at least `least_dense` columns have is dense.
    """
    state = count_columns(row_indices, col_indices)  # of a feature: its number of columns, ~slot once it has one
    row_slots = np.empty(len(row_indices), np.int32)
    rare_starts = np.empty(len(row_indices) + 2, np.int64)  # few are used: zeros would be written to all
    rare_starts[:2] = 0
    n_dense, n_rare = 0, 1
    for e in range(len(row_indices)):
        feature = row_indices[e]
        n_columns = state[feature]
        if n_columns >= least_dense:
            state[feature] = ~(2 * n_dense)
            n_dense += 1
        elif n_columns == 0:
            state[feature] = ~ABSENT
        elif n_columns > 0:
            state[feature] = ~(2 * n_rare + 1)
            rare_starts[n_rare + 1] = rare_starts[n_rare] + n_columns
            n_rare += 1
        row_slots[e] = ~state[feature]
    col_slots = np.empty(len(col_indices), np.int32)
    for e in range(len(col_indices)):
        has_slot = state[col_indices[e]] < 0
        col_slots[e] = ~state[col_indices[e]] if has_slot else NOWHERE
    return row_slots, col_slots, n_dense, rare_starts[: n_rare + 1]


@jit
def place_features(col_indptr: Offsets, col_slots: Ints, col_values: Floats, cols: SlottedColumns) -> None:
    """Fill the dense lines and the rare lists from the columns, for sums."""
    dense, rare_cols, rare_values = cols.dense, cols.rare_cols, cols.rare_values
    dense[:] = 0
    free = cols.rare_starts.copy()
    for t in range(len(col_indptr) - 1):
        for e in range(col_indptr[t], col_indptr[t + 1]):
            slot = col_slots[e]
            if slot == NOWHERE:
                continue
            if slot & 1:
                place = free[slot >> 1]
                free[slot >> 1] += 1
                rare_cols[place] = t
                rare_values[place] = col_values[e]
            else:
                dense[slot >> 1, t] = col_values[e]


@jit
def fill_products(first: int, rows: RowSlots, cols: SlottedColumns, out: Floats) -> None:
    """out[i, t] = dot(first + i, t) for real features, always summed in the order of the features: the same bytes
    whatever the tile holds besides, and the same with rows and columns swapped."""
    slots, values, dense = rows.slots, rows.values, cols.dense
    rare_starts, rare_cols, rare_values = cols.rare_starts, cols.rare_cols, cols.rare_values
    n_cols = out.shape[1]
    for i in range(len(out)):
        line = out[i]
        line[:] = 0.0
        e, end = rows.indptr[first + i], rows.indptr[first + i + 1]
        while e < end:
            slot, value = slots[e], values[e]
            if slot & 1:
                for k in range(rare_starts[slot >> 1], rare_starts[(slot >> 1) + 1]):
                    line[rare_cols[k]] += value * rare_values[k]
                e += 1
                continue
            if e + 3 < end and not (slots[e + 1] | slots[e + 2] | slots[e + 3]) & 1:
                value_1, value_2, value_3 = values[e + 1], values[e + 2], values[e + 3]
                line_0, line_1 = dense[slot >> 1], dense[slots[e + 1] >> 1]
                line_2, line_3 = dense[slots[e + 2] >> 1], dense[slots[e + 3] >> 1]
                for t in range(n_cols):
                    line[t] = (
                        ((line[t] + value * line_0[t]) + value_1 * line_1[t]) + value_2 * line_2[t]
                    ) + value_3 * line_3[t]
                e += 4
                continue
            line_0 = dense[slot >> 1]
            for t in range(n_cols):
                line[t] += value * line_0[t]
            e += 1


@jit
def raise_to_power(values: Floats, offset: float, degree: int) -> None:
    """values = (values + offset)^degree in place, by repeated multiplication."""
    for i in range(values.shape[0]):
        line = values[i]
        for t in range(len(line)):
            base = line[t] + offset
            power = base
            for _ in range(degree - 1):
                power *= base
            line[t] = power


@jit
def sum_squares(indptr: Offsets, values: Floats, norms: Floats) -> None:
    """norms[r] = sum of the squared values of row r, in the order of the features."""
    for r in range(len(norms)):
        norms[r] = 0.0
        for e in range(indptr[r], indptr[r + 1]):
            norms[r] += values[e] * values[e]


@jit
def to_distances(row_norms: Floats, col_norms: Floats, products: Floats) -> None:
    """products = max(0, |x|^2 + |x'|^2 - 2 dot) in place; rounding must not make a distance negative."""
    for i in range(len(row_norms)):
        for t in range(len(col_norms)):
            products[i, t] = max(0.0, (row_norms[i] + col_norms[t]) - 2.0 * products[i, t])


@jit
def scale_cells(row_scales: Floats, col_scales: Floats, values: Floats) -> None:
    """values[i, t] *= row_scales[i] col_scales[t] in place."""
    for i in range(len(row_scales)):
        for t in range(len(col_scales)):
            values[i, t] *= row_scales[i] * col_scales[t]
