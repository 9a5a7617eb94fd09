"""Chain learners of two forms: one reads a Gram matrix and weighs its rows, the other the features of a corpus.

S = G A in the dual form, S = F E^T otherwise; transitions, decoding and all that follows are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from gramline.kernels.packing import Packable, Packed
from gramline.learners.arrays import Floats
from gramline.learners.chains.labeler import (
    ChainLabeler,
    ChainScores,
    Evidence,
    dual_scores,
    feature_scores,
    predict_rows,
)
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.chosen_constants import train_chosen
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import Unlabeled
from gramline.learners.kinds import CorpusLearner, GramLearner, RoundProgress
from gramline.learners.labels import Labels
from gramline.learners.operators.operator import GramOperator, is_operator
from gramline.learners.token_features import packed_sequences
from gramline.learners.trial_examples import ChoosesOnGram, FeatureExamples


class TwoFormLabeler(ChainLabeler, GramLearner, CorpusLearner):
    """The parameter `dual` says which of the two it is."""

    title: ClassVar[str]  # as errors call it
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    dual: bool

    dual_: Floats  # A, shape (n_rows, n_labels); with dual=True
    emission_: Floats  # E, shape (n_labels, n_features); with dual=False
    feature_names_: list[str]  # of its columns

    @property
    def reads_corpus(self) -> bool:
        """A Gram in the dual form, else a corpus."""
        return not self.dual

    @property
    def resumes(self) -> bool:
        """In the dual form."""
        return self.dual

    def fit(
        self,
        evidence: Packable | Packed | GramOperator,
        labels: Labels | None = None,
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Train on a square Gram and the labels of its rows, or with dual=False on a corpus of labeled sequences.

        `labels` has one list per structure, None where there is none. `progress` is called after every round or pass
        with its number, from 1, and what is counted (`round_measure`); a learner without rounds never calls it. The
        dual form goes on from a `checkpoint`; the other one is quick, and keeps none.
        """
        self.check_parameters()
        self._check_form(evidence)
        if self.dual and labels is None:
            raise LearnerError("the dual form learns from a Gram and labels; call fit(gram, labels)")
        if not self.dual and labels is not None:
            raise LearnerError("a corpus carries its labels; call fit(corpus)")
        self.forget()
        gathered: Any = evidence
        if labels is None:
            self._fit_corpus(gathered, progress)
        else:
            self._fit_gram(gathered, labels, progress, checkpoint)
        return self

    @abstractmethod
    def _fit_gram(
        self, gram: GramOperator, labels: Labels, progress: RoundProgress | None, checkpoint: Checkpoint
    ) -> None:
        """The dual form."""

    @abstractmethod
    def _fit_corpus(self, corpus: Packable | Packed, progress: RoundProgress | None) -> None:
        """The other one."""

    def _row_weights(self) -> Floats:
        """What G is multiplied by."""
        return self.dual_

    def _scores(self, evidence: Evidence) -> ChainScores:
        self.require_fitted()
        self._check_form(evidence)
        if self.dual:
            return dual_scores(evidence, self._row_weights(), self.label_names_)
        return feature_scores(evidence, self.emission_, self.feature_names_)

    def _check_form(self, evidence: Evidence) -> None:
        if is_operator(evidence) != self.dual:
            wanted, given = ("a Gram matrix", "a corpus") if self.dual else ("a corpus", "a Gram matrix")
            form, other = ("dual", "false") if self.dual else ("primal", "true")
            raise LearnerError(
                f"the {form} {self.title} reads {wanted}, but was given {given}",
                advice=f"set dual to {other} for {given}",
            )


class ChoosingChainLabeler(ChoosesOnGram, TwoFormLabeler):
    """One with a constant that may be open, and a loss that makes something of every label that is there."""

    unlabeled: Unlabeled = "drop"  # no parameter: structures without any label are left out, whoever asks

    trials_: dict[str, Any]

    @classmethod
    def _predict_all(cls, learners: Sequence[Self], gram: GramOperator) -> list[list[list[str]]]:
        return predict_rows(learners, [learner.dual_ for learner in learners], gram)

    def _fit_gram(
        self, gram: GramOperator, labels: Labels, progress: RoundProgress | None, checkpoint: Checkpoint
    ) -> None:
        self._train_all([self], gram, [labels], progress, checkpoint)

    def _fit_corpus(self, corpus: Packable | Packed, progress: RoundProgress | None) -> None:
        def fit_one(learner: Self, packed: Packed) -> None:
            learner._fit_features(packed, progress)

        train_chosen([self], FeatureExamples(packed_sequences(corpus), fit_one), NOWHERE)

    @abstractmethod
    def _fit_features(self, packed: Packed, progress: RoundProgress | None) -> None:
        """Train on the labeled positions of a corpus; the constant is a number."""
