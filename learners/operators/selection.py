"""Some rows and columns of a tiled matrix, gathered from the tiles that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.layout import GramLayout

Key = tuple[int, int]
Stream = Callable[[list[Key]], Iterable[tuple[Key, Tile]]]  # stored tiles by key, in the order asked for


def select_rows(
    layout: GramLayout, stream: Stream, rows: Indices, cols: Indices, dtype: np.dtype[Any] | None = None
) -> Tile:
    """G[rows][:, cols], float64 unless `dtype` says otherwise.

    Every tile that holds some of it is read once, also when it serves (i, j) and (j, i).
    """
    row_groups, col_groups = by_block(layout.rows.block_starts, rows), by_block(layout.cols.block_starts, cols)
    result = np.empty((len(rows), len(cols)), dtype)
    wanted = {(i, j) if i <= j or not layout.is_symmetric else (j, i) for i in row_groups for j in col_groups}
    for (i, j), tile in stream(sorted(wanted)):
        sides = [(i, j, tile)] if i == j or not layout.is_symmetric else [(i, j, tile), (j, i, tile.T)]
        for left, right, side in sides:
            if left in row_groups and right in col_groups:
                to_rows, to_cols = row_groups[left], col_groups[right]
                from_rows = rows[to_rows] - layout.rows.block_starts[left]
                from_cols = cols[to_cols] - layout.cols.block_starts[right]
                result[np.ix_(to_rows, to_cols)] = side[np.ix_(from_rows, from_cols)]
    return result


def by_block(block_starts: Indices, rows: Indices) -> dict[int, Indices]:
    """For every block that holds some of `rows`, in order: their places in `rows`."""
    blocks = np.searchsorted(block_starts, rows, side="right") - 1
    return {block: np.flatnonzero(blocks == block) for block in np.unique(blocks).tolist()}
