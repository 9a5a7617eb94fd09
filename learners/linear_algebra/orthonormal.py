"""Orthonormal columns of a thin block, and its coordinates in them; columns that depend on others are left out."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from gramline.learners.arrays import Matrix

DEPENDENT = 1e-13  # a direction this much smaller than the largest of its block is rounding
SQUARABLE = 1e-5  # a block whose smallest direction is at least so large beside its largest can be squared
WELL_CONDITIONED = 0.03  # and one like this loses next to nothing by it


def orthonormal(block: Matrix) -> tuple[Matrix, Matrix]:
    """Q, R with block = Q R, Q of orthonormal columns, as many as the block has independent directions."""
    quick = _cholesky_orthonormal(block)
    if quick is not None:
        return quick
    Q, R, order = qr(block, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(sizes > DEPENDENT * sizes.max(initial=0.0)))
    unpivoted = np.empty((rank, block.shape[1]))
    unpivoted[:, order] = R[:rank]
    return np.ascontiguousarray(Q[:, :rank]), unpivoted


def _cholesky_orthonormal(block: Matrix) -> tuple[Matrix, Matrix] | None:
    """The same from R^T R = block^T block: products only, half the time of reflections for a thin block.

    A step loses the square of the condition, so a block that is not well conditioned gets a second one, which sees it
    nearly orthonormal. None for a block whose columns are too alike for that.
    """
    total_turn = np.eye(block.shape[1])
    for limit in (WELL_CONDITIONED, 0.0):
        try:
            turn = cholesky(block.T @ block, check_finite=False)
        except LinAlgError:
            return None
        sizes = np.diagonal(turn)
        smallest, largest = sizes.min(initial=np.inf), sizes.max(initial=0.0)
        if not smallest > SQUARABLE * largest:
            return None
        block, total_turn = block @ solve_triangular(turn, np.eye(len(turn)), check_finite=False), turn @ total_turn
        if smallest >= limit * largest:
            break
    return block, total_turn
