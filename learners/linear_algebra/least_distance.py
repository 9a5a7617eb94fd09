"""The shortest vector on the right side of many hyperplanes, by non-negative least squares.

min |x|^2 / 2  s.t.  r_k . x >= 1, from the inner products r_k . r_l alone.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, lstsq
from scipy.optimize import nnls

from gramline.learners.arrays import Floats
from gramline.learners.errors import ConvergenceError

CONTRADICTION = 1e-10  # squared distance of the convex hull of all r_k from 0, in squares of the shortest one
NOTHING = 1e-8  # length of an r_k beside the longest one


def least_distance(gram: Floats) -> tuple[Floats, bool]:
    """Multipliers lambda >= 0 with x = sum lambda_k r_k, shape (n,), and True; where no x will do, u and False.

    Lawson and Hanson: the u >= 0 of least |sum u_k r_k|^2 + (1 - sum u_k)^2 gives lambda = u / (1 - sum u_k), unless
    sum u_k = 1: then sum u_k r_k = 0, and the constraints with u_k > 0 contradict each other. Here r_k are taken to
    length 1, which makes heights h_k of the ones. Cost O(n^3).
    """
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    is_nothing = lengths <= NOTHING * lengths.max()
    if is_nothing.any():
        return is_nothing.astype(np.float64), False
    scaled = gram / lengths / lengths[:, None]
    heights = lengths.min() / lengths
    values, vectors = eigh(scaled)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    try:
        found, _ = nnls(np.vstack([root, heights]), np.append(np.zeros(len(gram)), 1.0), maxiter=30 * len(gram))
    except RuntimeError as error:
        raise ConvergenceError(
            f"non-negative least squares of {len(gram)} constraints came to no end: {error}"
        ) from None
    rest = 1.0 - heights @ found
    if rest < CONTRADICTION:
        return found / lengths, False
    found /= rest
    # The root has lost half of the digits; a step of refinement gets them back.
    active = np.flatnonzero(found)
    step = lstsq(scaled[np.ix_(active, active)], heights[active] - scaled[active] @ found)[0]
    found[active] = np.maximum(found[active] + step, 0.0)
    return found / (lengths * lengths.min()), True
