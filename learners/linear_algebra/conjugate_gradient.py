"""Conjugate gradients for many right-hand sides and many shifts at once: one product with A per iteration.

Solves (A + s_j I) X_j = B for all shifts s_j from one block Krylov space (block CG with orthonormal residual blocks,
"rQ" form). In the notation of the code, with the smallest shift folded into A:

    W_k = P_k^T A P_k      Q_k - A P_k W_k^-1 = Q_{k+1} rho_{k+1}  (QR)      P_{k+1} = Q_{k+1} + P_k rho_{k+1}^T

so A [Q_0 Q_1 ...] is block tridiagonal with the factors D_k = W_k, L_k = -rho_k. Adding s I changes D_k to W_k + E_k,
E_0 = s I, E_{k+1} = s I + rho E_k (W_k + E_k)^-1 W_k rho^T, a recursion without subtractions, and with
H = (W_k + E_k)^-1 W_k rho^T:  X += P (W_k + E_k)^-1 y,  y <- H^T y,  P <- Q_{k+1} + P H.
The residual of every system is Q_k y, so its column norms are those of y. Memory: two blocks per shift.
Directions that run out (dependent right-hand sides, columns that converged exactly) leave the block.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, qr, solve_triangular

from gramline.learners.arrays import Matrix
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.solution import Solution, Status

Apply = Callable[[Matrix], Matrix]
Solve = Generator[Matrix, Matrix, list[Solution]]  # yields V, is sent A V, returns the solutions

DEPENDENT = 1e-13  # a direction this much smaller than the largest of its block is rounding
SQUARABLE = 1e-5  # a block whose smallest direction is at least so large beside its largest can be squared
WELL_CONDITIONED = 0.03  # and one like this loses next to nothing by it
SLACK = 10.0  # a true residual up to this many tolerances still counts as converged


@dataclass(eq=False)
class _Shifted:
    """The state of one shifted system."""

    shift: float  # beyond the smallest one
    value: Matrix  # X, shape (n, n_rhs)
    directions: Matrix  # P, shape (n, width)
    excess: Matrix  # E, shape (width, width)
    remainder: Matrix  # y, shape (width, n_rhs)
    iterations: int = 0
    is_done: bool = False

    @classmethod
    def start(cls, shift: float, basis: Matrix, coordinates: Matrix) -> _Shifted:
        value = np.zeros((len(basis), coordinates.shape[1]))
        return cls(shift, value, basis.copy(), shift * np.eye(basis.shape[1]), coordinates.copy())

    def residual(self) -> Matrix:
        norms: Matrix = np.linalg.norm(self.remainder, axis=0)
        return norms


def block_conjugate_gradient(
    apply: Apply,
    sides: Matrix,
    shifts: Sequence[float] = (0.0,),
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
    extra_columns: Matrix | None = None,
    references: Matrix | None = None,
) -> list[Solution]:
    """Solutions of (A + s I) X = `sides` for every shift s, in the order of `shifts`; see `solving`."""
    steps = solving(
        sides,
        shifts,
        tolerance=tolerance,
        max_iterations=max_iterations,
        extra_columns=extra_columns,
        references=references,
    )
    return solve_together(lambda blocks: {0: apply(blocks[0])}, [steps])[0]


def solve_together(
    apply_all: Callable[[dict[int, Matrix]], dict[int, Matrix]], solves: Sequence[Solve]
) -> list[list[Solution]]:
    """Run several `solving` generators in step: `apply_all` gets the blocks of all that still run, by their number."""
    results: list[list[Solution]] = [[]] * len(solves)
    answers: dict[int, Matrix | None] = dict.fromkeys(range(len(solves)))
    while answers:
        asked: dict[int, Matrix] = {}
        with one_blas_thread():  # the blocks are thin; the product may use what it likes
            for number, answer in answers.items():
                try:
                    asked[number] = next(solves[number]) if answer is None else solves[number].send(answer)
                except StopIteration as finished:
                    results[number] = finished.value
        answers = {**apply_all(asked)} if asked else {}
    return results


def solving(
    sides: Matrix,
    shifts: Sequence[float] = (0.0,),
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
    extra_columns: Matrix | None = None,
    references: Matrix | None = None,
) -> Solve:
    """A solve that yields blocks V of shape (n, width), is sent A V, and returns a solution per shift.

    A + min(shifts) I must be positive definite on the Krylov space. `extra_columns` (n, width) widen the block: more
    work per product, fewer products. A system is done when each column's residual is at most `tolerance` times its
    reference: the norm of that column of `sides`, unless `references` are given. The system of the smallest shift, the
    hardest, is checked once at the end with its true residual.
    """
    base = float(min(shifts))
    norms = np.linalg.norm(sides, axis=0) if references is None else references
    scale = np.where(norms > 0, norms, 1.0)
    basis, coordinates = orthonormal(sides if extra_columns is None else np.hstack([sides, extra_columns]))
    systems = [_Shifted.start(float(shift) - base, basis, coordinates[:, : sides.shape[1]]) for shift in shifts]
    directions = basis
    status = Status.MAX_ITERATIONS
    iteration = 0
    while True:
        for system in systems:
            system.is_done = system.is_done or bool(np.all(system.residual() <= tolerance * scale))
        if all(system.is_done for system in systems) or basis.shape[1] == 0:
            status = Status.CONVERGED
            break
        if iteration == max_iterations:
            break
        iteration += 1
        product = (yield directions) + base * directions
        curvature = directions.T @ product  # W
        curvature = (curvature + curvature.T) / 2
        try:
            factor = cho_factor(curvature)
        except LinAlgError:
            status = Status.NOT_POSITIVE_DEFINITE
            break
        following, turn = orthonormal(basis - product @ cho_solve(factor, np.eye(len(curvature))))  # Q, rho
        next_directions = following + directions @ turn.T
        for system in systems:
            if not system.is_done:
                _advance(system, curvature, following, turn, next_directions)
                system.iterations = iteration
        directions, basis = next_directions, following
    hardest = next(system for system in systems if system.shift == 0.0)
    true_residual = None
    if status is Status.CONVERGED and norms.any():
        missing = sides - (yield hardest.value) - base * hardest.value
        true_residual = np.linalg.norm(missing, axis=0) / scale
    return [_finished(system, status, scale, tolerance, true_residual) for system in systems]


def _advance(system: _Shifted, curvature: Matrix, following: Matrix, turn: Matrix, unshifted: Matrix) -> None:
    """One step of a system; `unshifted` are the next directions where the shift is 0 and so E = 0, H = rho^T."""
    factor = cho_factor(curvature + system.excess)
    system.value += system.directions @ cho_solve(factor, system.remainder)
    if not system.shift:
        system.remainder = turn @ system.remainder
        system.directions, system.excess = unshifted, np.zeros((len(turn), len(turn)))
        return
    bend = cho_solve(factor, curvature @ turn.T)  # H, shape (width, next width)
    system.remainder = bend.T @ system.remainder
    system.directions = following + system.directions @ bend
    excess = turn @ system.excess @ bend
    system.excess = (excess + excess.T) / 2 + system.shift * np.eye(len(turn))


def _finished(
    system: _Shifted, status: Status, scale: Matrix, tolerance: float, true_residual: Matrix | None
) -> Solution:
    residual = system.residual() / scale
    if system.is_done:
        status = Status.CONVERGED
    if system.shift == 0.0 and true_residual is not None:
        residual = true_residual
        if residual.max(initial=0.0) > SLACK * tolerance:
            status = Status.STAGNATED
    return Solution(system.value, status, system.iterations, residual)


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
    whole = np.eye(block.shape[1])
    for limit in (WELL_CONDITIONED, 0.0):
        try:
            turn = cholesky(block.T @ block, check_finite=False)
        except LinAlgError:
            return None
        sizes = np.diagonal(turn)
        smallest, largest = sizes.min(initial=np.inf), sizes.max(initial=0.0)
        if not smallest > SQUARABLE * largest:
            return None
        block, whole = block @ solve_triangular(turn, np.eye(len(turn)), check_finite=False), turn @ whole
        if smallest >= limit * largest:
            break
    return block, whole
