"""Kinds of learners by what they learn from: a Gram matrix and labels, a corpus, or a Gram matrix and groups.

To add a learner, derive it from one of them. `reads_corpus` tells the first two apart; a learner may be both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from gramline.kernels.packing import Packable, Packed
from gramline.learners.arrays import Matrix
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.estimator import Learner
from gramline.learners.labels import Labels
from gramline.learners.operators.operator import GramOperator

Groups = Sequence[int] | Sequence[Sequence[int]]  # group sizes in order, or the rows of each group
RoundProgress = Callable[[int, int], None]  # called after every round with its number, from 1, and its mistakes


class GramLearner(Learner):
    """Labels positions; learns from a square Gram matrix and the labels of its rows."""

    @abstractmethod
    def fit(self, gram: GramOperator, labels: Labels) -> Self:
        """Train; `labels` has one list per structure, None where there is none."""

    @abstractmethod
    def predict(self, cross: GramOperator) -> list[list[str]]:
        """Labels of every new structure, from the Gram matrix between training rows and new columns."""

    @abstractmethod
    def decision_scores(self, cross: GramOperator) -> Matrix:
        """The score of every label at every new position, shape (n_columns, n_labels)."""


class SharedPassLearner(GramLearner):
    """A learner on a Gram matrix that can train many label problems in one pass over the tiles."""

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> list[list[list[str]]]:
        """Fit every learner, all of this class, on its own labels; every tile is read once for all of them.

        Equal to separate fits. Returns for each learner the labels that it predicts for all rows. `progress` is
        called after every round with the mistakes of all problems; a learner without rounds never calls it. The
        `checkpoint` is of all of them together.
        """
        cls._train_all(learners, gram, label_sets, progress, checkpoint)
        return cls._predict_all(learners, gram)

    @classmethod
    @abstractmethod
    def _train_all(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        progress: RoundProgress | None,
        checkpoint: Checkpoint,
    ) -> None:
        """Fit every learner on its own labels."""

    @classmethod
    @abstractmethod
    def _predict_all(cls, learners: Sequence[Self], gram: GramOperator) -> list[list[list[str]]]:
        """What every fitted learner predicts for all rows, by one product."""

    @abstractmethod
    def pass_columns(self, n_labels: int) -> int:
        """Numbers per row of the Gram matrix in each array that a problem of `n_labels` labels needs: for plans."""


class CorpusLearner(Learner):
    """Labels positions; learns from the token features and the labels of a corpus."""

    @property
    def reads_corpus(self) -> bool:
        return True

    @abstractmethod
    def fit(self, corpus: Packable | Packed) -> Self:
        """Train on the labeled structures of a corpus."""

    @abstractmethod
    def predict(self, corpus: Packable | Packed) -> list[list[str]]:
        """Labels of every structure of a corpus."""

    @abstractmethod
    def decision_scores(self, corpus: Packable | Packed) -> Matrix:
        """The score of every label at every position, shape (n_positions, n_labels)."""


class RankingLearner(Learner):
    """Ranks candidates; learns from a square Gram matrix and groups of its rows, the correct one first.

    `log_probabilities`, one per row or column, are what is known of candidates beforehand.
    """

    @abstractmethod
    def fit(self, gram: GramOperator, groups: Groups, *, log_probabilities: ArrayLike | None = None) -> Self:
        """Train on groups of candidates."""

    @abstractmethod
    def predict(self, cross: GramOperator, groups: Groups, log_probabilities: ArrayLike | None = None) -> list[int]:
        """The chosen candidate of each group of new columns, counted from 0 within the group."""

    @abstractmethod
    def decision_scores(
        self, cross: GramOperator, groups: Groups | None = None, log_probabilities: ArrayLike | None = None
    ) -> Matrix:
        """The score of every new candidate, shape (n_columns,)."""


@runtime_checkable
class HasProbabilities(Protocol):
    """A fitted learner that knows how likely every label is."""

    label_names_: tuple[str, ...]

    def predict_proba(self, evidence: Any) -> Matrix:
        """Shape (n_positions, n_labels); rows sum to 1."""
