"""Some rows and columns of a tiled matrix, gathered from the tiles that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.operators.layout import GramLayout

Key = tuple[int, int]
Stream = Callable[[list[Key]], Iterable[tuple[Key, NDArray[Any]]]]  # stored tiles by key, in the order asked for


def select_rows(
    layout: GramLayout, stream: Stream, rows: NDArray[np.int64], cols: NDArray[np.int64], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """G[rows][:, cols]; every tile that holds some of it is read once, also when it serves (i, j) and (j, i)."""
    row_groups, col_groups = _by_block(layout.rows.block_starts, rows), _by_block(layout.cols.block_starts, cols)
    result = np.empty((len(rows), len(cols)), dtype)
    wanted = {(i, j) if i <= j or not layout.is_symmetric else (j, i) for i in row_groups for j in col_groups}
    for (i, j), tile in stream(sorted(wanted)):
        sides = [(i, j, tile)] if i == j or not layout.is_symmetric else [(i, j, tile), (j, i, tile.T)]
        for left, right, side in sides:
            if left in row_groups and right in col_groups:
                (to_rows, from_rows), (to_cols, from_cols) = row_groups[left], col_groups[right]
                result[np.ix_(to_rows, to_cols)] = side[np.ix_(from_rows, from_cols)]
    return result


def _by_block(
    block_starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For every block that holds some of `rows`: where they stand in `rows`, and where in the block."""
    blocks = np.searchsorted(block_starts, rows, side="right") - 1
    return {
        int(block): (found, rows[found] - block_starts[block])
        for block in np.unique(blocks)
        for found in [np.flatnonzero(blocks == block)]
    }
