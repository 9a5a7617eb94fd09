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

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from gramline.learners.arrays import Matrix
from gramline.learners.checkpoints import State, part_of
from gramline.learners.errors import ConvergenceError, Outcome
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.orthonormal import orthonormal
from gramline.learners.linear_algebra.solve_memory import SolveMemory, numbered

SLACK = 10.0  # a true residual up to this many tolerances still counts as converged


class Status(Outcome):
    """How an iterative solve ended."""

    CONVERGED = "converged", "nothing to do"
    MAX_ITERATIONS = "max_iterations", "raise max_iterations, the ridge or the tolerance"
    NOT_POSITIVE_DEFINITE = (
        "not_positive_definite",
        "the matrix has a direction of negative size: check that the kernel is positive semidefinite, or raise the "
        "ridge above its most negative eigenvalue",
    )
    STAGNATED = (
        "stagnated",
        "rounding stops the solve short of the tolerance: raise the ridge or the tolerance, or store the Gram in "
        "float64",
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of A X = B for several right-hand sides; the worst column decides the status."""

    value: Matrix  # X, shape (n, n_rhs)
    status: Status
    iterations: int
    residual: Matrix  # |B - A X| / |B| per column, shape (n_rhs,)

    @property
    def worst(self) -> float:
        return float(self.residual.max(initial=0.0))

    def trusted(self, what: str) -> Matrix:
        """The value of a converged solve; an error with advice otherwise. `what` names the solve in the message."""
        require_converged(self.status, self.iterations, self.worst, what)
        return self.value

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For the state of several solves of which this one has ended."""
        status = list(Status).index(self.status)
        numbers = {"status": np.array(status), "iterations": np.array(self.iterations)}
        return {"value": self.value, "residual": self.residual, **numbers}

    @classmethod
    def from_arrays(cls, arrays: State) -> Solution:
        status = list(Status)[int(arrays["status"])]
        return cls(arrays["value"], status, int(arrays["iterations"]), arrays["residual"])


def require_converged(status: Status, iterations: int, worst: float, what: str) -> None:
    """Raise ConvergenceError, with the advice of `status`, unless the solve converged."""
    if status is not Status.CONVERGED:
        raise ConvergenceError(
            f"{what} did not converge ({status.value} after {iterations} iterations, worst relative residual "
            f"{worst:.1e})",
            advice=status.advice,
            status=status.value,
            iterations=iterations,
            residual=worst,
        )


@dataclass(frozen=True)
class StoppingRule:
    """An iteration ends after `max_iterations`, or as soon as its measure of what is left is at most `tolerance`.

    A system is solved when no column's residual exceeds `tolerance` times the norm of its right-hand side.
    """

    tolerance: float = 1e-8
    max_iterations: int = 1000


STOPPING = StoppingRule()
Solve = Generator[Matrix, Matrix, list[Solution]]  # yields V, is sent A V, returns the solutions
Result = TypeVar("Result")


def block_conjugate_gradient(
    apply: Callable[[Matrix], Matrix],
    sides: Matrix,
    shifts: Sequence[float] = (0.0,),
    stopping: StoppingRule = STOPPING,
    *,
    extra_columns: Matrix | None = None,
    references: Matrix | None = None,
) -> list[Solution]:
    """Solutions of (A + s I) X = `sides` for every shift s, in the order of `shifts`; see `block_cg_steps`."""
    steps = block_cg_steps(sides, shifts, stopping, extra_columns=extra_columns, references=references)
    return solve_together(lambda blocks: {0: apply(blocks[0])}, [steps])[0]


def solve_together(
    apply_all: Callable[[dict[int, Matrix]], dict[int, Matrix]],
    solves: Sequence[Generator[Matrix, Matrix, Result]],
    done: Mapping[int, Result] | None = None,
    after: Callable[[dict[int, Result], bool], None] = lambda _results, _is_last: None,
) -> list[Result]:
    """Run several solves in step: `apply_all` multiplies the blocks of all that still run, keyed by their number.

    Those in `done` have come to their end before. `after` is told what has come to an end, before every product.
    """
    results: dict[int, Result] = dict(done or {})
    products: dict[int, Matrix | None] = {number: None for number in range(len(solves)) if number not in results}
    while products:
        blocks: dict[int, Matrix] = {}
        with one_blas_thread():  # the blocks are thin; the product may use what it likes
            for number, product in products.items():
                try:
                    blocks[number] = next(solves[number]) if product is None else solves[number].send(product)
                except StopIteration as finished:
                    results[number] = finished.value
        after(results, not blocks)
        products = {**apply_all(blocks)} if blocks else {}
    return [results[number] for number in range(len(solves))]


def block_cg_steps(
    sides: Matrix,
    shifts: Sequence[float] = (0.0,),
    stopping: StoppingRule = STOPPING,
    *,
    extra_columns: Matrix | None = None,
    references: Matrix | None = None,
    memory: SolveMemory | None = None,
) -> Solve:
    """A solve that yields blocks V of shape (n, width), is sent A V, and returns a solution per shift.

    A + min(shifts) I must be positive definite on the Krylov space. `extra_columns` (n, width) widen the block: more
    work per product, fewer products. `references` replace the norms of the columns of `sides` in the stopping rule.
    The system of the smallest shift, the hardest, is checked once at the end with its true residual. Before every
    product `memory` has all that it takes to go on.
    """
    base = float(min(shifts))
    norms = np.linalg.norm(sides, axis=0) if references is None else references
    scale = np.where(norms > 0, norms, 1.0)
    limits = stopping.tolerance * scale
    beyond = [float(shift) - base for shift in shifts]
    begun = None if memory is None else memory.begun
    krylov = _Krylov.start(beyond, sides, extra_columns) if begun is None else _Krylov.of(beyond, begun)
    systems = krylov.systems
    failure = Status.MAX_ITERATIONS
    for iteration in range(krylov.iteration + 1, stopping.max_iterations + 1):
        running = [system for system in systems if not system.is_within(limits)]
        if not running:
            break
        if memory is not None:
            memory.state = krylov.state()
        product = yield krylov.directions
        step = _Step.of(krylov.basis, krylov.directions, _plus(base * krylov.directions, product))
        if step is None:
            failure = Status.NOT_POSITIVE_DEFINITE
            break
        for system in running:
            system.advance(step)
            system.iterations = iteration
        krylov.basis, krylov.directions, krylov.iteration = step.basis, step.directions, iteration
    solutions = [system.solution(scale, limits, failure) for system in systems]
    if norms.any() and all(solution.status is Status.CONVERGED for solution in solutions):
        hardest = int(np.argmin(shifts))
        value = solutions[hardest].value
        if memory is not None:
            memory.state = krylov.state()
        del krylov, systems  # blocks as long as the matrix
        product = yield value
        rest = _plus(base * value, product)
        del product
        rest -= sides
        residual = np.sqrt(np.einsum("ij,ij->j", rest, rest)) / scale
        is_true = residual.max(initial=0.0) <= SLACK * stopping.tolerance
        status = Status.CONVERGED if is_true else Status.STAGNATED
        solutions[hardest] = replace(solutions[hardest], status=status, residual=residual)
    return solutions


@dataclass(eq=False)
class _Krylov:
    """Where a solve is: the last blocks of its Krylov space, and the systems of all shifts."""

    iteration: int
    basis: Matrix  # Q, shape (n, width)
    directions: Matrix  # P of the smallest shift, shape (n, width)
    systems: list[_ShiftedSystem]

    @classmethod
    def start(cls, shifts: Sequence[float], sides: Matrix, extra_columns: Matrix | None) -> _Krylov:
        """`shifts` beyond the smallest one."""
        basis, coordinates = orthonormal(sides if extra_columns is None else np.hstack([sides, extra_columns]))
        own = coordinates[:, : sides.shape[1]]
        return cls(0, basis, basis, [_ShiftedSystem.start(shift, basis, own) for shift in shifts])

    @classmethod
    def of(cls, shifts: Sequence[float], state: State) -> _Krylov:
        """Where `state` was."""
        systems = [_ShiftedSystem.of(shift, part_of(state, str(number))) for number, shift in enumerate(shifts)]
        return cls(int(state["iteration"]), state["basis"], state["directions"], systems)

    def state(self) -> State:
        own = {"iteration": np.array(self.iteration), "basis": self.basis, "directions": self.directions}
        return own | numbered([system.state() for system in self.systems])


@dataclass(frozen=True, eq=False)
class _Step:
    """What one product with A gives to the systems of all shifts."""

    curvature: Matrix  # W, shape (width, width)
    basis: Matrix  # the next Q, shape (n, next width)
    turn: Matrix  # rho, shape (next width, width)
    directions: Matrix  # the next P of the smallest shift, shape (n, next width)

    @classmethod
    def of(cls, basis: Matrix, directions: Matrix, product: Matrix) -> _Step | None:
        """The step from Q, P and A P; None if A is not positive definite on the directions."""
        curvature = directions.T @ product
        curvature = (curvature + curvature.T) / 2
        try:
            inverse = cho_solve(cho_factor(curvature), np.eye(len(curvature)))
        except LinAlgError:
            return None
        rest = product @ inverse
        del product  # one block less while the next one is made
        following, turn = orthonormal(np.subtract(basis, rest, out=rest), overwrite=True)
        del rest
        return cls(curvature, following, turn, _plus(directions @ turn.T, following))


def _plus(own: Matrix, other: Matrix) -> Matrix:
    """The sum in place of `own`, which nobody else has: blocks are as long as the Gram matrix."""
    own += other
    return own


@dataclass(eq=False)
class _ShiftedSystem:
    """The state of one shifted system."""

    shift: float  # beyond the smallest one
    value: Matrix  # X, shape (n, n_rhs)
    directions: Matrix  # P, shape (n, width)
    excess: Matrix  # E, shape (width, width)
    remainder: Matrix  # y, shape (width, n_rhs)
    iterations: int = 0

    @classmethod
    def start(cls, shift: float, basis: Matrix, coordinates: Matrix) -> _ShiftedSystem:
        value = np.zeros((len(basis), coordinates.shape[1]))
        return cls(shift, value, basis.copy(), shift * np.eye(basis.shape[1]), coordinates.copy())

    @classmethod
    def of(cls, shift: float, state: State) -> _ShiftedSystem:
        value, directions, excess, remainder = (state[name] for name in ("value", "directions", "excess", "remainder"))
        return cls(shift, value, directions, excess, remainder, int(state["iterations"]))

    def state(self) -> State:
        return {
            "value": self.value,
            "directions": self.directions,
            "excess": self.excess,
            "remainder": self.remainder,
            "iterations": np.array(self.iterations),
        }

    def residual(self) -> Matrix:
        return np.asarray(np.linalg.norm(self.remainder, axis=0))

    def is_within(self, limits: Matrix) -> bool:
        return bool(np.all(self.residual() <= limits))

    def solution(self, scale: Matrix, limits: Matrix, failure: Status) -> Solution:
        status = Status.CONVERGED if self.is_within(limits) else failure
        return Solution(self.value, status, self.iterations, self.residual() / scale)

    def advance(self, step: _Step) -> None:
        factor = cho_factor(step.curvature + self.excess)
        # No array is changed in place: a memory may hold it.
        self.value = _plus(self.directions @ cho_solve(factor, self.remainder), self.value)
        width = len(step.turn)
        if not self.shift:  # then E = 0 and H = rho^T
            self.remainder = step.turn @ self.remainder
            self.directions, self.excess = step.directions, np.zeros((width, width))
            return
        bend = cho_solve(factor, step.curvature @ step.turn.T)  # H, shape (width, next width)
        self.remainder = bend.T @ self.remainder
        self.directions = _plus(self.directions @ bend, step.basis)
        excess = step.turn @ self.excess @ bend
        self.excess = (excess + excess.T) / 2 + self.shift * np.eye(width)
