"""Tiles as memory: where a tile is written, when it is symmetric, whether its values fit, and how work on it is cut.

Knows packed structures and arrays; refuses to know a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gramline.kernels._jit import jit
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Offsets, Packed

Tile = NDArray[Any]

STRIP_BYTES = 1 << 20  # kx of one strip: with as much again for 1 + U' it stays in the cache between the sweeps
CHUNK_COLUMNS = 512  # the tables of a recursion over one chunk stay in a fast cache


def tile_memory(n_rows: int, n_cols: int, dtype: DTypeLike, memory: Tile | None) -> Tile:
    """Where to write a tile: new memory, or the first rows of `memory`, C-contiguous but perhaps wider."""
    return np.empty((n_rows, n_cols), dtype) if memory is None else memory[:n_rows]


def placed(tile: Tile, dtype: DTypeLike, memory: Tile | None) -> Tile:
    """A finished tile as `dtype`, in `memory` where that is given."""
    if memory is None:
        return tile.astype(dtype, copy=False)
    target = memory[: tile.shape[0], : tile.shape[1]]
    target[:] = tile
    return target


def is_same(rows: Packed, cols: Packed) -> bool:
    """Whether both sides hold the same structures, so that the tile is symmetric."""
    if rows is cols:
        return True
    if len(rows) != len(cols) or not np.array_equal(rows.symbols, cols.symbols):
        return False
    left, right = rows.arrays(), cols.arrays()
    # Equal symbols are equal observations, so the features are equal too; no kernel reads the labels or the table.
    names = {name for name in left.keys() | right.keys() if not name.startswith("feature_")} - {"labels", "table"}
    return all(name in left and name in right and np.array_equal(left[name], right[name]) for name in names)


@jit
def mirror(tile: Tile) -> None:
    """Copy the upper triangle of a square tile onto its lower one, block by block to stay in the cache."""
    n = tile.shape[0]
    block = 32
    for i in range(0, n, block):
        for j in range(0, i + 1, block):
            for r in range(i, min(i + block, n)):
                for s in range(j, min(j + block, r)):
                    tile[r, s] = tile[s, r]


def require_fit(tile: Tile, dtype: DTypeLike, kernel: str, advice: str) -> None:
    """Refuse a value beyond the range of `dtype`; the error names its row and its column."""
    largest = float(np.finfo(np.dtype(dtype)).max)
    if tile.size and not tile.max() <= largest:
        row, column = (int(index) for index in np.argwhere(~(tile <= largest))[0])
        raise KernelOverflowError(kernel, row, column, np.dtype(dtype).name, advice)


def structure_runs(offsets: Offsets, limit: int) -> Iterator[tuple[int, int]]:
    """Consecutive runs (first, last) of whole structures of at most `limit` entries; at least one structure each.

    The entries of structure s are offsets[s]:offsets[s + 1].
    """
    first, n_structures = 0, len(offsets) - 1
    while first < n_structures:
        last = int(np.searchsorted(offsets, offsets[first] + limit, side="right")) - 1
        last = min(max(last, first + 1), n_structures)
        yield first, last
        first = last


def row_strips(starts: Offsets, n_cols: int) -> Iterator[tuple[int, int]]:
    """Runs (first, last) of row structures, each of about STRIP_BYTES of kx against `n_cols` columns."""
    return structure_runs(starts, max(1, STRIP_BYTES // (8 * max(1, n_cols))))


def chunk_starts(starts: Offsets, width: int | None = None) -> Offsets:
    """First column of each chunk, and the end; a chunk has at most `width` columns, unless one structure has more."""
    runs = structure_runs(starts, CHUNK_COLUMNS if width is None else width)
    return np.array([0, *(int(starts[last]) for _, last in runs)], np.int64)
