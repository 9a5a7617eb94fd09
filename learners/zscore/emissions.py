"""The emission block of the Z-score's normal equations with explicit sparse features.

(F^T F / n + ridge I) X = F^T [Yc | s_in | s_out], shape (D, n + 2). Features are compressed first. What is left is
solved directly, D x D or N x N, whichever is smaller; without its local features; or by conjugate gradients that only
multiply with F and F^T.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, diags_array

from gramline.learners.arrays import Floats
from gramline.learners.errors import LearnerParameterError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, block_conjugate_gradient
from gramline.learners.linear_algebra.refined_cholesky import solve_refined
from gramline.learners.linear_algebra.sparse_overlaps import overlaps
from gramline.learners.zscore.compressed_features import CompressedFeatures
from gramline.learners.zscore.local_features import LocalFeatures

Solver = Literal["auto", "direct", "cg"]
SOLVERS = ("auto", "direct", "cg")
DIRECT_LIMIT = 1200  # rows of a dense system above which conjugate gradients take less time; measured
DENSE_LIMIT = 20000  # rows of a dense system above which a direct solve is refused (3.2 GB)
FAR_LIMIT = 3000  # features that are not local, at n ridge = 1, above which the same holds; measured
FAR_LARGEST = 8000  # and where a single-precision factor takes 256 MB
HEAD = 700  # columns that are eliminated before conjugate gradients start, the heaviest ones; measured
RANK_ERROR = 64  # rounding errors that an eigenvalue of 0 may be off by, at least; 6 were seen in a 3 x 3 matrix
SYSTEM = "the Z-score's emission system"


class EmissionSystem:
    """The system above for one training set; many ridges share its preparation."""

    def __init__(self, features: csr_array, sides: Floats, n_labels: int) -> None:
        self.features = features
        self.sides = sides  # [Yc | s_in | s_out], shape (N, n + 2)
        self.n_labels = n_labels

    @cached_property
    def _compressed(self) -> tuple[CompressedFeatures, Floats]:
        compressed = CompressedFeatures.of(self.features)
        return compressed, compressed.gathered(self.sides)

    @cached_property
    def _local(self) -> LocalFeatures:
        return LocalFeatures.of(self._compressed[0].shared)

    def solve(self, ridge: float, solver: Solver, tolerance: float, max_iterations: int) -> Floats:
        """X, shape (D, n + 2); of least norm when ridge = 0.

        With delta = ridge + u/n and B = (n delta)^-1/2 R the columns of R have the weights
        Z = (B^T B + I)^-1 B^T (n / delta)^1/2 S, and those of U have U^T delta^-1 (S - R Z / n).
        """
        if ridge == 0:
            return self._least_norm(solver, tolerance, max_iterations)
        compressed, sides = self._compressed
        diagonal = ridge + compressed.lonely_squares / self.n_labels  # delta
        is_dense = _is_direct(solver, min(compressed.shared.shape))
        if solver == "auto" and not is_dense and self._local.far.shape[1] <= _far_limit(self.n_labels * ridge):
            found = self._without_local(diagonal)
            if found is not None:
                return found
        scaled = (diags_array(1.0 / np.sqrt(self.n_labels * diagonal)) @ compressed.shared).tocsr()  # B
        weighted = sides * np.sqrt(self.n_labels / diagonal)[:, None]
        if is_dense:
            shared = _direct(scaled, weighted)
        else:
            with one_blas_thread():  # blocks this thin gain nothing from a second thread
                shared = _preconditioned(scaled, weighted, tolerance, max_iterations)
        rest = (sides - np.asarray(compressed.shared @ shared) / self.n_labels) / diagonal[:, None]
        return compressed.spread(shared, np.asarray(compressed.lonely.T @ rest))

    def _without_local(self, diagonal: Floats) -> Floats | None:
        """X by a factorisation in the size of the features H that are not local; None where rounding forbids it.

        With Delta = diag(delta) + T T^T / n, block diagonal, and A = H^T Delta^-1 H / n + I, the weights of H are
        Z = A^-1 H^T Delta^-1 S, and those of the others T^T E and U^T E, E = Delta^-1 (S - H Z / n). A is scaled to a
        unit diagonal.
        """
        (compressed, sides), local, n = self._compressed, self._local, self.n_labels
        far = local.far
        inverse = local.inverse(diagonal, n)
        explained = (inverse @ far / n).tocsr()  # Delta^-1 H / n
        scales = 1.0 / np.sqrt(np.asarray(far.multiply(explained).sum(axis=0)).ravel() + 1.0)
        far = (far @ diags_array(scales)).tocsr()
        explained = (explained @ diags_array(scales)).tocsr()
        far_rows = far.T.tocsr()

        def apply(block: Floats) -> Floats:
            product: Floats = np.asarray(far_rows @ (inverse @ (far @ block))) / n + scales[:, None] ** 2 * block
            return product

        with one_blas_thread():
            solved = solve_refined(
                lambda dtype: overlaps(far, explained, scales**2, dtype), apply, n * np.asarray(explained.T @ sides)
            )
        if solved is None:
            return None
        rest = np.asarray(inverse @ (sides - np.asarray(far @ solved) / n))
        shared = np.empty((len(local.is_local), sides.shape[1]))
        shared[~local.is_local] = scales[:, None] * solved
        shared[local.is_local] = local.local.T @ rest
        return compressed.spread(shared, np.asarray(compressed.lonely.T @ rest))

    def _least_norm(self, solver: Solver, tolerance: float, max_iterations: int) -> Floats:
        """The pseudo-inverse belongs to the features as they are."""
        features, n = self.features, self.n_labels
        if _is_direct(solver, min(features.shape)):
            if features.shape[1] <= features.shape[0]:
                return solve_symmetric((features.T @ features).toarray() / n, np.asarray(features.T @ self.sides), 0.0)
            return np.asarray(features.T @ solve_symmetric((features @ features.T).toarray() / n, self.sides, 0.0))
        transposed = features.T.tocsr()

        def apply(block: Floats) -> Floats:
            return np.asarray(transposed @ (features @ block)) / n

        with one_blas_thread():
            (found,) = block_conjugate_gradient(
                apply, np.asarray(transposed @ self.sides), stopping=StoppingRule(tolerance, max_iterations)
            )
        return found.trusted(SYSTEM)


def _is_direct(solver: Solver, rows: int) -> bool:
    if solver == "direct" and rows > DENSE_LIMIT:
        raise LearnerParameterError(
            f"a direct solve would need a dense {rows} x {rows} matrix; use solver='cg' or solver='auto'"
        )
    return solver == "direct" or (solver == "auto" and rows <= DIRECT_LIMIT)


def _far_limit(stiffness: float) -> float:
    """Conjugate gradients take about stiffness^-1/2 iterations, each in proportion to the size; a factor its cube."""
    return float(min(FAR_LARGEST, FAR_LIMIT * stiffness**-0.25))


def _direct(scaled: csr_array, weighted: Floats) -> Floats:
    """(B^T B + I)^-1 B^T W, from whichever of B^T B and B B^T is smaller."""
    if scaled.shape[1] <= scaled.shape[0]:
        return solve_symmetric((scaled.T @ scaled).toarray(), np.asarray(scaled.T @ weighted), 1.0)
    return np.asarray(scaled.T @ solve_symmetric((scaled @ scaled.T).toarray(), weighted, 1.0))


def solve_symmetric(matrix: Floats, sides: Floats, ridge: float | Floats) -> Floats:
    """(matrix + ridge)^-1 sides for a positive semidefinite matrix (overwritten); the pseudo-inverse where ridge = 0.

    `ridge` is one number or one per row.
    """
    if len(matrix) == 0:
        return np.zeros_like(sides)
    matrix[np.diag_indices(len(matrix))] += ridge
    if np.min(ridge) > 0:
        solved: Floats = cho_solve(cho_factor(matrix, overwrite_a=True), sides)
        return solved
    values, vectors = eigh(matrix, overwrite_a=True)
    kept = values > max(RANK_ERROR, len(values)) * np.finfo(float).eps * max(values[-1], 0.0)
    basis = vectors[:, kept]
    return basis @ ((basis.T @ sides) / values[kept, None])


def _preconditioned(scaled: csr_array, weighted: Floats, tolerance: float, max_iterations: int) -> Floats:
    """(B^T B + I)^-1 B^T W: the heaviest columns H of B eliminated exactly, conjugate gradients for the others, T.

    (T^T T + I - T^T H (H^T H + I)^-1 H^T T) Z_T = T^T (W - H (H^T H + I)^-1 H^T W), scaled to about a unit diagonal.
    Frequent features overlap most; without them far fewer iterations are needed than with them as a preconditioner.
    """
    weights = np.asarray(scaled.power(2).sum(axis=0)).ravel()
    order = np.argsort(-weights, kind="stable")
    n_head = min(HEAD, len(order))
    columns = scaled.tocsc()[:, order]
    head, tail = columns[:, :n_head].tocsr(), columns[:, n_head:].tocsr()
    head_rows, tail_rows = head.T.tocsr(), tail.T.tocsr()
    # The inverse itself: one product per iteration where two triangular solves of so few columns would take longer.
    inverse = solve_symmetric((head_rows @ head).toarray(), np.eye(n_head), 1.0)
    scales = (1.0 / np.sqrt(weights[order] + 1.0))[:, None]
    tail_scales = scales[n_head:]

    def unexplained(values: Floats) -> Floats:
        """What the heads leave of position values: (I - H (H^T H + I)^-1 H^T) values."""
        rest: Floats = values - head @ (inverse @ np.asarray(head_rows @ values))
        return rest

    def apply(block: Floats) -> Floats:
        inner = tail_scales * block
        product: Floats = tail_scales * (np.asarray(tail_rows @ unexplained(np.asarray(tail @ inner))) + inner)
        return product

    # The heads' equations hold exactly, so the residual of the tail is that of the whole system.
    references = np.linalg.norm(scales * np.asarray(columns.T @ weighted), axis=0)
    (found,) = block_conjugate_gradient(
        apply,
        tail_scales * np.asarray(tail_rows @ unexplained(weighted)),
        stopping=StoppingRule(tolerance, max_iterations),
        references=references,
    )
    of_tail = tail_scales * found.trusted(SYSTEM)
    of_head = inverse @ np.asarray(head_rows @ (weighted - np.asarray(tail @ of_tail)))
    unsorted = np.empty((len(order), weighted.shape[1]))
    unsorted[order] = np.concatenate([of_head, of_tail])
    return unsorted
