"""Sparse features with fewer rows and columns and the same normal equations.

Equal rows (repeated observations) become one row times sqrt(count), equal columns (features that always occur together)
one column times sqrt(count). Ridge solutions are unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from gramline.learners.arrays import Floats

GroupIds = NDArray[np.intp]
Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CompressedFeatures:
    """The distinct rows and columns of F, weighted, and which of them every row and column of F is."""

    distinct: csr_array  # shape (n_groups_of_rows, n_groups_of_columns)
    row_group: GroupIds  # of every row of F
    row_sizes: Floats
    column_group: GroupIds  # of every column of F
    column_sizes: Floats

    @classmethod
    def of(cls, features: csr_array) -> CompressedFeatures:
        n_rows, n_columns = features.shape
        owners = np.repeat(np.arange(n_rows), np.diff(features.indptr))
        values = _mixed(features.data)
        random = np.random.default_rng(0)
        column_keys, row_keys = (random.integers(2**64, size=k, dtype=np.uint64) for k in (n_rows, n_columns))
        column_group, first_column, column_sizes = _groups(features.indices, column_keys[owners] * values, n_columns)
        row_group, first_row, row_sizes = _groups(owners, row_keys[features.indices] * values, n_rows)
        distinct = features[first_row].tocsc()[:, first_column]
        weighted = (diags_array(np.sqrt(row_sizes)) @ distinct @ diags_array(np.sqrt(column_sizes))).tocsr()
        return cls(weighted, row_group, row_sizes, column_group, column_sizes)

    def gathered(self, sides: Floats) -> Floats:
        """Right-hand sides per row of F, shape (N, k), as right-hand sides per group of rows."""
        sums = np.zeros((len(self.row_sizes), sides.shape[1]))
        np.add.at(sums, self.row_group, sides)
        return np.asarray(sums / np.sqrt(self.row_sizes)[:, None])

    def spread(self, weights: Floats) -> Floats:
        """Weights of the columns of F, shape (D, k), from those of the groups of columns."""
        return np.asarray((weights / np.sqrt(self.column_sizes)[:, None])[self.column_group])


def _mixed(values: Floats) -> Keys:
    """A well-mixed odd number for every value: equal values, equal numbers."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed: Keys = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(32))) | np.uint64(1)


def _groups(members: NDArray[np.integer], keys: Keys, n_members: int) -> tuple[GroupIds, GroupIds, Floats]:
    """Members (rows or columns) with the same entries: the group of each, the first of each group, the group sizes.

    Members are compared by the 64-bit sum of the random keys of their entries: 10^5 of them collide with probability
    3e-10.
    """
    sums = np.zeros(n_members, np.uint64)
    np.add.at(sums, members, keys)
    _, first, group, sizes = np.unique(sums, return_index=True, return_inverse=True, return_counts=True)
    return group, first, sizes.astype(np.float64)
