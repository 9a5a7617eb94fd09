"""A ranker of candidates by a weighted sum of kernel values, with or without their log probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.candidates.groups import best_candidates, candidate_groups
from gramline.learners.candidates.log_probability import (
    Evidence,
    Outcome,
    Trial,
    WeightChoice,
    checked_numbers,
    choose_weight,
    held_out_groups,
)
from gramline.learners.checkpoints import NOWHERE, Checkpoint, State
from gramline.learners.errors import LearnerError
from gramline.learners.kinds import Groups, RankingLearner
from gramline.learners.operators.operator import GramOperator, check_rows, check_square


class CandidateRanker(RankingLearner):
    """score(x) = log_probability_ * log P(x) + F(x),  F(x) = sum_s deciding_weights[s] K(s, x)."""

    log_probability: float | str
    log_probability_: float = 0.0  # rankers of earlier versions have none
    weight_choice_: Mapping[str, Any]  # of an "auto" weight: what was tried

    def fit(
        self,
        gram: GramOperator,
        groups: Groups,
        *,
        log_probabilities: ArrayLike | None = None,
        worth: ArrayLike | None = None,
        development: Sequence[int] | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Train on a square Gram; `groups` are candidates of one sentence each, the correct one first.

        Groups are sizes, for rows in order, or the row numbers of each group. `log_probabilities`, shape (n_rows,), are
        needed where they have a weight. An "auto" weight is chosen by the `worth` of the candidates, shape (n_rows,),
        1 for the correct ones and 0 for all others where nothing is given: on the `development` groups, by number, or
        on every fifth group, fold after fold. All groups train in the end.
        """
        self.check_parameters()
        check_square(gram)
        n_rows = gram.shape[0]
        candidates = candidate_groups(groups, n_rows)
        known = self._known(log_probabilities, n_rows, self.log_probability)
        self.forget()
        if self.log_probability != "auto":
            if development is not None:
                raise LearnerError('development groups choose an "auto" weight, but log_probability is a number')
            weight = float(self.log_probability)
            self._train(gram, candidates, weight * known, checkpoint)
            self.log_probability_ = weight
            return self
        begun = checkpoint.restore()
        if begun is None:
            evidence = Evidence(known, _worth(worth, candidates, n_rows))
            folds = held_out_groups(len(candidates), development)
            choice = choose_weight(
                lambda trials: self._outcomes(gram, candidates, known, trials), candidates, evidence, folds
            )
        else:
            choice = _choice_of(begun)
        self._train(gram, candidates, choice.weight * known, _AfterChoice(checkpoint, begun, choice))
        self.log_probability_, self.weight_choice_ = choice.weight, choice._asdict()
        return self

    @abstractmethod
    def _train(self, gram: GramOperator, candidates: list[Indices], offsets: Matrix, checkpoint: Checkpoint) -> None:
        """Train on checked groups; `offsets`, shape (n_rows,), are a part of the scores that stays as it is."""

    @abstractmethod
    def _columns(self) -> Matrix:
        """Row weights of F, and a `magnitude_probe` of what they were summed from, shape (n_rows, 2)."""

    @property
    @abstractmethod
    def deciding_weights(self) -> Matrix:
        """Row weights of the one sum that decides when nobody votes, shape (n_rows,)."""

    @abstractmethod
    def without_rows(self) -> Self:
        """The fitted learner without its training rows, for a model that sums over them in a form of its own."""

    @property
    def n_rows(self) -> int:
        """Training rows that it was fitted on, or that are left."""
        return len(self.deciding_weights)

    @property
    def is_voting(self) -> bool:
        """Whether every hypothesis has a vote; otherwise one weighted sum decides."""
        return False

    @property
    def hypothesis_counts(self) -> Indices:
        """Votes of each hypothesis; one where one sum decides."""
        return np.ones(1, np.int64)

    def predict(self, cross: GramOperator, groups: Groups, log_probabilities: ArrayLike | None = None) -> list[int]:
        """The chosen candidate of each group of new columns, counted from 0 within the group."""
        self._check(cross)
        candidates = candidate_groups(groups, cross.shape[1])
        return self.choices(cross, candidates, self.offsets(log_probabilities, cross.shape[1]))

    def choices(
        self, cross: GramOperator, candidates: list[Indices], offsets: Matrix, sums: Matrix | None = None
    ) -> list[int]:
        """The same for checked groups; `offsets`, shape (n_columns,), are what log probabilities add to F.

        `sums` are the columns of `_sums` where they are known.
        """
        scores, magnitudes = self._sums(cross) if sums is None else sums.T
        scores, magnitudes = scores + offsets, np.abs(magnitudes) + np.abs(offsets)
        return [int(best_candidates(scores[None, own], magnitudes[None, own])[0]) for own in candidates]

    def decision_scores(
        self, cross: GramOperator, groups: Groups | None = None, log_probabilities: ArrayLike | None = None
    ) -> Matrix:
        """The score of every new candidate, shape (n_columns,)."""
        self._check(cross)
        if groups is not None:
            candidate_groups(groups, cross.shape[1])
        scores: Matrix = self._sums(cross)[0] + self.offsets(log_probabilities, cross.shape[1])
        return scores

    def offsets(self, log_probabilities: ArrayLike | None, n: int) -> Matrix:
        """What the log probabilities of `n` candidates add to their scores."""
        self.require_fitted()
        return self.log_probability_ * self._known(log_probabilities, n, self.log_probability_)

    def chosen(self) -> dict[str, float]:
        return {"log_probability": self.log_probability_} if self.log_probability == "auto" else {}

    def notes(self) -> list[str]:
        return self.choice_notes()

    def choice_notes(self) -> list[str]:
        """What to say of a weight that was chosen."""
        choice = vars(self).get("weight_choice_")
        return [] if choice is None else WeightChoice(**choice).notes()

    def _known(self, log_probabilities: ArrayLike | None, n: int, weight: float | str) -> Matrix:
        """Checked log probabilities; zeros where they have no weight."""
        if log_probabilities is not None:
            return checked_numbers(log_probabilities, n, "log_probabilities")
        if weight != 0:
            said = weight if isinstance(weight, str) else f"{weight:g}"
            raise LearnerError(
                f"log probabilities have the weight {said} in the scores of candidates, but none are given",
                advice="give them as log_probabilities",
            )
        return np.zeros(n)

    def _check(self, cross: GramOperator) -> None:
        self.require_fitted()
        check_rows(cross, self.n_rows, "candidates")

    def _sums(self, cross: GramOperator) -> Matrix:
        """F of every column and how large the numbers were that were summed, shape (2, n_columns)."""
        sums: Matrix = cross.matmul(self._columns(), transpose=True).T
        return sums

    def _outcomes(
        self, gram: GramOperator, candidates: list[Indices], known: Matrix, trials: list[Trial]
    ) -> list[Outcome]:
        """What the trials came to, from one product with the Gram for all of them."""
        rankers = self._fit_trials(gram, candidates, known, trials)
        columns = [ranker._columns() for ranker in rankers]
        if not columns:
            return []
        sums = np.split(gram.matmul(np.concatenate(columns, axis=1), transpose=True), len(trials), axis=1)
        return [
            (own[:, 0], partial(_chosen, ranker, gram, trial.weight * known, own))
            for trial, ranker, own in zip(trials, rankers, sums, strict=True)
        ]

    def _fit_trials(
        self, gram: GramOperator, candidates: list[Indices], known: Matrix, trials: Sequence[Trial]
    ) -> list[Self]:
        """A ranker for each trial; one after another unless a family can do it in one pass over the tiles."""
        rankers = []
        for trial in trials:
            ranker = self.fresh().set_params(log_probability=trial.weight)
            ranker._train(gram, [candidates[k] for k in trial.groups], trial.weight * known, NOWHERE)
            ranker.log_probability_ = trial.weight
            rankers.append(ranker)
        return rankers


