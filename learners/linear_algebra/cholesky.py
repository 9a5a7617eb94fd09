"""Cholesky factors of B = diag(shift) + diag(s) K diag(s), the one matrix a Gaussian process has to factor.

`factor.Factor` is what a learner sees; here is the LAPACK one, in the memory of a single n x n array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack

from gramline.kernels._jit import jit
from gramline.learners.arrays import Floats, Indices, Matrix, Tile
from gramline.learners.errors import LearnerError, NotPositiveDefiniteError

STEPS = 10  # of which three or four are needed, or all would be in vain
REFINED = 1e-10  # of |B - A X| beside |B|, per column
SMALL = 1200  # rows up to which single precision saves nothing; measured


class CholeskyFactor:
    """B = L L^T in one array. `inverse_diagonal` turns L into L^-1 in place; solves then multiply instead."""

    def __init__(self, lower: Matrix) -> None:
        """`lower` is C-ordered and owned by the factor; entries above its diagonal are never read."""
        # LAPACK sees the transpose: an upper U = L^T in column order.
        self._upper = lower.T
        self._inverted = False
        self._log_determinant = 2.0 * float(np.log(np.diagonal(lower)).sum())

    @property
    def n_rows(self) -> int:
        return len(self._upper)

    def lower(self) -> Matrix:
        """L as a fresh array, shape (n, n); not after `inverse_diagonal`, which overwrites it."""
        if self._inverted:
            raise LearnerError("inverse_diagonal has overwritten L", advice="call lower before inverse_diagonal")
        return np.tril(self._upper.T)

    def half_solve(self, X: Matrix) -> Matrix:
        """L^-1 X, shape (n, k)."""
        return self._triangular(X, transposed=1)

    def solve(self, X: Matrix) -> Matrix:
        return self._triangular(self.half_solve(X), transposed=0)

    def quadratic(self, X: Matrix) -> Matrix:
        half = self.half_solve(X)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def log_determinant(self) -> float:
        return self._log_determinant

    def inverse_diagonal(self) -> Matrix:
        if not self._inverted and self.n_rows:
            self._upper, _ = lapack.dtrtri(self._upper, lower=0, overwrite_c=1)
        self._inverted = True
        return lower_column_squares(self._upper.T)

    def _triangular(self, X: Matrix, transposed: int) -> Matrix:
        """U^-T X or U^-1 X."""
        if not self.n_rows or not X.shape[1]:
            return np.zeros(X.shape)
        right = np.array(X, np.float64, order="F")
        if self._inverted:
            return np.asarray(blas.dtrmm(1.0, self._upper, right, lower=0, trans_a=transposed, overwrite_b=1))
        return np.asarray(lapack.dtrtrs(self._upper, right, lower=0, trans=transposed, overwrite_b=1)[0])


def cholesky(
    matrix: NDArray[Any], scale: ArrayLike, shift: ArrayLike = 1.0, rows: Indices | None = None
) -> CholeskyFactor:
    """The factor of diag(shift) + diag(scale) K diag(scale), K the given rows and columns of a symmetric matrix.

    `scale` has shape (n,), `shift` is a number or has shape (n,); n = len(rows), or all rows. Only one triangle of
    the matrix is read; one n x n array is allocated and factored in place. Cost n^3 / 3.
    """
    chosen = np.arange(len(matrix)) if rows is None else np.asarray(rows, np.int64)
    factors = np.ascontiguousarray(np.broadcast_to(np.asarray(scale, float), chosen.shape))
    shifts = np.ascontiguousarray(np.broadcast_to(np.asarray(shift, float), chosen.shape))
    lower = np.empty((len(chosen), len(chosen)))
    scaled_lower(matrix, chosen, factors, shifts, lower)
    if len(chosen):
        upper, info = lapack.dpotrf(lower.T, lower=0, clean=0, overwrite_a=1)
        if info > 0:
            row = info - 1
            raise not_positive_definite(row, _pivot(upper, matrix, chosen, factors, shifts, row))
    return CholeskyFactor(lower)


def not_positive_definite(row: int, pivot: float) -> NotPositiveDefiniteError:
    """The error for a pivot that is not positive; the learner adds the jitter or scale that helps.

    `row` counts among the rows that were to be factored, whichever of the Gram they are.
    """
    return NotPositiveDefiniteError(
        f"the matrix to factor is not positive definite: pivot {pivot:.3g} at row {row}",
        row,
        pivot,
        advice="is the kernel positive semidefinite?",
    )


def _pivot(upper: Matrix, matrix: NDArray[Any], rows: Indices, scale: Matrix, shift: Matrix, row: int) -> float:
    """The pivot that stopped LAPACK, from the finished columns before it."""
    column = scale[row] * scale[: row + 1] * matrix[rows[row], rows[: row + 1]].astype(float)
    column[row] += shift[row]
    if row == 0:
        return float(column[0])
    leading = np.asfortranarray(upper[:row, :row])
    half, _ = lapack.dtrtrs(leading, column[:row], lower=0, trans=1)
    return float(column[row] - half @ half)


@jit
def scaled_lower(matrix: NDArray[Any], rows: Indices, scale: Matrix, shift: Matrix, out: Matrix) -> None:
    """out[i, j] = scale[i] scale[j] matrix[rows[i], rows[j]] + [i = j] shift[i] for j <= i; the rest is left alone."""
    for i in range(len(rows)):
        source = matrix[rows[i]]
        target = out[i]
        for j in range(i + 1):
            target[j] = scale[i] * scale[j] * source[rows[j]]
        target[i] += shift[i]


@jit
def lower_column_squares(lower: Matrix) -> Matrix:
    """Sum of squares of every column of a lower triangle, shape (n,); entries above the diagonal are not read."""
    total = np.zeros(len(lower))
    for i in range(len(lower)):
        row = lower[i]
        for j in range(i + 1):
            total[j] += row[j] * row[j]
    return total


def solve_refined(
    matrix: Callable[[type[np.floating]], Tile], apply: Callable[[Floats], Floats], sides: Floats
) -> Floats | None:
    """X with A X = `sides`, shape (size, n_rhs); None where rounding is in the way of a factor in either precision.

    A is factorised in single precision, at half the cost, and X <- X + L^-T L^-1 (B - A X) multiplies the residual by
    about 1e-7 times the condition of A. Where that does not help, and for small systems, the factor has double
    precision. `matrix(dtype)` makes a new A in that precision, of which the upper triangle is read; `apply(X)` is
    A X in double precision.
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
