"""The kernel marginalized labeling perceptron, trained block by block from any Gram operator.

The right-looking form is the online loop exactly: an update reaches the rows of its own block at once and all other
rows before their block is visited. R rounds over n blocks read R n + C (n - 1) tiles, where C counts the visits to a
block that made at least one mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.parameters import Boolean, Whole
from gramline.learners.arrays import Matrix
from gramline.learners.chains.ties import TIE, size_column
from gramline.learners.kinds import Progress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels, encode_labels
from gramline.learners.operators.checks import check_cross, check_square
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.labeling_training import Training, run_round


class LabelingPerceptron(SharedPassLearner):
    """S[t, b] = P(b|t) * sum_s G(s, t) (W ky)[s, b],  W = A o P;  predict the lowest argmax over b.

    A mistake at t adds 1 to A[t, right] and takes 1 from A[t, guess]; the very next position sees it.
    Positions without a label are passed over and are no visits.

    Ties: two scores of a position are equal when they differ by at most 1e-12 of the magnitude that was summed into
    them, P * sum_s |G(s, t)| max_b |delta (W ky)[s, b]|; the lowest label wins. This magnitude is an upper bound of
    every |S| the position went through, also of those that cancelled between two visits, and in exact arithmetic it
    is the same for every block size; so are the decisions.

    average=True predicts with the mean of A over all visits of all `rounds`, after each visit. A round without a
    mistake would repeat for ever: early_stop=True ends there, with the same A and the same mean.
    """

    name: ClassVar[str] = "labeling-perceptron"
    summary: ClassVar[str] = "dual perceptron over positions, from a Gram matrix of a labeling kernel"
    row_arrays: ClassVar[tuple[str, ...]] = ("alpha_", "average_alpha_")

    alpha_: NDArray[np.int64]  # A, shape (n_rows, n_labels)
    average_alpha_: Matrix  # shape (n_rows, n_labels)
    mistakes_: list[int]  # per round that was run
    rounds_run_: int
    label_names_: tuple[str, ...]
    label_kernel_: Matrix | None
    uniform_prior_: bool

    def __init__(
        self,
        rounds: Annotated[Whole, "passes over the training positions"] = 10,
        average: Annotated[Boolean, "predict with the mean of all weights"] = False,
        early_stop: Annotated[Boolean, "end at a round without a mistake"] = True,
    ) -> None:
        self.rounds = rounds
        self.average = average
        self.early_stop = early_stop

    def fit(self, gram: GramOperator, labels: Labels, *, progress: Progress | None = None) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none."""
        self.check_parameters()
        check_square(gram)
        codes, names = encode_labels(gram, labels)
        training = Training.start(gram, codes, len(names))
        mistakes: list[int] = []
        while not self._is_done(mistakes):
            mistakes.extend(run_round(gram, [training]))
            if progress is not None:
                progress(len(mistakes), mistakes[-1])
        return self._finish(gram, names, training, mistakes)

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[LabelingPerceptron],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: Progress | None = None,
    ) -> list[list[list[str]]]:
        """Fit every learner on its own labels and predict all rows with it, reading each tile once for all of them.

        Equal to separate fits. Learners with the same labels differ only in when they stop, so they share the rounds.
        `progress` hears the mistakes of all of them together.
        """
        problems: dict[tuple[tuple[str, ...], bytes], _Problem] = {}
        for learner, labels in zip(learners, label_sets, strict=True):
            learner.check_parameters()
            check_square(gram)
            codes, names = encode_labels(gram, labels)
            key = names, codes.tobytes()  # equal codes mean other labels where the names differ
            if key not in problems:
                problems[key] = _Problem(names, Training.start(gram, codes, len(names)))
            problems[key].learners.append(learner)
        running = list(problems.values())
        rounds = 0
        while running:
            counts = run_round(gram, [problem.training for problem in running])
            rounds += 1
            if progress is not None:
                progress(rounds, sum(counts))
            for problem, count in zip(running, counts, strict=True):
                problem.finish_round(gram, count)
            running = [problem for problem in running if problem.learners]
        columns = [learner._columns(gram) for learner in learners]
        sums = gram.matmul(np.hstack(columns), transpose=True)
        ends = np.cumsum([own.shape[1] for own in columns])  # folds may differ in their number of labels
        parts = np.split(sums, ends[:-1], axis=1)
        return [learner._decided(gram, part) for learner, part in zip(learners, parts, strict=True)]

    def pass_columns(self, n_labels: int) -> int:
        return n_labels + 1  # scores, and their magnitude

    @property
    def round_limit(self) -> int:
        return self.rounds

    def traces(self) -> dict[str, list[float]]:
        return {"mistakes": [float(count) for count in self.mistakes_]}

    def _is_done(self, mistakes: list[int]) -> bool:
        return len(mistakes) == self.rounds or (self.early_stop and mistakes[-1:] == [0])

    def _finish(self, gram: GramOperator, names: tuple[str, ...], training: Training, mistakes: list[int]) -> Self:
        self.alpha_ = training.weights.alpha.copy()
        self.average_alpha_ = training.average(int(self.rounds))
        self.mistakes_ = list(mistakes)
        self.rounds_run_ = len(mistakes)
        self.label_names_ = names
        self.label_kernel_ = gram.label_kernel
        self.uniform_prior_ = gram.row_prior is None
        return self

    def decision_scores(self, cross: GramOperator) -> Matrix:
        """S of every new position, shape (n_columns, n_labels), from the Gram between training rows and new columns."""
        prior = self._column_prior(cross)
        scores: Matrix = cross.matmul(self._weights(cross), transpose=True) * prior
        return scores

    def predict(self, cross: GramOperator) -> list[list[str]]:
        """Labels of every new structure."""
        self._column_prior(cross)
        return self._decided(cross, cross.matmul(self._columns(cross), transpose=True))

    def _columns(self, cross: GramOperator) -> Matrix:
        """What prediction multiplies by: the weights, and how large the numbers are that will be summed."""
        weights = self._weights(cross)
        return np.column_stack([weights, size_column(np.abs(weights).max(axis=1))])

    def _decided(self, cross: GramOperator, sums: Matrix) -> list[list[str]]:
        """The lowest of the tied best labels from G.T @ columns, shape (n_columns, n_labels + 1)."""
        prior = self._column_prior(cross)
        scores = sums[:, :-1] * prior
        best = scores.argmax(axis=1)[:, None]
        magnitude = np.maximum(np.abs(sums[:, -1]), np.abs(sums[:, :-1]).max(axis=1))[:, None]
        tolerance = TIE * magnitude * np.maximum(prior, np.take_along_axis(prior, best, axis=1))
        codes = (scores >= np.take_along_axis(scores, best, axis=1) - tolerance).argmax(axis=1)
        return decode_labels(codes, self.label_names_, cross.layout.cols.lengths)

    def support(self) -> NDArray[np.bool_]:
        self.require_fitted()
        return np.asarray(self._dual().any(axis=1), np.bool_)

    def _dual(self) -> NDArray[np.int64] | Matrix:
        return self.average_alpha_ if self.average else self.alpha_

    def _weights(self, cross: GramOperator) -> Matrix:
        """(A o P) ky, shape (n_rows, n_labels)."""
        n_labels = len(self.label_names_)
        prior = np.full((1, n_labels), 1.0 / n_labels) if cross.row_prior is None else cross.row_prior
        weights: Matrix = self._dual() * prior
        return weights if self.label_kernel_ is None else weights @ self.label_kernel_

    def _column_prior(self, cross: GramOperator) -> Matrix:
        """P of the new positions, shape (n_columns, n_labels), after checking that `cross` fits the training."""
        self.require_fitted()
        n_rows, n_labels = self.alpha_.shape
        check_cross(cross, n_rows, self.label_names_, uniform_prior=self.uniform_prior_)
        if cross.col_prior is None:
            return np.full((cross.shape[1], n_labels), 1.0 / n_labels)
        return cross.col_prior


@dataclass(eq=False)
class _Problem:
    """One set of labels, and the learners that still train on it; they differ only in when they stop."""

    names: tuple[str, ...]
    training: Training
    learners: list[LabelingPerceptron] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)

    def finish_round(self, gram: GramOperator, mistakes: int) -> None:
        """Count the mistakes of a round, and let go of the learners that stop after it."""
        self.mistakes.append(mistakes)
        for learner in self.learners:
            if learner._is_done(self.mistakes):
                learner._finish(gram, self.names, self.training, self.mistakes)
        self.learners = [learner for learner in self.learners if not learner._is_done(self.mistakes)]
