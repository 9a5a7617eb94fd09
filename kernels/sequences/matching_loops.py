"""The contiguous labeling kernel where kx is 0 or 1: only equal pairs are visited, diagonal run by run. Jitted only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginalized import MarginalTables
from gramline.kernels.packing import Floats, Ints, Offsets


class EqualColumns(NamedTuple):
    """Row i equals columns[starts[codes[i]]:starts[codes[i] + 1]], in ascending order."""

    codes: Ints  # shape (n_rows,)
    starts: Offsets  # shape (n_codes + 1,)
    columns: Ints
    n_equal: int  # number of equal pairs


class SequencePair(NamedTuple):
    """The observations of both sides as codes, and where structures begin."""

    row_starts: Offsets  # shape (n_structures + 1,)
    rows: Ints  # shape (n_rows,)
    cols: Ints  # shape (n_cols,)
    continues: Floats  # 1 where a column has a predecessor in its structure, else 0; shape (n_cols,)


@jit
def list_equal_columns(rows: Ints, cols: Ints) -> EqualColumns:
    """The columns that each row equals, listed once per code."""
    highest = -1
    for code in rows:
        highest = max(highest, code)
    for code in cols:
        highest = max(highest, code)
    local = np.empty(highest + 1, np.int32)  # only codes that occur are set: the alphabet may be far larger
    for code in rows:
        local[code] = -1
    for code in cols:
        local[code] = -1
    codes = np.empty(len(rows), np.int32)
    n_codes = 0
    for i in range(len(rows)):
        if local[rows[i]] < 0:
            local[rows[i]] = n_codes
            n_codes += 1
        codes[i] = local[rows[i]]
    starts = np.zeros(n_codes + 1, np.int64)
    for code in cols:
        if local[code] >= 0:
            starts[local[code] + 1] += 1
    for code in range(n_codes):
        starts[code + 1] += starts[code]
    free = starts.copy()
    columns = np.empty(starts[n_codes], np.int32)
    for t in range(len(cols)):
        code = local[cols[t]]
        if code >= 0:
            columns[free[code]] = t
            free[code] += 1
    n_equal = 0
    for code in codes:
        n_equal += starts[code + 1] - starts[code]
    return EqualColumns(codes, starts, columns, n_equal)


@jit
def fill_runs(
    pair: SequencePair, equal: EqualColumns, marginals: MarginalTables, scale: float, limit: float, out: NDArray[Any]
) -> int:
    """out = scale * (1+U') * (1+D') at equal pairs, 0 elsewhere; returns the first row structure beyond +-limit, or -1.

    kap of an equal pair is factor * sum_y left[i, y] right[t, y], or factor alone when there are no labels to sum
    (shape (0, 0)). A run is a stretch of equal pairs down a diagonal within one pair of structures.
    """
    row_starts, rows, cols, continues = pair.row_starts, pair.rows, pair.cols, pair.continues
    codes, starts, columns = equal.codes, equal.starts, equal.columns
    left, right, factor = marginals.left, marginals.right, marginals.factor
    n_cols = len(cols)
    n_labels = left.shape[1]
    longest = 0
    for structure in range(len(row_starts) - 1):
        longest = max(longest, row_starts[structure + 1] - row_starts[structure])
    weights, above = np.empty(longest), np.empty(longest)
    weights[:] = factor
    for structure in range(len(row_starts) - 1):
        first, last = row_starts[structure], row_starts[structure + 1]
        out[first:last] = 0.0
        is_bad = False
        for i in range(first, last):
            for place in range(starts[codes[i]], starts[codes[i] + 1]):
                t = columns[place]
                if i > first and continues[t] != 0.0 and cols[t - 1] == rows[i - 1]:
                    continue  # inside a run that began higher up
                length = 0
                up = 1.0
                while True:
                    if n_labels > 0:
                        marginal = 0.0
                        for y in range(n_labels):
                            marginal += left[i + length, y] * right[t + length, y]
                        weights[length] = factor * marginal
                    above[length] = up
                    up = 1.0 + weights[length] * up
                    length += 1
                    if i + length == last or t + length == n_cols or continues[t + length] == 0.0:
                        break
                    if rows[i + length] != cols[t + length]:
                        break
                down = 1.0
                for k in range(length - 1, -1, -1):
                    value = scale * (above[k] * down)
                    is_bad |= not (abs(value) <= limit)
                    out[i + k, t + k] = value
                    down = 1.0 + weights[k] * down
        if is_bad:
            return structure
    return -1
