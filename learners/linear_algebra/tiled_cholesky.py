"""Cholesky factorisation by tiles: one function makes one tile of L from tiles of B and earlier tiles of L.

Left-looking, so every tile of L is written once and the schedule is free: tile (i, j) needs (i, k), (j, k) for k < j,
and (j, j). The module does not know where tiles are stored.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from gramline.learners.arrays import Matrix
from gramline.learners.linear_algebra.cholesky import not_positive_definite


class TileSource(Protocol):
    """The lower tiles of a symmetric matrix."""

    def get(self, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j), i >= j."""


class TileSink(TileSource, Protocol):
    """The tiles of L, to read and to write."""

    def put(self, i: int, j: int, tile: Matrix) -> None: ...


class ScaledTiles:
    """B = diag(shift) + diag(scale) K diag(scale) over the tiles of K."""

    def __init__(self, source: TileSource, starts: NDArray[np.int64], scale: Matrix, shift: Matrix | float) -> None:
        """`starts` are the first rows of the blocks, and the end, shape (n_blocks + 1,)."""
        self._source = source
        self._starts = starts
        self._scale = scale
        self._shift = np.broadcast_to(np.asarray(shift, float), scale.shape)

    def get(self, i: int, j: int) -> Matrix:
        rows, cols = _rows(self._starts, i), _rows(self._starts, j)
        tile: Matrix = self._scale[rows, None] * self._source.get(i, j).astype(np.float64) * self._scale[cols]
        if i == j:
            tile[np.diag_indices(len(tile))] += self._shift[rows]
        return tile


def factor_tile(i: int, j: int, source: TileSource, factor: TileSink, first_row: int = 0) -> None:
    """Make tile (i, j) of L and put it.

    L_jj = chol(B_jj - sum_k L_jk L_jk^T) and L_ij = (B_ij - sum_k L_ik L_jk^T) L_jj^-T, k < j. Three
    tiles in memory. `first_row` of block j is only for the error message.
    """
    tile = np.array(source.get(i, j), np.float64)
    for k in range(j):
        right = factor.get(j, k)
        tile -= (right if i == j else factor.get(i, k)) @ right.T
    if i > j:
        factor.put(i, j, solve_triangular(factor.get(j, j), tile.T, lower=True, check_finite=False).T.copy())
        return
    lower, info = lapack.dpotrf(tile, lower=1, clean=1)
    if info > 0:
        # LAPACK leaves the pivots it got through; the one that failed follows from the rows before it.
        done = lower[info - 1, : info - 1]
        raise not_positive_definite(first_row + info - 1, float(tile[info - 1, info - 1] - done @ done))
    factor.put(j, j, np.ascontiguousarray(lower))


class TiledFactor:
    """A finished L behind the interface of `Factor`; one tile in memory at a time."""

    def __init__(self, tiles: TileSource, starts: NDArray[np.int64]) -> None:
        self._tiles = tiles
        self._starts = starts

    @property
    def n_blocks(self) -> int:
        return len(self._starts) - 1

    def half_solve(self, X: Matrix) -> Matrix:
        """L^-1 X, shape (n, k)."""
        return self._forward(np.array(X, np.float64), 0)

    def solve(self, X: Matrix) -> Matrix:
        solved = self.half_solve(X)
        for j in reversed(range(self.n_blocks)):
            mine = _rows(self._starts, j)
            for i in range(j + 1, self.n_blocks):
                solved[mine] -= self._tiles.get(i, j).T @ solved[_rows(self._starts, i)]
            solved[mine] = solve_triangular(self._tiles.get(j, j), solved[mine], lower=True, trans="T")
        return solved

    def quadratic(self, X: Matrix) -> Matrix:
        half = self.half_solve(X)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def log_determinant(self) -> float:
        return sum(2.0 * float(np.log(np.diagonal(self._tiles.get(j, j))).sum()) for j in range(self.n_blocks))

    def inverse_diagonal(self) -> Matrix:
        """Squares of L^-1, one block column after another."""
        return np.concatenate([np.zeros(0), *(self.inverse_block(j) for j in range(self.n_blocks))])

    def inverse_block(self, j: int) -> Matrix:
        """diag(B^-1) of the rows of block j: in that block column of L^-1 only the rows from block j on are not 0."""
        width = int(self._starts[j + 1] - self._starts[j])
        unit = np.zeros((int(self._starts[-1] - self._starts[j]), width))
        unit[:width] = np.eye(width)
        half = self._forward(unit, j)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def _forward(self, X: Matrix, first: int) -> Matrix:
        """Solve in place with the trailing blocks of L from block `first` on; X begins at that block."""
        starts = self._starts - self._starts[first]
        for i in range(first, self.n_blocks):
            mine = _rows(starts, i)
            for k in range(first, i):
                X[mine] -= self._tiles.get(i, k) @ X[_rows(starts, k)]
            X[mine] = solve_triangular(self._tiles.get(i, i), X[mine], lower=True)
        return X


def _rows(starts: NDArray[np.int64], block: int) -> slice:
    return slice(int(starts[block]), int(starts[block + 1]))
