"""What a solve returns: the numbers, and whether they may be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gramline.learners.errors import ConvergenceError


class Status(Enum):
    """How an iterative solve ended, each with advice."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    NOT_POSITIVE_DEFINITE = "not_positive_definite"
    STAGNATED = "stagnated"

    @property
    def advice(self) -> str:
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "nothing to do",
    Status.MAX_ITERATIONS: "raise max_iterations, the ridge or the tolerance",
    Status.NOT_POSITIVE_DEFINITE: "the matrix has a direction of negative size: check that the kernel is positive "
    "semidefinite, or raise the ridge above its most negative eigenvalue",
    Status.STAGNATED: "rounding stops the solve short of the tolerance: raise the ridge or the tolerance, "
    "or store the Gram in float64",
}


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of A X = B for several right-hand sides; the worst column decides the status."""

    value: NDArray[np.float64]  # X, shape (n, n_rhs)
    status: Status
    iterations: int
    residual: NDArray[np.float64]  # |B - A X| / |B| per column, shape (n_rhs,)

    @property
    def worst(self) -> float:
        return float(self.residual.max(initial=0.0))

    def trusted(self, what: str) -> NDArray[np.float64]:
        """The value of a converged solve; an error with advice otherwise. `what` names the solve in the message."""
        require_converged(self.status, self.iterations, self.worst, what)
        return self.value


def require_converged(status: Status, iterations: int, worst: float, what: str) -> None:
    """Raise ConvergenceError, with the advice of `status`, unless the solve converged."""
    if status is not Status.CONVERGED:
        raise ConvergenceError(
            f"{what} did not converge ({status.value} after {iterations} iterations, worst relative residual "
            f"{worst:.1e}): {status.advice}"
        )
