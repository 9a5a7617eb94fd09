"""What all learners share that label every position by itself, from a labeling kernel with priors and a label kernel.

S[t, b] = P(b|t) * sum_s G(s, t) (W ky)[s, b],  W = A o P (math 2). Under `constraints` the best of the allowed paths is
predicted, otherwise the lowest label among those that tie with the best.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from gramline.learners.arrays import Floats, Mask, Matrix, SmallCounts, WideCodes
from gramline.learners.chains.constraints import allowed_steps
from gramline.learners.chains.dual_sums import DualSums, dual_sums, fill_sizes
from gramline.learners.chains.viterbi import TIE, viterbi
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.kinds import RoundProgress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels
from gramline.learners.operators.operator import GramOperator, check_cross


class Given(NamedTuple):
    """What the rows of a problem know beforehand, for compiled loops."""

    gold: WideCodes  # negative where missing, shape (n,)
    prior: Floats  # shape (n, n_labels); (n, 0) when uniform
    label_kernel: Floats  # shape (n_labels, n_labels); (0, 0) for the identity

    @classmethod
    def of(cls, gram: GramOperator, gold: WideCodes) -> Self:
        prior, label_kernel = gram.row_prior, gram.label_kernel
        return cls(
            gold,
            np.zeros((gram.shape[0], 0)) if prior is None else np.ascontiguousarray(prior),
            np.zeros((0, 0)) if label_kernel is None else np.ascontiguousarray(label_kernel),
        )

    def part(self, positions: slice) -> Given:
        """The same of some rows."""
        return Given(self.gold[positions], self.prior[positions], self.label_kernel)


class PositionLabeler(SharedPassLearner):
    """Predicts from dual weights A of the training rows, shape (n_rows, n_labels)."""

    constraints: str  # which paths may be predicted

    label_names_: tuple[str, ...]
    label_kernel_: Matrix | None  # ky, None for the identity
    uniform_prior_: bool

    def fit(
        self,
        gram: GramOperator,
        labels: Labels,
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none.

        `progress` is called after every round or pass with its number, from 1, and what is counted (`round_measure`).
        """
        self._train_all([self], gram, [labels], progress, checkpoint)
        return self

    @classmethod
    def _predict_all(cls, learners: Sequence[Self], gram: GramOperator) -> list[list[list[str]]]:
        every = dual_sums(gram, [learner._columns(gram) for learner in learners])
        return [learner._decided(gram, own) for learner, own in zip(learners, every, strict=True)]

    def pass_columns(self, n_labels: int) -> int:
        return n_labels + 1  # scores, and their magnitude

    @property
    def resumes(self) -> bool:
        return True

    @abstractmethod
    def _dual(self) -> SmallCounts | Matrix:
        """A, the weights that predict."""

    @abstractmethod
    def _uniform_probability(self) -> float:
        """P(b|t) where the prior is uniform: 1 / n_labels, or 1 for learners that leave a common factor out."""

    def decision_scores(self, cross: GramOperator) -> Matrix:
        """S of every new position, shape (n_columns, n_labels), from the Gram between training rows and new columns."""
        prior = self._column_prior(cross)
        return np.asarray(cross.matmul(self._weights(cross), transpose=True) * prior)

    def predict(self, cross: GramOperator) -> list[list[str]]:
        """Labels of every new structure."""
        self._column_prior(cross)
        (own,) = dual_sums(cross, [self._columns(cross)])
        return self._decided(cross, own)

    def support(self) -> Mask:
        self.require_fitted()
        return np.asarray(self._dual().any(axis=1), np.bool_)

    def _columns(self, cross: GramOperator) -> Matrix:
        """What prediction multiplies by."""
        columns = np.empty((len(self._dual()), len(self.label_names_) + 1))
        self._weights(cross, columns[:, :-1])
        return fill_sizes(columns)

    def _decided(self, cross: GramOperator, own: DualSums) -> list[list[str]]:
        """The lowest of the tied best labels."""
        prior = self._column_prior(cross)
        scores = own.sums * prior
        if allowed := allowed_steps(self.constraints, self.label_names_):
            starts = cross.layout.cols.structure_starts
            codes, _ = viterbi(scores, np.zeros_like(allowed.step), starts, own.sizes, allowed)
            return decode_labels(codes, self.label_names_, cross.layout.cols.lengths)
        best = scores.argmax(axis=1)[:, None]
        tolerance = TIE * own.sizes[:, None] * np.maximum(prior, np.take_along_axis(prior, best, axis=1))
        codes = (scores >= np.take_along_axis(scores, best, axis=1) - tolerance).argmax(axis=1)
        return decode_labels(codes, self.label_names_, cross.layout.cols.lengths)

    def _weights(self, cross: GramOperator, out: Matrix | None = None) -> Matrix:
        """(A o P) ky, shape (n_rows, n_labels); in memory that is given, or in its own."""
        n_labels = len(self.label_names_)
        prior = np.full((1, n_labels), self._uniform_probability()) if cross.row_prior is None else cross.row_prior
        if self.label_kernel_ is None:
            return np.multiply(self._dual(), prior, out=out)
        weights = (self._dual() * prior) @ self.label_kernel_
        if out is not None:
            out[:] = weights
        return weights

    def _column_prior(self, cross: GramOperator) -> Matrix:
        """P of the new positions, shape (n_columns, n_labels), after checking that `cross` fits the training."""
        self.require_fitted()
        n_rows, n_labels = self._dual().shape
        check_cross(cross, n_rows, self.label_names_, uniform_prior=self.uniform_prior_)
        if cross.col_prior is None:
            return np.full((cross.shape[1], n_labels), self._uniform_probability())
        return cross.col_prior
