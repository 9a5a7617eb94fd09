"""A Gram matrix whose values are computed when they are asked for: how models predict, and how corpora are learned from
that no disk holds the matrix of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.observations.reused import reused
from gramline.kernels.packing import Packed
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.comparison import Computing
from gramline.learners.operators.counts import computed, counted
from gramline.learners.operators.layout import BlockLayout, GramLayout, select_rows
from gramline.learners.operators.row_sums import RowSums
from gramline.learners.operators.tile_memory import TileMemory


class ComputedGram:
    """G between two prepared corpora (or of one with itself); equal rows are computed once.

    `values_computed` counts kernel values.
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

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    def tile(self, i: int, j: int) -> Tile:
        if self.layout.is_symmetric and i > j:
            return self.tile(j, i).T
        return self._between(self._block(self._rows, self.layout.rows, i), self._block(self._cols, self.layout.cols, j))

    def _between(self, rows: Packed, cols: Packed, memory: Tile | None = None) -> Tile:
        tile = self._kernel.tile(rows, cols, self.dtype, memory)
        self.count_values(tile.size)
        return tile

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        for i in range(self.layout.rows.n_blocks) if rows is None else rows:
            yield i, self.tile(i, j)

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W, or G.T @ W; every value between two distinct rows at most once, of zero rows of W none.

        A kernel with feature rows needs no values: G W = phi (phi^T W).
        """
        n_rows = self.shape[0 if transpose else 1]
        if len(W) != n_rows:
            raise LearnerError(f"the matrix to multiply has {len(W)} rows, but the Gram matrix needs {n_rows}")
        if (features := self._feature_rows) is not None:
            left, right = features[::-1] if transpose else features
            return np.asarray(left @ (right.T @ W), np.float64)
        inner, outer = self._sides if transpose else self._sides[::-1]
        thin = W if W.ndim == 2 else W[:, None]
        weights = RowSums(inner, thin)
        product = np.zeros((outer.n_rows, thin.shape[1]))
        used = inner.units_of(weights.nonzero())
        precision = np.result_type(self.dtype, W)  # single where both have it
        with one_blas_thread():
            if inner is outer and len(used) == len(inner.units):
                self._multiply_symmetric(inner, weights.all().astype(precision, copy=False), product)
            else:
                self._multiply(inner, used, outer, weights, precision, product)
        return product[outer.row_of].reshape(len(outer.row_of), *W.shape[1:])

    def _multiply(
        self,
        inner: DistinctRows,
        used: Indices,
        outer: DistinctRows,
        weights: RowSums,
        precision: np.dtype[Any],
        product: Matrix,
    ) -> None:
        memory = TileMemory(self.dtype)
        blocks = _blocks(outer, self.layout.cols.block_rows)
        for first, last in _cuts(inner.lengths[used], self.layout.rows.block_rows):
            units = used[first:last]
            cols, part = reused(inner.take(units)), weights.of(inner.rows_of(units)).astype(precision, copy=False)
            for rows, target in blocks:
                product[target] += self._between(rows, cols, memory.of(target.stop - target.start, len(part))) @ part

    def _multiply_symmetric(self, sides: DistinctRows, weights: Matrix, product: Matrix) -> None:
        """Each tile serves (i, j) and (j, i)."""
        memory = TileMemory(self.dtype)
        blocks = _blocks(sides, self.layout.rows.block_rows)
        for j, (packed, col_range) in enumerate(blocks):
            cols = reused(packed)  # by columns, so that one block is indexed at a time
            for i, (rows, row_range) in enumerate(blocks[: j + 1]):
                height, width = (span.stop - span.start for span in (row_range, col_range))
                tile = self._between(cols if i == j else rows, cols, memory.of(height, width))
                product[row_range] += tile @ weights[col_range]
                if i != j:
                    product[col_range] += tile.T @ weights[row_range]

    @cached_property
    def _feature_rows(self) -> tuple[Any, Any] | None:
        """phi of rows and columns as sparse matrices, shape (n, n_features) each."""
        rows = self._kernel.feature_rows(self._rows)
        cols = rows if self.layout.is_symmetric else self._kernel.feature_rows(self._cols)
        if rows is None or cols is None:
            return None
        from scipy.sparse import csr_array  # models that predict with other kernels do not wait for it

        width = 1 + max(int(side.indices.max(initial=0)) for side in (rows, cols))
        # Offsets as wide as the indices: otherwise each side gets its own, wider copy of these.
        sides: list[Any] = [(side.values, side.indices, _narrow(side.indptr)) for side in (rows, cols)]
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


def _blocks(distinct: DistinctRows, block_rows: int) -> list[tuple[Packed, slice]]:
    """All distinct units in blocks, and the rows of each."""
    cuts = _cuts(distinct.lengths, block_rows)
    return [(distinct.units.structures(*cut), slice(*map(int, distinct.starts[list(cut)]))) for cut in cuts]


def _cuts(lengths: Indices, block_rows: int) -> list[tuple[int, int]]:
    """Runs (first, last) of units that make a block each."""
    return list(pairwise(BlockLayout.of(lengths, block_rows).block_structures.tolist()))


def _narrow(offsets: Indices) -> NDArray[Any]:
    """In 32 bits where they have room."""
    return offsets.astype(np.int32) if offsets[-1] <= np.iinfo(np.int32).max else offsets
