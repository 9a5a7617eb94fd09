"""Positive definite systems factorised in single precision, at half the cost, and solved to double precision.

X <- X + L^-T L^-1 (B - A X): a step multiplies the residual by about 1e-7 times the condition of A. Where that does not
help, and for small systems, where it saves nothing, the factor has double precision.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gramline.learners.arrays import Floats

STEPS = 10  # of which three or four are needed, or all would be in vain
REFINED = 1e-10  # of |B - A X| beside |B|, per column
SMALL = 1200  # rows up to which single precision saves nothing; measured
Matrix = NDArray[np.floating]


def solve_refined(
    matrix: Callable[[type[np.floating]], Matrix], apply: Callable[[Floats], Floats], sides: Floats
) -> Floats | None:
    """X with A X = `sides`, shape (size, n_rhs); None where rounding is in the way of a factor in either precision.

    `matrix(dtype)` makes a new A in that precision, of which the upper triangle is read; `apply(X)` is A X in double
    precision.
    """
    if not len(sides):
        return np.zeros_like(sides)
    references = np.linalg.norm(sides, axis=0)
    for dtype in (np.float64,) if len(sides) <= SMALL else (np.float32, np.float64):
        try:
            # The transposed view is in the order of columns that LAPACK wants; it is overwritten.
            factor = cho_factor(matrix(dtype).T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        value, rest = np.zeros_like(sides), sides
        for _ in range(STEPS):
            value += cho_solve(factor, rest.astype(dtype), check_finite=False)
            rest = sides - apply(value)
            if np.all(np.linalg.norm(rest, axis=0) <= REFINED * references):
                return value
        if dtype is np.float64:
            return value  # as good as double precision gets
    return None
