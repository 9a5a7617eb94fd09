"""The rows of a matrix added up by distinct row, W'[d] = sum of W[r] over the rows r that are d, a few d at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gramline.kernels.distinct import DistinctRows
from gramline.kernels.ranges import indices_of_ranges
from gramline.learners.arrays import Indices, Matrix

STEP = 1 << 12  # distinct rows


class RowSums:
    """W' for what a product needs of it; never the whole, which is as large as W."""

    def __init__(self, distinct: DistinctRows, W: Matrix) -> None:
        """`W` has one row for every row of the corpus, shape (len(distinct.row_of), n_columns)."""
        self._distinct, self._W = distinct, W

    def of(self, rows: Indices) -> Matrix:
        """W' of these distinct rows, shape (len(rows), n_columns); equal rows are added in their order."""
        order, starts = self._distinct.rows_by_distinct
        first, n_more = starts[rows], starts[rows + 1] - starts[rows] - 1
        sums = self._W[order[first]].astype(np.float64)  # each has one row at least
        if n_more.any():
            np.add.at(
                sums, np.repeat(np.arange(len(rows)), n_more), self._W[order[indices_of_ranges(first + 1, n_more)]]
            )
        return sums

    def all(self) -> Matrix:
        """The whole after all, for products that need it again and again."""
        return self.of(np.arange(self._distinct.n_rows))

    def nonzero(self) -> Indices:
        """Distinct rows with an entry that is not 0."""
        return np.concatenate([np.zeros(0, np.int64), *self._nonzero()])

    def _nonzero(self) -> Iterator[Indices]:
        for first in range(0, self._distinct.n_rows, STEP):
            rows = np.arange(first, min(first + STEP, self._distinct.n_rows))
            yield rows[self.of(rows).any(axis=1)]
