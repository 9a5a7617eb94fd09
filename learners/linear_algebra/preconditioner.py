"""A low-rank approximation of a positive semidefinite matrix from one product with it, used to precondition A + s I.

Randomized Nystrom approximation: with Y = A Omega for an orthonormal random Omega (n x rank), A ~ U diag(lam) U^T.
M = U diag((lam + s) / (lam_min + s)) U^T + (I - U U^T) is close to (A + s I) / (lam_min + s) when lam decays fast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gramline.learners.arrays import Matrix
from gramline.learners.checkpoints import named, part_of
from gramline.learners.linear_algebra.conjugate_gradient import (
    STOPPING,
    Solution,
    Solve,
    Status,
    StoppingRule,
    block_cg_steps,
)
from gramline.learners.linear_algebra.solve_memory import SolveMemory


@dataclass(frozen=True, eq=False)
class NystromPreconditioner:
    """M and its symmetric roots; they commute, so M^-1/2 (A + s I) M^-1/2 stays symmetric."""

    vectors: Matrix  # U, shape (n, rank), orthonormal
    values: Matrix  # lam, shape (rank,), descending
    shift: float

    @classmethod
    def of_image(cls, test: Matrix, image: Matrix, shift: float) -> NystromPreconditioner:
        """From an orthonormal `test` = Omega, shape (n, rank), and `image` = A Omega."""
        # a shift of rounding size keeps the small factor positive definite; it is taken off the values again
        nudge = float(np.sqrt(len(test)) * np.finfo(float).eps * np.linalg.norm(image)) or 1.0
        image = image + nudge * test
        small = test.T @ image
        root = solve_triangular(cholesky((small + small.T) / 2), image.T, trans="T").T  # A ~ root root^T
        vectors, sizes, _ = np.linalg.svd(root, full_matrices=False)
        return cls(vectors, np.maximum(sizes**2 - nudge, 0.0), shift)

    def inverse_root(self, block: Matrix) -> Matrix:
        """M^-1/2 block."""
        factors = np.sqrt((self.values[-1] + self.shift) / (self.values + self.shift))
        return np.asarray(block + self.vectors @ ((factors - 1.0)[:, None] * (self.vectors.T @ block)))


def nystrom_cg_steps(
    sides: Matrix,
    shift: float,
    rank: int,
    stopping: StoppingRule = STOPPING,
    *,
    memory: SolveMemory | None = None,
) -> Solve:
    """A solve of (A + shift I) X = `sides` like `block_cg_steps`, for one shift; its first product has `rank` columns.

    It works on M^-1/2 (A + s I) M^-1/2, whose residuals M^-1/2 R decide; the true ones are reported.
    """
    n, memory = len(sides), memory or SolveMemory()
    if (begun := memory.begun) is None:
        test = np.linalg.qr(np.random.default_rng(0).normal(size=(n, min(rank, n))))[0]
        preconditioner, inside = NystromPreconditioner.of_image(test, (yield test), shift), SolveMemory()
    else:
        preconditioner = NystromPreconditioner(begun["vectors"], begun["values"], shift)
        inside = SolveMemory(part_of(begun, "inside"))
    own = {"vectors": preconditioner.vectors, "values": preconditioner.values}
    inner = block_cg_steps(preconditioner.inverse_root(sides), stopping=stopping, memory=inside)
    norms = np.linalg.norm(sides, axis=0)
    block = next(inner, None)
    while block is not None:
        directions = preconditioner.inverse_root(block)
        memory.state = own | named("inside", inside.state)
        product = (yield directions) + shift * directions
        try:
            block = inner.send(preconditioner.inverse_root(product))
        except StopIteration as finished:
            (solution,) = finished.value
            residual = solution.residual
            if solution.status in (Status.CONVERGED, Status.STAGNATED):  # then the last product was that of X
                residual = np.linalg.norm(sides - product, axis=0) / np.where(norms > 0, norms, 1.0)
            return [replace(solution, value=preconditioner.inverse_root(solution.value), residual=residual)]
    return [Solution(np.zeros_like(sides), Status.CONVERGED, 0, np.zeros(sides.shape[1]))]
