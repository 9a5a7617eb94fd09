"""One tile of a stored Cholesky factor, or one block column of its inverse: what a worker is asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Matrix
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.tiled_cholesky import ScaledTiles, TiledFactor, factor_tile
from gramline.learners.operators.layout import Key, select_rows
from gramline.pipeline.errors import RunError
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import Cache, planned_store
from gramline.pipeline.storage.groups import open_group, read_array
from gramline.pipeline.storage.tile_array import ChunkError, TileArray

FACTOR = "factor"  # name of the array that holds the tiles of L
SCRATCHES_KEPT = 4


@dataclass(frozen=True)
class FactorTask:
    """Tile (i, j) of the factor in `scratch`, of rows of a store."""

    store: str
    identity: str
    scratch: str
    i: int
    j: int

    def at(self, i: int, j: int) -> FactorTask:
        return replace(self, i=i, j=j)


class FactorTiles:
    """The tiles of L in a scratch group, and what B is made of: rows, scale and shift."""

    def __init__(self, url: str, tiles: TileArray, rows: NDArray[np.int64], scale: Matrix, shift: Matrix) -> None:
        self.rows, self.scale, self.shift = rows, scale, shift
        self._url = url
        self._tiles = tiles
        block = tiles.chunks[0]
        self.starts = np.array([*range(0, len(rows), block), len(rows)], np.int64)

    @classmethod
    def open(cls, url: str) -> FactorTiles:
        group = open_group(url)
        rows, scale, shift = (read_array(group, name, url) for name in ("rows", "scale", "shift"))
        return cls(url, TileArray(url, FACTOR), rows, scale, shift)

    def get(self, i: int, j: int) -> Matrix:
        try:
            tile = self._tiles.read(i, j)
        except ChunkError as error:
            raise RunError(
                f"tile ({i}, {j}) of the factor {self._url} cannot be read: {error.problem}",
                advice="remove that folder and run again",
            ) from None
        return tile[: self._size(i), : self._size(j)]

    def put(self, i: int, j: int, tile: Matrix) -> None:
        padded = np.zeros(self._tiles.chunks)
        padded[: tile.shape[0], : tile.shape[1]] = tile
        self._tiles.write(i, j, padded)

    def present(self) -> set[tuple[int, int]]:
        return self._tiles.present()

    def _size(self, block: int) -> int:
        return int(self.starts[block + 1] - self.starts[block])


class _ChosenTiles:
    """Lower tiles of G[rows, rows], cut at the blocks of the factor."""

    def __init__(self, store: TileStore, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
        self._store, self._rows, self._starts = store, rows, starts

    def get(self, i: int, j: int) -> NDArray[Any]:
        left, right = (self._rows[self._starts[k] : self._starts[k + 1]] for k in (i, j))
        return select_rows(self._store.layout, self._read, left, right, self._store.tiles.dtype)

    def _read(self, keys: list[Key]) -> Iterator[tuple[Key, NDArray[Any]]]:
        for key in keys:
            yield key, self._store.read_tile(*key)


_scratches: Cache[FactorTiles] = Cache(SCRATCHES_KEPT)


def compute_factor_tile(task: FactorTask) -> bool:
    """Make one tile of L and write it as one whole chunk."""
    store = planned_store(task.store, task.identity)
    tiles = _opened(task)
    source = ScaledTiles(_ChosenTiles(store, tiles.rows, tiles.starts), tiles.starts, tiles.scale, tiles.shift)
    with one_blas_thread():
        factor_tile(task.i, task.j, source, tiles, int(tiles.starts[task.j]))
    return True


def inverse_block(task: FactorTask) -> Matrix:
    """diag(B^-1) of block j: the squares of one block column of L^-1."""
    tiles = _opened(task)
    with one_blas_thread():
        return TiledFactor(tiles, tiles.starts).inverse_block(task.j)


def _opened(task: FactorTask) -> FactorTiles:
    return _scratches.get((task.scratch,), lambda: FactorTiles.open(task.scratch))
