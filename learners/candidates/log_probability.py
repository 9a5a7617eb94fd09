"""What a candidate's log probability counts beside its kernel score, and how that is chosen on held-out groups.

    score(x) = w log P(x) + F(x)

An open weight w is the one by which the candidates chosen in held-out groups are worth most. Tried are 0 and a few
multiples of the weight at which log P and the F of a ranker trained without it spread equally within held-out groups:
neither the scale of the kernel nor the length of the sentences matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.value_kinds import NumberOrName
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.candidates.groups import best_candidates
from gramline.learners.errors import GroupError, LearnerError
from gramline.learners.estimator import is_listed

LogProbability = Annotated[
    float | Literal["auto"],
    NumberOrName(least=0, names=("auto",)),
    "weight of a candidate's log probability in its score, beside the kernel; 0: as published, "
    '`"auto"` chooses on held-out groups',
]
STEPS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the weight at which both spread equally
N_FOLDS = 5


class Evidence(NamedTuple):
    """What is known of the candidates besides the Gram matrix."""

    log_probabilities: Matrix  # shape (n_rows,)
    worth: Matrix  # of choosing each of them, shape (n_rows,)


class Trial(NamedTuple):
    """A training on some of the groups, by number, with one weight."""

    groups: Indices
    weight: float


# Of each trial: the scores of all candidates by the ranker it trains, and whom it chooses in these groups.
Outcome = tuple[Matrix, Callable[[list[Indices]], list[int]]]


class WeightChoice(NamedTuple):
    """Weights that were tried, and what they came to."""

    weights: list[float]
    values: list[float]  # mean worth of the chosen candidates of held-out groups
    most_probable: float  # mean worth of the most probable ones
    n_held_out: int  # groups

    @property
    def weight(self) -> float:
        """The best; of equal ones the lowest."""
        return self.weights[int(np.argmax(self.values))]

    def notes(self) -> list[str]:
        """What was chosen, and what it is good for."""
        tried = ", ".join(f"{weight:.3g}: {value:.4f}" for weight, value in zip(self.weights, self.values, strict=True))
        said = f"log probabilities have the weight {self.weight:.3g}, the best for {self.n_held_out} held-out groups"
        best = max(self.values)
        worse = [below_first(best, self.most_probable, "held-out groups")] if best < self.most_probable else []
        return [f"{said} ({tried})", *worse]


def below_first(chosen: float, first: float, where: str, advice: str = "") -> str:
    """A sentence for whoever would be better off without the ranker."""
    return (
        f"the candidates chosen in {where} score {chosen:.4f}, less than the most probable ones ({first:.4f}); "
        f"{advice}train on more groups, or try another kernel or learner"
    )


def checked_numbers(values: ArrayLike, n: int, what: str) -> Matrix:
    """One finite number per candidate, shape (n,)."""
    if not is_listed(values):
        raise LearnerError(f"{what} must be a list with one number per candidate, got {values!r}")
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise LearnerError(f"{what} must be numbers, one per candidate") from None
    if numbers.shape != (n,):
        raise LearnerError(f"{what} must be one number for each of {n} candidates, got the shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        candidate = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise LearnerError(f"{what} must be finite numbers, but candidate {candidate} has {numbers[candidate]}")
    return numbers


def held_out_groups(n_groups: int, development: Any) -> list[Indices]:
    """Numbers of the groups that each fold holds out: those that were named, or every fifth, fold after fold."""
    if development is None:
        n_folds = min(N_FOLDS, n_groups)
        if n_folds < 2:
            raise GroupError(f'an "auto" weight needs groups to hold out, but there is {n_groups}; give a number')
        return [np.arange(fold, n_groups, n_folds) for fold in range(n_folds)]
    named = np.unique(np.asarray(list(development) if is_listed(development) else [development]))
    if not len(named) or named.dtype.kind not in "iu" or named[0] < 0 or named[-1] >= n_groups:
        raise GroupError(f"development must list numbers of groups from 0 to {n_groups - 1}, got {development!r}")
    if len(named) == n_groups:
        raise GroupError("development holds out every group, so nothing is left to train on; leave some out of it")
    return [named.astype(np.int64)]


def choose_weight(
    train: Callable[[list[Trial]], list[Outcome]], groups: Sequence[Indices], evidence: Evidence, folds: list[Indices]
) -> WeightChoice:
    """Train with every weight on what every fold leaves; of equally good candidates the right one is chosen last."""
    rest = [np.setdiff1d(np.arange(len(groups)), held) for held in folds]
    # The right candidate comes first in a group: a ranker that knows nothing must not profit from that.
    held_groups = [[np.roll(groups[number], -1) for number in held] for held in folds]

    def value(outcomes: Sequence[Outcome]) -> float:
        return _mean_worth(
            evidence.worth,
            [
                columns[k]
                for (_, choose), own in zip(outcomes, held_groups, strict=True)
                for columns, k in zip(own, choose(own), strict=True)
            ],
        )

    at_zero = train([Trial(numbers, 0.0) for numbers in rest])
    unit = _balance([scores for scores, _ in at_zero], held_groups, evidence.log_probabilities)
    weights = [0.0, *(unit * step for step in STEPS)] if unit > 0.0 else [0.0]
    outcomes = train([Trial(numbers, weight) for weight in weights[1:] for numbers in rest])
    n_folds = len(folds)
    values = [value(at_zero)]
    values += [value(outcomes[first : first + n_folds]) for first in range(0, len(outcomes), n_folds)]
    every = [columns for own in held_groups for columns in own]
    known = evidence.log_probabilities
    likely = [columns[int(best_candidates(known[None, columns], np.abs(known[None, columns]))[0])] for columns in every]
    return WeightChoice(weights, values, _mean_worth(evidence.worth, likely), len(every))


def _mean_worth(worth: Matrix, rows: Sequence[Any]) -> float:
    return float(worth[np.array(rows, np.int64)].mean())


def _balance(scores: Sequence[Matrix], held_groups: Sequence[Sequence[Indices]], known: Matrix) -> float:
    """The weight at which both terms spread equally within held-out groups; 0 where log P does not spread."""
    kernel = likelihood = 0.0
    for own, groups in zip(scores, held_groups, strict=True):
        for columns in groups:
            kernel += len(columns) * float(np.var(own[columns]))
            likelihood += len(columns) * float(np.var(known[columns]))
    if likelihood <= 0.0:
        return 0.0
    return float(np.sqrt((kernel or 1.0) / likelihood))
