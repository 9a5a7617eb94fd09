"""Rare features folded into a block-diagonal matrix: what is left to solve for is half as large or less.

F F^T = H H^T + T T^T. The local features T are taken rarest first, as long as the rows they join form groups of at most
GROUP rows; then T T^T is block diagonal and (diag + T T^T / n)^-1 is found block by block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from gramline.kernels._jit import jit
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Floats, Offsets

GROUP = 16  # rows; larger groups leave few features less and fill the blocks; measured on spelling features
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """H = `far` and T = `local`, the columns of one matrix where `is_local` is False and True."""

    far: csr_array
    local: csr_array
    is_local: NDArray[np.bool_]
    group: Indices  # of every row

    @classmethod
    def of(cls, features: csr_array) -> LocalFeatures:
        columns = csc_array(features)
        rarest_first = np.argsort(np.diff(columns.indptr), kind="stable")
        starts, rows = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        is_local, roots = _joined(starts, rows, rarest_first, features.shape[0], GROUP)
        _, group = np.unique(roots, return_inverse=True)
        far, local = (columns[:, np.flatnonzero(chosen)].tocsr() for chosen in (~is_local, is_local))
        return cls(far, local, is_local, group)

    def inverse(self, diagonal: Floats, n_labels: int) -> csr_array:
        """(diag + T T^T / n)^-1, shape (n_rows, n_rows), block diagonal."""
        overlap = coo_array(self.local @ self.local.T)
        sizes = np.bincount(self.group)
        members = np.argsort(self.group, kind="stable")
        starts = offsets_from_lengths(sizes)[:-1]
        place = np.empty(len(members), np.intp)  # of every row in its group
        place[members] = np.arange(len(members)) - starts[self.group[members]]
        number = np.empty(len(sizes), np.intp)  # of every group among those of its size
        parts = []
        for size in np.unique(sizes):
            alike = np.flatnonzero(sizes == size)
            number[alike] = np.arange(len(alike))
            rows = members[starts[alike][:, None] + np.arange(size)]  # shape (n_alike, size)
            blocks = diagonal[rows][:, :, None] * np.eye(size)
            inside = np.flatnonzero(sizes[self.group[overlap.row]] == size)
            left, right = overlap.row[inside], overlap.col[inside]
            blocks[number[self.group[left]], place[left], place[right]] += overlap.data[inside] / n_labels
            inverses = np.linalg.inv(blocks)
            left, right = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
            parts.append((inverses.ravel(), left.ravel(), right.ravel()))
        values, left, right = (np.concatenate(part) for part in zip(*parts, strict=True))
        return coo_array((values, (left, right)), shape=overlap.shape).tocsr()


@jit
def _joined(
    starts: Offsets, rows: Offsets, order: Offsets, n_rows: int, largest: int
) -> tuple[NDArray[np.bool_], Offsets]:
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
