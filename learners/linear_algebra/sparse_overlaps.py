"""Inner products of sparse columns, straight into a dense triangle; scipy would make a sparse matrix of them first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gramline.kernels._jit import jit
from gramline.learners.arrays import Floats, Offsets


def overlaps(left: csr_array, right: csr_array, diagonal: Floats, dtype: type[np.floating]) -> NDArray[np.floating]:
    """The upper triangle of left^T right + diag, for a product that is symmetric, shape (n_columns, n_columns)."""
    sums = np.zeros((len(diagonal), len(diagonal)), dtype)
    sums[np.diag_indices(len(diagonal))] = diagonal
    _add_overlaps(*_parts(left), *_parts(right), sums)
    return sums


def _parts(rows: csr_array) -> tuple[Offsets, Offsets, Floats]:
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


@jit
def _add_overlaps(
    starts: Offsets,
    columns: Offsets,
    values: Floats,
    other_starts: Offsets,
    other_columns: Offsets,
    other_values: Floats,
    sums: NDArray[np.floating],
) -> None:
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            column, value = columns[entry], values[entry]
            for other in range(other_starts[row], other_starts[row + 1]):
                if other_columns[other] >= column:
                    sums[column, other_columns[other]] += value * other_values[other]
