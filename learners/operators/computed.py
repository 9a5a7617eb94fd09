"""A Gram matrix whose values are computed when they are asked for: how models predict, and how corpora are learned from
that no disk holds the matrix of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gramline.kernels.base import Kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.packing import Packed
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.comparison import Computing
from gramline.learners.operators.counts import computed, counted
from gramline.learners.operators.layout import BlockLayout, GramLayout, Key, select_rows
from gramline.learners.operators.tile_cache import TileCache


class ComputedGram:
    """G between two prepared corpora (or of one with itself); equal rows are computed once.

    `values_computed` counts kernel values. Tiles are kept in memory up to `cache_bytes` (none unless given).
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Packed,
        cols: Packed | None = None,
        *,
        block_rows: int | None = None,
        row_layout: BlockLayout | None = None,
        distinct_rows: DistinctRows | None = None,
        dtype: DTypeLike = np.float64,
        cache_bytes: int = 0,
    ) -> None:
        """`rows` and `cols` are what `kernel.prepare` returned, in one vocabulary.

        `row_layout` and `distinct_rows` save making them.
        """
        self._kernel = kernel
        self._rows = rows
        self._cols = rows if cols is None else cols
        known_rows = row_layout or BlockLayout.of(kernel.row_lengths(rows), block_rows)
        self.layout = GramLayout.symmetric(known_rows)
        if cols is not None:
            self.layout = GramLayout.rectangular(known_rows, BlockLayout.of(kernel.row_lengths(cols), block_rows))
        self.dtype = np.dtype(dtype)
        self.label_names = rows.vocabulary.labels or None
        self.row_prior = rows.prior
        self.col_prior = self._cols.prior
        self.label_kernel = kernel.label_matrix()
        self.values_computed = 0
        self._distinct_rows = distinct_rows
        self._cache = TileCache(cache_bytes)

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    def tile(self, i: int, j: int) -> Tile:
        if self.layout.is_symmetric and i > j:
            return self.tile(j, i).T
        tile = self._cache.find((i, j))
        if tile is None:
            tile = self._kernel.tile(
                self._block(self._rows, self.layout.rows, i), self._block(self._cols, self.layout.cols, j), self.dtype
            )
            self.count_values(tile.size)
            self._cache.add((i, j), tile)
        return tile

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        for i in range(self.layout.rows.n_blocks) if rows is None else rows:
            yield i, self.tile(i, j)

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W, or G.T @ W; every value between two distinct rows at most once, of zero rows of W none.

        A kernel with feature rows needs no values: G W = phi (phi^T W).
        """
        inner, outer = (self._sides[0], self._sides[1]) if transpose else (self._sides[1], self._sides[0])
        if len(W) != len(inner.row_of):
            raise LearnerError(
                f"the matrix to multiply has {len(W)} rows, but the Gram matrix needs {len(inner.row_of)}"
            )
        if (features := self._feature_rows) is not None:
            left, right = features[::-1] if transpose else features
            return np.asarray(left @ (right.T @ W), np.float64)
        thin = W if W.ndim == 2 else W[:, None]
        weights = np.zeros((inner.n_rows, thin.shape[1]))
        np.add.at(weights, inner.row_of, thin)
        product = np.zeros((outer.n_rows, thin.shape[1]))
        used = inner.units_of(np.flatnonzero(weights.any(axis=1)))
        with one_blas_thread():
            if inner is outer and len(used) == len(inner.units):
                self._multiply_symmetric(inner, weights, product)
            else:
                self._multiply(inner, used, outer, weights, product)
        return product[outer.row_of].reshape(len(outer.row_of), *W.shape[1:])

    def _multiply(
        self, inner: DistinctRows, used: Indices, outer: DistinctRows, weights: Matrix, product: Matrix
    ) -> None:
        memory = np.empty(0, self.dtype)
        for first, last in _cuts(inner.lengths[used], self.layout.rows.block_rows):
            units = used[first:last]
            rows, part = inner.take(units), weights[inner.rows_of(units)]
            for begin, end in _cuts(outer.lengths, self.layout.cols.block_rows):
                target = slice(int(outer.starts[begin]), int(outer.starts[end]))
                shape = target.stop - target.start, len(part)
                if memory.size < shape[0] * shape[1]:
                    memory = np.empty(shape[0] * shape[1], self.dtype)
                room = memory[: shape[0] * shape[1]].reshape(shape)
                tile = self._kernel.tile(outer.units.structures(begin, end), rows, self.dtype, room)
                self.count_values(tile.size)
                product[target] += tile @ part

    def _multiply_symmetric(self, sides: DistinctRows, weights: Matrix, product: Matrix) -> None:
        """Each tile serves (i, j) and (j, i)."""
        cuts = _cuts(sides.lengths, self.layout.rows.block_rows)
        blocks = [(sides.units.structures(*cut), slice(*map(int, sides.starts[list(cut)]))) for cut in cuts]
        for i, (rows, row_range) in enumerate(blocks):
            for j in range(i, len(blocks)):
                cols, col_range = blocks[j]
                tile = self._distinct_tile((i, j), rows, cols)
                product[row_range] += tile @ weights[col_range]
                if i != j:
                    product[col_range] += tile.T @ weights[row_range]

    def _distinct_tile(self, key: Key, rows: Packed, cols: Packed) -> Tile:
        """Between blocks of distinct rows; kept apart from those of all rows unless these are the same."""
        name = key if self._sides[0].n_rows == self.shape[0] else (~key[0], ~key[1])
        tile = self._cache.find(name)
        if tile is None:
            tile = self._kernel.tile(rows, cols, self.dtype)
            self.count_values(tile.size)
            self._cache.add(name, tile)
        return tile

    @cached_property
    def _feature_rows(self) -> tuple[Any, Any] | None:
        """phi of rows and columns as sparse matrices, shape (n, n_features) each."""
        rows = self._kernel.feature_rows(self._rows)
        cols = rows if self.layout.is_symmetric else self._kernel.feature_rows(self._cols)
        if rows is None or cols is None:
            return None
        from scipy.sparse import csr_array  # models that predict with other kernels do not wait for it

        width = 1 + max(int(side.indices.max(initial=0)) for side in (rows, cols))
        sides: list[Any] = [(side.values, side.indices, side.indptr) for side in (rows, cols)]
        left, right = (csr_array(side, shape=(len(side[2]) - 1, width)) for side in sides)
        return left, right

    @cached_property
    def _sides(self) -> tuple[DistinctRows, DistinctRows]:
        rows = self._distinct_rows or DistinctRows.of(self._kernel, self._rows)
        return rows, rows if self.layout.is_symmetric else DistinctRows.of(self._kernel, self._cols)

    def select(self, rows: Indices, cols: Indices) -> Tile:
        return select_rows(self.layout, lambda keys: ((key, self.tile(*key)) for key in keys), rows, cols, self.dtype)

    def diagonal(self) -> Matrix:
        self.layout.require_symmetric("a diagonal")
        return self._kernel.diagonal(self._rows)

    @property
    def col_diagonal(self) -> Matrix:
        return self._kernel.diagonal(self._cols)

    def cholesky(self, scale: ArrayLike, shift: ArrayLike = 1.0, rows: Indices | None = None) -> Factor:
        """The factor of diag(shift) + diag(scale) G[rows, rows] diag(scale); computes the whole matrix."""
        from gramline.learners.linear_algebra.cholesky import cholesky  # only who factors waits for LAPACK

        self.layout.require_symmetric("a Cholesky factor")
        return cholesky(counted(self._kernel.tile(self._rows, self._rows)), scale, shift, rows)

    def dense(self, rows: Indices) -> Tile:
        return counted(self._kernel.tile(self._rows, self._rows))[np.ix_(rows, rows)]

    # ---- for learners that ask for changed rows only

    def computing(self) -> Computing:
        return Computing(self._kernel, self._rows, self.dtype)

    def keeps(self, i: int, j: int) -> bool:  # noqa: ARG002 - none of them
        return False

    def count_values(self, n_values: int) -> None:
        self.values_computed += n_values
        computed.add(n_values)

    @staticmethod
    def _block(packed: Packed, layout: BlockLayout, block: int) -> Packed:
        structures = layout.structures(block)
        return packed.structures(structures.start, structures.stop)


def _cuts(lengths: Indices, block_rows: int) -> list[tuple[int, int]]:
    """Runs (first, last) of units that make a block each."""
    return list(pairwise(BlockLayout.of(lengths, block_rows).block_structures.tolist()))
