"""Rare features folded into a block-diagonal matrix: what is left to solve for is half as large or less.

F F^T = H H^T + T T^T. The local features T are taken rarest first, as long as the rows they join form small groups;
then T T^T is block diagonal and (ridge + T T^T / n)^-1 is computed block by block. H are the global features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from gramline.kernels._jit import jit
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Floats, Mask, Offsets
from gramline.learners.token_features import SparseRows
from gramline.learners.zscore.compressed_features import GroupIds


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """H and T, the columns of one matrix where `is_local` is False and True."""

    global_features: csr_array
    local_features: csr_array
    is_local: Mask
    group: GroupIds  # of every row

    @classmethod
    def of(cls, features: csr_array, largest: int) -> LocalFeatures:
        """`largest` is the number of rows that a group may have; with 1 the features of a single row are local."""
        columns = csc_array(features)
        rarest_first = np.argsort(np.diff(columns.indptr), kind="stable")
        starts, rows = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        is_local, roots = _joined(starts, rows, rarest_first, features.shape[0], largest)
        _, group = np.unique(roots, return_inverse=True)
        shared, local = (columns[:, np.flatnonzero(chosen)].tocsr() for chosen in (~is_local, is_local))
        return cls(shared, local, is_local, group)

    def inverse(self, ridge: float, n_labels: int) -> csr_array:
        """(ridge + T T^T / n)^-1, shape (n_rows, n_rows), block diagonal."""
        overlap = coo_array(self.local_features @ self.local_features.T)
        sizes = np.bincount(self.group)
        members = np.argsort(self.group, kind="stable")
        starts = offsets_from_lengths(sizes)[:-1]
        place = np.empty(len(members), np.intp)  # of every row in its group
        place[members] = np.arange(len(members)) - starts[self.group[members]]
        number = np.empty(len(sizes), np.intp)  # of every group among those of its size
        entries = []
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            number[chosen] = np.arange(len(chosen))
            rows = members[starts[chosen][:, None] + np.arange(size)]  # shape (n_chosen, size)
            blocks = np.broadcast_to(ridge * np.eye(size), (len(chosen), size, size)).copy()
            inside = np.flatnonzero(sizes[self.group[overlap.row]] == size)
            left, right = overlap.row[inside], overlap.col[inside]
            blocks[number[self.group[left]], place[left], place[right]] += overlap.data[inside] / n_labels
            inverses = np.linalg.inv(blocks)
            left, right = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
            entries.append((inverses.ravel(), left.ravel(), right.ravel()))
        values, left, right = (np.concatenate(part) for part in zip(*entries, strict=True))
        return coo_array((values, (left, right)), shape=overlap.shape).tocsr()


@jit
def _joined(starts: Offsets, rows: Offsets, order: Offsets, n_rows: int, largest: int) -> tuple[Mask, Offsets]:
    """Which columns are local, and for every row the first of its group (union of sets, paths halved)."""
    parent = np.arange(n_rows)
    size = np.ones(n_rows, np.int64)
    is_local = np.zeros(len(starts) - 1, np.bool_)
    roots = np.empty(largest + 1, np.int64)
    for column in order:
        n_roots = total = 0
        for entry in range(starts[column], starts[column + 1]):
            root = rows[entry]
            while parent[root] != root:
                parent[root] = parent[parent[root]]
                root = parent[root]
            is_new = True
            for k in range(n_roots):
                is_new = is_new and roots[k] != root
            if is_new:
                total += size[root]
                if total > largest:
                    break
                roots[n_roots] = root
                n_roots += 1
        if total <= largest:
            is_local[column] = True
            for k in range(1, n_roots):
                parent[roots[k]] = roots[0]
                size[roots[0]] += size[roots[k]]
    for row in range(n_rows):
        root = row
        while parent[root] != root:
            root = parent[root]
        parent[row] = root
    return is_local, parent


def overlaps(left: csr_array, right: csr_array, diagonal: Floats, dtype: type[np.floating]) -> NDArray[np.floating]:
    """The upper triangle of left^T right + diag, for a product that is symmetric, shape (n_columns, n_columns).

    Straight into a dense array; scipy would make a sparse matrix of it first.
    """
    sums = np.zeros((len(diagonal), len(diagonal)), dtype)
    sums[np.diag_indices(len(diagonal))] = diagonal
    _add_overlaps(SparseRows.of(left), SparseRows.of(right), sums)
    return sums


@jit
def _add_overlaps(left: SparseRows, right: SparseRows, sums: NDArray[np.floating]) -> None:
    for row in range(len(left.starts) - 1):
        for entry in range(left.starts[row], left.starts[row + 1]):
            column, value = left.columns[entry], left.values[entry]
            for other in range(right.starts[row], right.starts[row + 1]):
                if right.columns[other] >= column:
                    sums[column, right.columns[other]] += value * right.values[other]
