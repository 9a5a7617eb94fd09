"""The contiguous labeling kernel where kx is 0 or 1: only equal pairs are visited, diagonal run by run. Jitted only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginals import MarginalTables
from gramline.kernels.observations.equal_columns import EqualColumns
from gramline.kernels.packing import Floats, Ints, Offsets


class SequencePair(NamedTuple):
    """The observations of both sides as codes, and where structures begin."""

    row_starts: Offsets  # shape (n_structures + 1,)
    rows: Ints  # shape (n_rows,)
    cols: Ints  # shape (n_cols,)
    continues: Floats  # 1 where a column has a predecessor in its structure, else 0; shape (n_cols,)


@jit
def fill_runs(
    pair: SequencePair,
    equal: EqualColumns,
    marginals: MarginalTables,
    scale: np.floating[Any],
    limit: np.floating[Any],
    out: NDArray[Any],
) -> int:
    """out = scale * (1+U') * (1+D') at equal pairs, 0 elsewhere; returns the first row structure beyond +-limit, or -1.

    kap of an equal pair is factor * sum_y left[i, y] right[t, y], or factor alone when there are no labels to sum
    (shape (0, 0)). A run is a stretch of equal pairs down a diagonal within one pair of structures. In the precision of
    the tables, operation by operation what the sweeps do: the same bytes.
    """
    row_starts, rows, cols, continues = pair.row_starts, pair.rows, pair.cols, pair.continues
    codes, starts, columns = equal.codes, equal.starts, equal.columns
    left, right, factor = marginals.left, marginals.right, marginals.factor
    n_cols = len(cols)
    n_labels = left.shape[1]
    longest = 0
    for structure in range(len(row_starts) - 1):
        longest = max(longest, row_starts[structure + 1] - row_starts[structure])
    weights, above = np.empty(longest + 1, left.dtype), np.ones(longest + 1, left.dtype)
    weights[:] = factor
    one = above[0]
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
                up = one
                while True:
                    if n_labels > 0:
                        marginal = left[i + length, 0] * right[t + length, 0]
                        for y in range(1, n_labels):
                            marginal += left[i + length, y] * right[t + length, y]
                        weights[length] = factor * marginal
                    above[length] = up
                    up = one + weights[length] * up
                    length += 1
                    if i + length == last or t + length == n_cols or continues[t + length] == 0.0:
                        break
                    if rows[i + length] != cols[t + length]:
                        break
                down = one
                for k in range(length - 1, -1, -1):
                    value = scale * (above[k] * down)
                    is_bad |= not (abs(value) <= limit)
                    out[i + k, t + k] = value
                    down = one + weights[k] * down
        if is_bad:
            return structure
    return -1
