"""What can go wrong between an operator, labels and a model: errors with fields, as `gramline.kernels.errors` has."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Self

from gramline.kernels.errors import LocatedError


class LearnerError(LocatedError, ValueError):
    """Any input a learner refuses."""


class LayoutError(LearnerError):
    """Structures do not fit the blocks they were given."""


class LabelError(LearnerError):
    """Labels do not fit the Gram matrix; names the structure and the position."""


class GroupError(LabelError):
    """Candidates do not fit the Gram matrix: `group` is the number of their group, where it is one group's fault."""

    def __init__(self, problem: str, *, group: int | None = None) -> None:
        super().__init__(problem)
        self.group = group

    @property
    def place(self) -> str:
        return "" if self.group is None else f"group {self.group}: "


class LearnerParameterError(LearnerError):
    """A learner was built with a value it cannot use."""


class NotFittedError(LearnerError, AttributeError):
    """`predict` before `fit`."""


class Outcome(Enum):
    """How an iteration ended: a member is a word and the advice that goes with it, and is found by its word."""

    advice: str

    def __new__(cls, word: str, advice: str = "") -> Self:
        member = object.__new__(cls)
        member._value_ = word
        member.advice = advice
        return member


class ConvergenceError(LearnerError, RuntimeError):
    """A solve that did not converge was asked for its numbers; says what to change.

    `status` says how it ended, `iterations` after how many iterations or rounds, `residual` how far from the solution.
    `structures` are training structures that contradict each other, where they are known.
    """

    def __init__(
        self,
        problem: str,
        *,
        advice: str = "",
        status: str = "",
        iterations: int = 0,
        residual: float | None = None,
        structures: Sequence[int] = (),
    ) -> None:
        super().__init__(problem, advice=advice)
        self.status, self.iterations, self.residual, self.structures = status, iterations, residual, tuple(structures)


class NotPositiveDefiniteError(LearnerError):
    """A matrix that must be positive definite is not: at `row` its factorisation met `pivot`.

    `jitter` on the diagonal would make it so, where somebody has computed it.
    """

    def __init__(self, problem: str, row: int, pivot: float, *, advice: str = "", jitter: float | None = None) -> None:
        super().__init__(problem, advice=advice)
        self.row, self.pivot, self.jitter = row, pivot, jitter
