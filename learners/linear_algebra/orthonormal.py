"""Orthonormal columns of a thin block, and its coordinates in them; columns that depend on others are left out."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from gramline.learners.arrays import Matrix

DEPENDENT = 1e-13  # a direction this much smaller than the largest of its block is rounding
SQUARABLE = 1e-5  # a block whose smallest direction is at least so large beside its largest can be squared
WELL_CONDITIONED = 0.03  # and one like this loses next to nothing by it


STRIP_ROWS = 4096  # of a block that is turned in place


def orthonormal(block: Matrix, *, overwrite: bool = False) -> tuple[Matrix, Matrix]:
    """Q, R with block = Q R, Q of orthonormal columns, as many as the block has independent directions.

    A block that nobody needs any more may be overwritten: one as long as a corpus is not in memory twice.
    """
    block, turn, is_orthonormal = _turned_by_cholesky(block, overwrite)
    if is_orthonormal:
        return block, turn
    Q, R, order = qr(block, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(sizes > DEPENDENT * sizes.max(initial=0.0)))
    unpivoted = np.empty((rank, block.shape[1]))
    unpivoted[:, order] = R[:rank]
    return np.ascontiguousarray(Q[:, :rank]), unpivoted @ turn


def _turned_by_cholesky(block: Matrix, overwrite: bool) -> tuple[Matrix, Matrix, bool]:
    """B, T and whether B is orthonormal, block = B T, from R^T R = block^T block: products only, half the time of
    reflections for a thin block.

    A step loses the square of the condition, so a block that is not well conditioned gets a second one, which sees it
    nearly orthonormal. A block whose columns are too alike for that is left.
    """
    total_turn = np.eye(block.shape[1])
    for limit in (WELL_CONDITIONED, 0.0):
        try:
            turn = cholesky(block.T @ block, check_finite=False)
        except LinAlgError:
            return block, total_turn, False
        sizes = np.diagonal(turn)
        smallest, largest = sizes.min(initial=np.inf), sizes.max(initial=0.0)
        if not smallest > SQUARABLE * largest:
            return block, total_turn, False
        inverse = solve_triangular(turn, np.eye(len(turn)), check_finite=False)
        block = _turned_in_place(block, inverse) if overwrite else block @ inverse
        overwrite, total_turn = True, turn @ total_turn  # from now on nobody else has the block
        if smallest >= limit * largest:
            break
    return block, total_turn, True


def _turned_in_place(block: Matrix, turn: Matrix) -> Matrix:
    for first in range(0, len(block), STRIP_ROWS):
        strip = block[first : first + STRIP_ROWS]
        strip[:] = strip @ turn
    return block
