"""Ridges of the Z-score from the data: the pair with the fewest wrong labels on structures hidden from a training.

Every fifth structure is hidden, fold after fold, until enough positions have been labelled by a model that did not know
them. All ridges of a fold come from one Krylov space; another ridge on transitions is a 2 x 2 system. Knows neither
kernels nor features: it is sent G X for its solutions X.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.kernels.value_kinds import NumberOrName
from gramline.learners.arrays import Floats, Indices
from gramline.learners.chains.constraints import AllowedSteps
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.hidden_folds import ENOUGH, hidden_structures
from gramline.learners.hidden_folds import N_FOLDS as N_FOLDS
from gramline.learners.linear_algebra.conjugate_gradient import Solve, StoppingRule, block_cg_steps
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.zscore.transitions import reduce_transitions

Auto = Literal["auto"]
TransitionRidge = Annotated[
    float | Auto | None,
    NumberOrName(least=0, names=("auto",)),
    'penalty on transition weights; `"auto"` chooses it as the ridge is chosen, up to 1e4 times the weight that '
    "transitions have without it; none is the same as the ridge",
]

# All measured: n ridge as a multiple of the mean diagonal of G, and the ridge on transitions as one of M1 / n^2, which
# is what stands beside it in the system. Where one label is nearly everywhere the largest ones are needed.
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
TRANSITION_RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)
FIXED_RIDGE, FIXED_TRANSITION_RIDGE = 0.1, 100.0  # for fewer structures than folds
STOPPING = StoppingRule(1e-3, 100)  # a label more or less is all that is asked
EXTRA_WIDTH = 24  # columns of a block, as of the labeler itself


@dataclass(frozen=True)
class RidgeSetting:
    """What a labeler says of its ridges, and what decides its labels beside them."""

    ridge: float | Auto
    transition_ridge: float | Auto | None
    loss: str = "none"
    allowed: AllowedSteps | None = field(default=None, compare=False)

    @property
    def is_open(self) -> bool:
        return self.ridge == "auto" or self.transition_ridge == "auto"

    def ridges(self, n_labels: int, typical: float, is_fixed: bool) -> tuple[float, ...]:
        """Ridges to choose from, growing; `typical` is the mean diagonal of G."""
        if self.ridge != "auto":
            return (float(self.ridge),)
        size = typical if typical > 0 else 1.0
        return tuple(step * size / n_labels for step in ((FIXED_RIDGE,) if is_fixed else RIDGES))

    def pairs(self, ridges: Sequence[float], statistics: ChainStatistics, is_fixed: bool) -> list[tuple[float, float]]:
        """(ridge, transition ridge) to choose from, growing."""
        if self.transition_ridge is None:
            return [(ridge, ridge) for ridge in ridges]
        if self.transition_ridge != "auto":
            return [(ridge, float(self.transition_ridge)) for ridge in ridges]
        weight = max(statistics.n_transitions, 1) / statistics.n_labels**2
        steps = (FIXED_TRANSITION_RIDGE,) if is_fixed else TRANSITION_RIDGES
        return [(ridge, step * weight) for ridge in ridges for step in steps]

    def best(
        self, trials: Sequence[Trial], ridges: Sequence[float], statistics: ChainStatistics
    ) -> tuple[float, float]:
        """The pair with the fewest wrong labels in all trials; the larger ridges where that is even."""
        pairs = self.pairs(ridges, statistics, not trials)
        if len(pairs) == 1:
            return pairs[0]
        wrong = [sum(trial.wrong(pair, self) for trial in trials) for pair in pairs]
        return max(pair for pair, count in zip(pairs, wrong, strict=True) if count == min(wrong))


@dataclass(frozen=True, eq=False)
class HiddenFold:
    """Some of the structures of a training set hidden; positions are counted within that set."""

    visible: Indices
    hidden: Indices
    known: ChainStatistics  # of the visible structures
    wanted: ChainStatistics  # of the hidden ones

    @cached_property
    def sides(self) -> Floats:
        """[Yc | s_in | s_out] of the visible positions."""
        return self.known.right_hand_sides()

    def steps(self, ridges: Sequence[float], smallest: float = 0.0, memory: SolveMemory | None = None) -> Solve:
        """The solve of (G + n ridge) X = n [Yc | s_in | s_out] for all ridges; none is below `smallest`."""
        n = self.known.n_labels
        n_extra = min(EXTRA_WIDTH, len(self.sides)) - self.sides.shape[1]
        extra = np.random.default_rng(0).normal(size=(len(self.sides), n_extra)) if n_extra > 0 else None
        shifts = [n * max(ridge, smallest) for ridge in ridges]
        return block_cg_steps(n * self.sides, shifts, STOPPING, extra_columns=extra, memory=memory)


@dataclass(frozen=True, eq=False)
class Trial:
    """A fold and what its solutions X say of all positions: G X by ridge, each of shape (N, n + 2)."""

    fold: HiddenFold
    scores: Mapping[float, Floats]

    def wrong(self, pair: tuple[float, float], setting: RidgeSetting) -> int:
        """How many hidden positions get a wrong label with this ridge and transition ridge."""
        (ridge, transition_ridge), fold = pair, self.fold
        known, wanted, n = fold.known, fold.wanted, fold.known.n_labels
        scored = self.scores[ridge][fold.visible]
        reduced = reduce_transitions(known, transition_ridge, fold.sides[:, n:].T @ scored)
        # Whatever happens to weights happens to the scores of hidden positions: they stand in for them.
        chain = reduced.solution(self.scores[ridge][fold.hidden], scored)
        if setting.loss == "hamming":
            chain = chain.with_hamming_loss(known, chain.gain(known), reduced.interaction)
        path, _ = viterbi(chain.weights, chain.transition, wanted.starts, allowed=setting.allowed)
        return int((path != wanted.codes).sum())


def hidden_folds(statistics: ChainStatistics) -> list[HiddenFold]:
    """Folds of every fifth structure, as many as give enough hidden positions; none for fewer than five structures."""
    lengths = np.diff(statistics.starts)
    folds: list[HiddenFold] = []
    for own in hidden_structures(lengths, N_FOLDS, ENOUGH):
        is_hidden = np.zeros(len(lengths), bool)
        is_hidden[own] = True
        at = np.repeat(is_hidden, lengths)
        folds.append(
            HiddenFold(
                np.flatnonzero(~at),
                np.flatnonzero(at),
                _part(statistics, lengths[~is_hidden], ~at),
                _part(statistics, lengths[is_hidden], at),
            )
        )
    return folds


def _part(statistics: ChainStatistics, lengths: Indices, at: np.ndarray) -> ChainStatistics:
    return ChainStatistics(statistics.codes[at], offsets_from_lengths(lengths), statistics.n_labels)
