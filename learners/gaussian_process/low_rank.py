"""A route past n^3: C = F F^T + diag(r) of rank k by pivoted Cholesky, and its factor by Woodbury, in n k^2.

The missing diagonal r = diag C - row sums of F^2 is kept, so prior variances stay exact. The pivots are landmarks:
all that prediction needs of the training positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.errors import NotPositiveDefiniteError
from gramline.learners.gaussian_process.covariance import ExactCovariance, row_blocks
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.linear_algebra.cholesky import cholesky, not_positive_definite
from gramline.learners.operators.operator import GramOperator

SUBSET = 500  # positions on which an approximation is compared with the exact covariance
NOTHING_LEFT = 1e-12  # residual, relative to the largest diagonal entry, at which the rank is complete
BLOCKS = 4  # of pivots, if all that are drawn were kept: every block is a pass over the matrix
ROWS_AT_ONCE = 8192  # of a factor
TOO_NEGATIVE = 1e-3  # of a residual, relative likewise


@dataclass(frozen=True)
class PivotedCholesky:
    """C is close to F F^T; F[pivots] is lower triangular."""

    basis: Matrix  # F, shape (n, k)
    pivots: Indices  # shape (k,)
    residual: Matrix  # diag(C - F F^T) >= 0, shape (n,)


def pivoted_cholesky(columns: Callable[[Indices], Matrix], diagonal: Matrix, rank: int) -> PivotedCholesky:
    """Pivots drawn with chances in proportion to what is not explained, whole blocks of them at a time.

    `columns(chosen)` is C[:, chosen]; it is called about 1.3 * BLOCKS times, whatever the rank. Of a drawn block each
    candidate is kept with the chance (what is left of it after those before it) / (what was left of it at the draw): so
    the kept ones are as if drawn one by one (randomly pivoted Cholesky, block rejection).
    A diagonal that is explained more than whole, beyond rounding in single precision, is that of no positive
    semidefinite C.
    """
    residual = _clipped(diagonal, diagonal)
    rank = min(rank, len(diagonal))
    basis = np.zeros((len(diagonal), rank))
    pivots = np.empty(0, np.int64)
    enough = NOTHING_LEFT * float(diagonal.max(initial=0.0))
    draw = np.random.default_rng(0)
    while len(pivots) < rank and (residual > enough).any():
        k = len(pivots)
        unexplained = np.where(residual > enough, residual, 0.0)
        at_once = min(-(-rank // BLOCKS), int(np.count_nonzero(unexplained)))
        chosen = draw.choice(len(diagonal), at_once, replace=False, p=unexplained / unexplained.sum())
        fresh = columns(chosen) - basis[:, :k] @ basis[chosen, :k].T
        kept, triangle = _kept_pivots(fresh[chosen], residual[chosen] * draw.random(at_once), enough, rank - k)
        if not len(kept):
            break  # what seemed to be left is rounding
        taken = slice(k, k + len(kept))
        basis[:, taken] = solve_triangular(triangle, fresh[:, kept].T, lower=True).T
        basis[pivots, taken] = 0.0
        basis[chosen[kept], taken] = triangle
        residual = _clipped(residual - (basis[:, taken] ** 2).sum(axis=1), diagonal)
        pivots = np.concatenate([pivots, chosen[kept]])
        residual[pivots] = 0.0
    whole = len(pivots) == rank  # else the columns that nobody needed go
    return PivotedCholesky(basis if whole else basis[:, : len(pivots)].copy(), pivots, residual)


def _kept_pivots(block: Matrix, thresholds: Matrix, enough: float, at_most: int) -> tuple[Indices, Matrix]:
    """Places of the candidates that have more than their threshold left, in order, and the Cholesky factor of these.

    `block` is what is not explained between the candidates, shape (b, b).
    """
    rows = np.zeros((len(block), min(len(block), at_most)))
    kept: list[int] = []
    for place in range(len(block)):
        k = len(kept)
        if k == rows.shape[1]:
            break
        left = block[place, place] - rows[place, :k] @ rows[place, :k]
        if left <= max(thresholds[place], enough):
            continue
        rows[:, k] = (block[:, place] - rows[:, :k] @ rows[place, :k]) / np.sqrt(left)
        kept.append(place)
    return np.array(kept, np.int64), np.tril(rows[kept][:, : len(kept)])


def usual_passes(rank: int) -> int:
    """How often the columns of a matrix are usually asked for until so many pivots are chosen; for plans."""
    return min(rank, BLOCKS + 1)


def _clipped(residual: Matrix, diagonal: Matrix) -> Matrix:
    """The residual, with 0 where rounding made it negative."""
    worst = int(residual.argmin())
    if residual[worst] < -TOO_NEGATIVE * np.abs(diagonal).max():
        raise not_positive_definite(worst, float(residual[worst]))
    return np.maximum(residual, 0.0)


def low_rank(exact: ExactCovariance, rank: int) -> PivotedCholesky:
    """The pivoted Cholesky of an exact covariance; also rows that never became a pivot are checked.

    The rest of a positive semidefinite C, E = C - F F^T, has |E_ij| <= sqrt(r_i r_j). One product finds a row with
    larger entries, above all one with a diagonal of 0, which never becomes a pivot.
    """
    result = pivoted_cholesky(exact.columns, exact.diagonal(), rank)
    draw = np.random.default_rng(0)
    probe = draw.choice([-1.0, 1.0], exact.n_rows) * draw.uniform(1.0, 2.0, exact.n_rows)  # never near 0
    left = exact.multiply(probe[:, None])[:, 0] - result.basis @ (result.basis.T @ probe)
    roots = np.sqrt(result.residual)
    excess = np.abs(left) - roots * (roots @ np.abs(probe))
    row = int(excess.argmax())
    if excess[row] > TOO_NEGATIVE * exact.diagonal().max():
        entries = exact.column(row) - result.basis @ result.basis[row]
        entries[row] = 0.0
        other = int((np.abs(entries) - roots * roots[row]).argmax())
        pair = np.diag(result.residual[[row, other]]) + entries[other] * np.eye(2)[::-1]
        raise not_positive_definite(max(row, other), float(np.linalg.eigvalsh(pair)[0]))
    return result


class LowRankFactor:
    """B = diag(D) + Z Z^T, Z = diag(s) F of shape (n, k): everything goes through M = I + Z^T D^-1 Z.

    Z is made a few rows at a time: beside F there is one more array of n k numbers, and not five.
    """

    def __init__(self, diagonal: Matrix, scale: Matrix, basis: Matrix) -> None:
        self._diagonal = diagonal
        n, k = basis.shape
        parts = [slice(first, first + ROWS_AT_ONCE) for first in range(0, n, ROWS_AT_ONCE)]
        overlap = np.zeros((k, k))
        for rows in parts:
            scaled = scale[rows, None] * basis[rows] / np.sqrt(diagonal[rows])[:, None]
            overlap += scaled.T @ scaled
        self.inner = cholesky(overlap, 1.0)
        # L_M^-1 Z^T D^-1, shape (k, n)
        self._half = np.empty((k, n), order="F")
        for rows in parts:
            self._half[:, rows] = self.inner.half_solve((scale[rows, None] * basis[rows]).T / diagonal[rows])

    def solve(self, X: Matrix) -> Matrix:
        return np.asarray(X / self._diagonal[:, None] - self._half.T @ (self._half @ X))

    def quadratic(self, X: Matrix) -> Matrix:
        half = self._half @ X
        return np.asarray((X**2 / self._diagonal[:, None]).sum(axis=0) - (half**2).sum(axis=0))

    def log_determinant(self) -> float:
        return float(np.log(self._diagonal).sum()) + self.inner.log_determinant()

    def inverse_diagonal(self) -> Matrix:
        return np.asarray(1.0 / self._diagonal - np.einsum("ij,ij->j", self._half, self._half))


class LowRankCovariance:
    """C = F F^T + diag(r + jitter), with the interface of the exact covariance."""

    def __init__(self, decomposition: PivotedCholesky, jitter: float = 0.0) -> None:
        self.decomposition = decomposition
        self.basis = decomposition.basis
        self._rest = decomposition.residual + jitter

    def multiply(self, W: Matrix) -> Matrix:
        return np.asarray(self.basis @ (self.basis.T @ W) + self._rest[:, None] * W)

    def diagonal(self) -> Matrix:
        return np.asarray(np.einsum("ij,ij->i", self.basis, self.basis) + self._rest)

    def columns(self, chosen: Indices) -> Matrix:
        block: Matrix = self.basis @ self.basis[chosen].T
        block[chosen, np.arange(len(chosen))] += self._rest[chosen]
        return block

    def factor(self, scale: Matrix) -> LowRankFactor:
        return LowRankFactor(1.0 + scale**2 * self._rest, scale, self.basis)


def low_rank_covariance(exact: ExactCovariance, rank: int) -> LowRankCovariance:
    """Approximate C; the jitter stays outside of the rank, unless it is what makes C positive semidefinite."""
    try:
        return LowRankCovariance(low_rank(ExactCovariance(exact.gram, exact.rows), rank), exact.jitter)
    except NotPositiveDefiniteError:
        if not exact.jitter:
            raise
        return LowRankCovariance(low_rank(exact, rank))


@dataclass(frozen=True)
class LowRankPosterior:
    """The local functions at new positions from the landmarks alone: F_* = F[pivots]^-1 C_pivots,*.

    mean = F_*^T F^T (u o a);  var = k_** - ||F_*||^2 + ||L_M^-1 F_*||^2 with M of every label.
    """

    triangle: Matrix  # F[pivots], the Cholesky factor of C between the pivots, shape (k, k)
    cross_rows: Indices  # the pivots among the rows of a cross Gram, in order, shape (k,)
    means_at_landmarks: Matrix  # F^T (u o a), shape (k, n_labels)
    inner: Matrix  # lower L_M of every label, shape (n_labels, k, k)

    @classmethod
    def of(cls, covariance: LowRankCovariance, rows: Indices, inference: Inference) -> LowRankPosterior:
        """The landmarks of a fitted posterior; `rows` are the rows of C among those of a cross Gram."""
        q, pivoted = inference.posterior, covariance.decomposition
        spreads = [inference.spread(j, q.precision[:, j]) for j in range(len(q.scale))]
        return cls(
            pivoted.basis[pivoted.pivots],
            rows[pivoted.pivots],
            covariance.basis.T @ (np.sqrt(q.scale) * inference.weights * q.dual),
            np.array([covariance.factor(spread).inner.lower() for spread in spreads]),
        )

    def means(self, cross: GramOperator, new_weights: Matrix) -> Matrix:
        means = np.empty(new_weights.shape)
        for cols, block in row_blocks(cross, self.cross_rows):
            means[cols] = self._basis(block).T @ self.means_at_landmarks
        return means * new_weights

    def variances(self, cross: GramOperator, prior: Matrix, new_weights: Matrix) -> Matrix:
        variances = np.empty(new_weights.shape)
        for cols, block in row_blocks(cross, self.cross_rows):
            basis = self._basis(block)
            left = prior[cols] - (basis**2).sum(axis=0)
            for j, lower in enumerate(self.inner):
                variances[cols, j] = left + (solve_triangular(lower, basis, lower=True) ** 2).sum(axis=0)
        return np.maximum(variances, 0.0) * new_weights**2

    def _basis(self, block: Matrix) -> Matrix:
        """F_*, shape (k, columns)."""
        return np.asarray(solve_triangular(self.triangle, block, lower=True))


def approximation_report(
    exact: ExactCovariance, approximate: LowRankCovariance, inference: Inference
) -> dict[str, float]:
    """How far the approximation is from the exact covariance, on a fixed random subset of positions.

    trace_residual   share of the trace that the rank leaves to the diagonal
    kernel_error     largest entry of C - approximation, relative to the largest diagonal entry
    mean_error       largest difference of a posterior mean K a, for the fitted a
    variance_error   largest difference of a posterior variance given the fitted lam of the subset alone

    A subset whose exact covariance is not positive semidefinite is refused.
    """
    dual, precision = inference.posterior.dual, inference.posterior.precision
    weights = np.sqrt(inference.posterior.scale) * inference.weights  # u including the scale, shape (n, n_labels)
    subset = np.sort(np.random.default_rng(0).permutation(exact.n_rows)[:SUBSET])
    true, near = exact.columns(subset), approximate.columns(subset)
    diagonal = np.maximum(exact.diagonal(), np.finfo(float).tiny)  # a Gram of zeros lacks nothing
    variance_error = 0.0
    for j in range(dual.shape[1]):
        spread = np.sqrt(precision[subset, j]) * weights[subset, j]
        try:
            explained = [cholesky(C[subset], spread).quadratic(spread[:, None] * C[subset]) for C in (true, near)]
        except NotPositiveDefiniteError as error:
            raise not_positive_definite(int(subset[error.row]), error.pivot) from None
        differences = weights[subset, j] ** 2 * np.abs(explained[0] - explained[1])
        variance_error = max(variance_error, float(differences.max(initial=0.0)))
    return {
        "rank": len(approximate.decomposition.pivots),
        "subset": len(subset),
        "trace_residual": float(approximate.decomposition.residual.sum() / diagonal.sum()),
        "kernel_error": float(np.abs(true - near).max() / diagonal.max()),
        "mean_error": float(np.abs(weights[subset] * ((true - near).T @ (weights * dual))).max()),
        "variance_error": variance_error,
    }
