"""A Gram matrix whose tiles are computed when they are asked for and never kept: how models predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packed
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.counts import counted
from gramline.learners.operators.layout import BlockLayout, GramLayout, select_rows


class ComputedGram:
    """G between two prepared corpora (or of one with itself); holds one tile at a time."""

    def __init__(
        self,
        kernel: Kernel,
        rows: Packed,
        cols: Packed | None = None,
        *,
        block_rows: int | None = None,
        row_layout: BlockLayout | None = None,
    ) -> None:
        """`rows` and `cols` are what `kernel.prepare` returned, in one vocabulary; `row_layout` saves making it."""
        self._kernel = kernel
        self._rows = rows
        self._cols = rows if cols is None else cols
        known_rows = row_layout or BlockLayout.of(kernel.row_lengths(rows), block_rows)
        self.layout = GramLayout.symmetric(known_rows)
        if cols is not None:
            self.layout = GramLayout.rectangular(known_rows, BlockLayout.of(kernel.row_lengths(cols), block_rows))
        self.label_names = rows.vocabulary.labels or None
        self.row_prior = rows.prior
        self.col_prior = self._cols.prior
        self.label_kernel = kernel.label_matrix()

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    def tile(self, i: int, j: int) -> Tile:
        return counted(
            self._kernel.tile(
                self._block(self._rows, self.layout.rows, i), self._block(self._cols, self.layout.cols, j)
            )
        )

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        for i in range(self.layout.rows.n_blocks) if rows is None else rows:
            yield i, self.tile(i, j)

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W, or G.T @ W; every tile is computed at most once, one that meets only zero rows of W never."""
        along, across = (self.layout.rows, self.layout.cols) if transpose else (self.layout.cols, self.layout.rows)
        if len(W) != along.n_rows:
            raise LearnerError(f"the matrix to multiply has {len(W)} rows, but the Gram matrix needs {along.n_rows}")
        product = np.zeros((across.n_rows, *W.shape[1:]))
        for inner in range(along.n_blocks):
            part = W[along.rows(inner)]
            if not part.any():
                continue
            for outer in range(across.n_blocks):
                tile = self.tile(inner, outer).T if transpose else self.tile(outer, inner)
                product[across.rows(outer)] += tile @ part
        return product

    def select(self, rows: Indices, cols: Indices) -> Tile:
        return select_rows(self.layout, lambda keys: ((key, self.tile(*key)) for key in keys), rows, cols)

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

    @staticmethod
    def _block(packed: Packed, layout: BlockLayout, block: int) -> Packed:
        structures = layout.structures(block)
        return packed.structures(structures.start, structures.stop)
