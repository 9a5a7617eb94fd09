"""The emission block of the Z-score's normal equations with explicit sparse features.

(F^T F / n + ridge I) X = F^T S with S = [Yc | s_in | s_out], X of shape (D, n + 2). Repeated rows and columns are
merged first. What is left is factorised, in the size of its rows or of its global features, whichever are fewer; or
solved by conjugate gradients that only multiply with F and F^T. docs/design-notes.md has the times of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, diags_array

from gramline.learners.arrays import Floats
from gramline.learners.errors import LearnerParameterError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.cholesky import solve_refined
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, block_conjugate_gradient
from gramline.learners.zscore.compressed_features import CompressedFeatures
from gramline.learners.zscore.local_features import LocalFeatures, overlaps

Solver = Annotated[Literal["auto", "direct", "cg"], '`"direct"` factorises, `"cg"` iterates, `"auto"` chooses by size']
FACTOR_LIMIT = 3000  # rows of a factor, at n ridge = 1, above which conjugate gradients take less time; measured
FACTOR_SMALLEST = 1200  # rows that are always factorised
FACTOR_LARGEST = 8000  # rows of a factor that takes 256 MB in single precision
DENSE_LIMIT = 20000  # rows of a factor above which solver="direct" is refused (3.2 GB)
GROUP = 16  # rows that local features join; larger groups leave few features less and fill the blocks; measured
HEAD = 700  # columns that are eliminated before conjugate gradients start, the heaviest ones; measured
RANK_ERROR = 64  # rounding errors that an eigenvalue of 0 may be off by, at least; 6 were seen in a 3 x 3 matrix
SYSTEM = "the Z-score's emission system"


class EmissionSystem:
    """The system above for one training set; many ridges share its preparation."""

    def __init__(self, features: csr_array, sides: Floats, n_labels: int) -> None:
        self.features = features
        self.sides = sides  # S, shape (N, n + 2)
        self.n_labels = n_labels

    @cached_property
    def _compressed(self) -> CompressedFeatures:
        return CompressedFeatures.of(self.features)

    @cached_property
    def _local(self) -> LocalFeatures:
        return LocalFeatures.of(self._compressed.distinct, GROUP)

    @cached_property
    def _singletons(self) -> LocalFeatures:
        """Features of one row only: the local ones whose elimination costs conjugate gradients nothing."""
        return LocalFeatures.of(self._compressed.distinct, 1)

    def solve(self, ridge: float, solver: Solver, stopping: StoppingRule) -> Floats:
        """X, shape (D, n + 2); of least norm when ridge = 0."""
        if ridge == 0:
            return self._least_norm(solver, stopping)
        weights = None if solver == "cg" else self._factorised(ridge, solver)
        if weights is None:
            with one_blas_thread():  # blocks this thin gain nothing from a second thread
                weights = _iterated(self._eliminated(self._singletons, ridge), stopping)
        return self._compressed.spread(weights)

    def _factorised(self, ridge: float, solver: Solver) -> Floats | None:
        """Weights of the distinct features; None where conjugate gradients take less time or rounding forbids a factor.

        A factor takes the cube of the size, conjugate gradients about (n ridge)^-1/2 times the size.
        """
        rows, local = self._compressed.distinct, self._singletons
        if solver == "auto" and _factor_size(rows, local) > FACTOR_SMALLEST:
            local = self._local
        size = _factor_size(rows, local)
        limit = np.clip(FACTOR_LIMIT * (self.n_labels * ridge) ** -0.25, FACTOR_SMALLEST, FACTOR_LARGEST)
        if not _is_dense(solver, size, limit):
            return None
        if size < local.global_features.shape[1]:
            dual = solve_symmetric((rows @ rows.T).toarray() / self.n_labels, self._gathered, ridge)
            return np.asarray(rows.T @ dual)
        with one_blas_thread():
            return _factorised(self._eliminated(local, ridge))

    @cached_property
    def _gathered(self) -> Floats:
        return self._compressed.gathered(self.sides)

    def _eliminated(self, local: LocalFeatures, ridge: float) -> _Eliminated:
        return _Eliminated(local, local.inverse(ridge, self.n_labels), self._gathered, self.n_labels)

    def _least_norm(self, solver: Solver, stopping: StoppingRule) -> Floats:
        """The pseudo-inverse belongs to the features as they are."""
        features, n = self.features, self.n_labels
        if _is_dense(solver, min(features.shape), FACTOR_SMALLEST):
            if features.shape[1] <= features.shape[0]:
                return solve_symmetric((features.T @ features).toarray() / n, np.asarray(features.T @ self.sides), 0.0)
            return np.asarray(features.T @ solve_symmetric((features @ features.T).toarray() / n, self.sides, 0.0))
        transposed = features.T.tocsr()

        def apply(block: Floats) -> Floats:
            return np.asarray(transposed @ (features @ block)) / n

        with one_blas_thread():
            (solution,) = block_conjugate_gradient(apply, np.asarray(transposed @ self.sides), stopping=stopping)
        return solution.trusted(SYSTEM)


def _factor_size(rows: csr_array, local: LocalFeatures) -> int:
    return min(rows.shape[0], local.global_features.shape[1])


def _is_dense(solver: Solver, size: int, limit: float) -> bool:
    """Whether to form a matrix of size x size."""
    if solver == "direct" and size > DENSE_LIMIT:
        raise LearnerParameterError(
            f"a direct solve would need a dense {size} x {size} matrix",
            advice="set solver to cg or auto",
            key="solver",
        )
    return solver == "direct" or (solver == "auto" and size <= limit)


def solve_symmetric(matrix: Floats, sides: Floats, ridge: float | Floats) -> Floats:
    """(matrix + ridge)^-1 sides for a positive semidefinite matrix (overwritten); the pseudo-inverse where ridge = 0.

    `ridge` is one number or one per row.
    """
    if len(matrix) == 0:
        return np.zeros_like(sides)
    matrix[np.diag_indices(len(matrix))] += ridge
    if np.min(ridge) > 0:
        return np.asarray(cho_solve(cho_factor(matrix, overwrite_a=True), sides))
    values, vectors = eigh(matrix, overwrite_a=True)
    kept = values > max(RANK_ERROR, len(values)) * np.finfo(float).eps * max(values[-1], 0.0)
    basis = vectors[:, kept]
    return basis @ ((basis.T @ sides) / values[kept, None])


@dataclass(frozen=True, eq=False)
class _Eliminated:
    """The system without its local features T: (H^T Delta^-1 H / n + I) Z = H^T Delta^-1 S for the global ones, H.

    Delta = ridge + T T^T / n is block diagonal. Z are the weights of H, those of T are T^T Delta^-1 (S - H Z / n).
    """

    local: LocalFeatures
    inverse: csr_array  # Delta^-1
    sides: Floats  # S per distinct row
    n_labels: int

    def diagonal(self) -> Floats:
        """That of the matrix, shape (n_global,)."""
        columns = self.local.global_features
        return np.asarray(columns.multiply(self.inverse @ columns).sum(axis=0)).ravel() / self.n_labels + 1.0

    def all_weights(self, solved: Floats) -> Floats:
        """Weights of H and T together, in the order of the features, from Z."""
        local = self.local
        rest = np.asarray(self.inverse @ (self.sides - np.asarray(local.global_features @ solved) / self.n_labels))
        weights = np.empty((len(local.is_local), solved.shape[1]))
        weights[~local.is_local] = solved
        weights[local.is_local] = local.local_features.T @ rest
        return weights


def _factorised(system: _Eliminated) -> Floats | None:
    """All weights by a Cholesky factor in the size of H; None where rounding forbids it."""
    inverse, n = system.inverse, system.n_labels
    scales = 1.0 / np.sqrt(system.diagonal())  # to a unit diagonal
    columns = (system.local.global_features @ diags_array(scales)).tocsr()
    explained = (inverse @ columns / n).tocsr()  # Delta^-1 H / n
    column_rows = columns.T.tocsr()

    def apply(block: Floats) -> Floats:
        return np.asarray(np.asarray(column_rows @ (inverse @ (columns @ block))) / n + scales[:, None] ** 2 * block)

    solved = solve_refined(
        lambda dtype: overlaps(columns, explained, scales**2, dtype), apply, n * np.asarray(explained.T @ system.sides)
    )
    return None if solved is None else system.all_weights(scales[:, None] * solved)


def _iterated(system: _Eliminated, stopping: StoppingRule) -> Floats:
    """All weights: the heaviest columns H_1 of H eliminated exactly, conjugate gradients for the others, H_2.

    With M = Delta^-1 - Delta^-1 H_1 (H_1^T Delta^-1 H_1 / n + I)^-1 H_1^T Delta^-1 / n the others have the equations
    (H_2^T M H_2 / n + I) Z_2 = H_2^T M S, scaled to about a unit diagonal. Frequent features overlap most; without them
    far fewer iterations are needed than with them as a preconditioner.
    """
    n, inverse, sides = system.n_labels, system.inverse, system.sides
    diagonal = system.diagonal()
    order = np.argsort(-diagonal, kind="stable")
    n_head = min(HEAD, len(order))
    columns = system.local.global_features.tocsc()[:, order]
    head, tail = columns[:, :n_head].tocsr(), columns[:, n_head:].tocsr()
    head_rows, tail_rows = head.T.tocsr(), tail.T.tocsr()
    explained = (inverse @ head / n).tocsr()
    # The inverse itself: one product per iteration where two triangular solves of so few columns would take longer.
    head_inverse = solve_symmetric((head_rows @ explained).toarray(), np.eye(n_head), 1.0)
    scales = (1.0 / np.sqrt(diagonal[order]))[:, None]
    tail_scales = scales[n_head:]

    def unexplained(values: Floats) -> Floats:
        """M values: what the heads leave of position values."""
        weighted = inverse @ values
        return np.asarray(weighted - explained @ (head_inverse @ np.asarray(head_rows @ weighted)))

    def apply(block: Floats) -> Floats:
        inner = tail_scales * block
        return np.asarray(tail_scales * (np.asarray(tail_rows @ unexplained(np.asarray(tail @ inner))) / n + inner))

    # The heads' equations hold exactly, so the residual of the tail is that of the whole system.
    (solution,) = block_conjugate_gradient(
        apply,
        tail_scales * np.asarray(tail_rows @ unexplained(sides)),
        stopping=stopping,
        references=np.linalg.norm(scales * np.asarray(columns.T @ (inverse @ sides)), axis=0),
    )
    of_tail = tail_scales * solution.trusted(SYSTEM)
    of_head = head_inverse @ np.asarray(head_rows @ (inverse @ (sides - np.asarray(tail @ of_tail) / n)))
    unsorted = np.empty((len(order), sides.shape[1]))
    unsorted[order] = np.concatenate([of_head, of_tail])
    return system.all_weights(unsorted)