def _chosen(
    ranker: CandidateRanker, gram: GramOperator, offsets: Matrix, sums: Matrix, groups: list[Indices]
) -> list[int]:
    return ranker.choices(gram, groups, offsets, sums)


def _worth(worth: ArrayLike | None, candidates: list[Indices], n_rows: int) -> Matrix:
    if worth is not None:
        return checked_numbers(worth, n_rows, "worth")
    is_correct = np.zeros(n_rows)
    is_correct[[rows[0] for rows in candidates]] = 1.0
    return is_correct


class _AfterChoice:
    """A checkpoint of the training that follows a choice, which goes on with that choice."""

    def __init__(self, checkpoint: Checkpoint, begun: State | None, choice: WeightChoice) -> None:
        self._checkpoint, self._begun, self._choice = checkpoint, begun, choice

    def restore(self) -> State | None:
        return self._begun

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        self._checkpoint.offer(after, lambda: {**state(), **_choice_state(self._choice)}, is_last=is_last)


def _choice_state(choice: WeightChoice) -> dict[str, Any]:
    return {f"choice.{name}": np.array(value) for name, value in choice._asdict().items()}


def _choice_of(state: State) -> WeightChoice:
    return WeightChoice(**{name: state[f"choice.{name}"].tolist() for name in WeightChoice._fields})
