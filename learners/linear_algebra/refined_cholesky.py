"""Positive definite systems factorised in single precision, at half the cost, and solved to double precision.

X <- X + L^-T L^-1 (B - A X): a step multiplies the residual by about 1e-7 times the condition of A. Where that does not
help, the factor is found in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gramline.learners.arrays import Floats

STEPS = 10  # of which three or four are needed, or all would be in vain
REFINED = 1e-10  # of |B - A X| beside |B|, per column
Matrix = NDArray[np.floating]


def solve_refined(
    matrix: Callable[[type[np.floating]], Matrix], apply: Callable[[Floats], Floats], sides: Floats
) -> Floats | None:
    """X with A X = `sides`, shape (size, n_rhs); None where rounding is in the way of a factor in either precision.

    `matrix(dtype)` makes a new A in that precision, of which the upper triangle is read; `apply(X)` is A X in double
    precision.
    """
    for dtype in (np.float32, np.float64):
        try:
            # The transposed view is in the order of columns that LAPACK wants; it is overwritten.
            factor = cho_factor(matrix(dtype).T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        value = _refined(partial(cho_solve, factor, check_finite=False), dtype, apply, sides)
        if value is not None:
            return value
    return None


def _refined(
    solve: Callable[[Matrix], Matrix], dtype: type[np.floating], apply: Callable[[Floats], Floats], sides: Floats
) -> Floats | None:
    """X after enough steps; None if they do not lead there."""
    references = np.linalg.norm(sides, axis=0)
    value, rest = np.zeros_like(sides), sides
    for _ in range(STEPS):
        value += solve(rest.astype(dtype))
        rest = sides - apply(value)
        if np.all(np.linalg.norm(rest, axis=0) <= REFINED * references):
            return value
    return None
