"""Rows of a Gram matrix, or a corpus with features, as a choice of a constant trains on them (`chosen_constants`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gramline.kernels.packing import MISSING, Packed
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.checkpoints import Checkpoint
from gramline.learners.chosen_constants import ChoosesConstant, LabelLists, train_chosen
from gramline.learners.kinds import RoundProgress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels, label_lists
from gramline.learners.operators.operator import GramOperator, check_square
from gramline.learners.token_features import label_names

ARRAYS = 6  # of `pass_columns` numbers per row that a training holds, as plans of cross-validations count

Predicted = Sequence[Sequence[Sequence[str]]]


class ChoosesOnGram(ChoosesConstant, SharedPassLearner):
    """One whose trials share the tiles with each other, and with those of other problems."""

    @classmethod
    def _train_all(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        progress: RoundProgress | None,
        checkpoint: Checkpoint,
    ) -> None:
        for learner in learners:
            learner.check_parameters()
        check_square(gram)
        lengths = gram.layout.rows.lengths
        sets = [label_lists(labels, lengths) for labels in label_sets]
        train_chosen(learners, GramExamples(cls, gram, sets, progress), checkpoint)

    @classmethod
    @abstractmethod
    def _train_fixed(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[LabelLists],
        progress: RoundProgress | None,
        checkpoint: Checkpoint,
    ) -> None:
        """Fit every learner, whose constant is a number, on its own labels."""


@dataclass(frozen=True, eq=False)
class GramExamples:
    """Rows of a square Gram matrix; each learner has labels of its own, and all share the tiles."""

    kind: type[ChoosesOnGram]
    gram: GramOperator
    label_sets: list[LabelLists]
    progress: RoundProgress | None

    @property
    def lengths(self) -> Indices:
        return self.gram.layout.rows.lengths

    def labels(self, problem: int) -> LabelLists:
        return self.label_sets[problem]

    def diagonal(self) -> Matrix:
        return self.gram.diagonal()

    def bytes_of(self, learner: Any) -> int:
        names = self.gram.label_names or {label for labels in self.label_sets for own in labels for label in own}
        return int(8 * ARRAYS * max(1, self.gram.shape[0]) * learner.pass_columns(max(1, len(names))))

    def train(
        self, learners: Sequence[Any], problems: Sequence[int], hidden: Sequence[Indices], checkpoint: Checkpoint
    ) -> None:
        sets = [_hide(self.label_sets[problem], own) for problem, own in zip(problems, hidden, strict=True)]
        self.kind._train_fixed(learners, self.gram, sets, self.progress, checkpoint)

    def predict(self, learners: Sequence[Any]) -> Predicted:
        return self.kind._predict_all(learners, self.gram)


@dataclass(frozen=True, eq=False)
class FeatureExamples:
    """A corpus with its labels and features, whose kernel is the linear one; learners are trained one by one."""

    packed: Packed
    fit_one: Callable[[Any, Packed], None]

    @property
    def lengths(self) -> Indices:
        return self.packed.lengths

    def labels(self, problem: int) -> LabelLists:
        assert problem == 0
        names: list[str | None] = [*label_names(self.packed), None]  # code -1 is the last one
        return decode_labels(self.packed.labels, names, self.packed.lengths)

    def diagonal(self) -> Matrix:
        features = self.packed.features
        squares = np.ones(len(features.indices)) if features.values is None else features.values**2
        sums = np.concatenate([[0.0], np.cumsum(squares)])
        return np.diff(sums[features.indptr])

    def bytes_of(self, learner: Any) -> int:  # noqa: ARG002 - no two of them train at a time
        return 1

    def train(
        self,
        learners: Sequence[Any],
        problems: Sequence[int],
        hidden: Sequence[Indices],
        checkpoint: Checkpoint,  # noqa: ARG002 - quick, and kept nowhere
    ) -> None:
        owners = np.repeat(np.arange(len(self.packed)), self.packed.lengths)
        for learner, _, own in zip(learners, problems, hidden, strict=True):
            labels = np.where(np.isin(owners, own), MISSING, self.packed.labels)
            self.fit_one(learner, replace(self.packed, labels=labels) if len(own) else self.packed)

    def predict(self, learners: Sequence[Any]) -> Predicted:
        return [learner.predict(self.packed) for learner in learners]


def _hide(labels: LabelLists, hidden: Indices) -> LabelLists:
    """Without the labels of some structures."""
    unseen = set(hidden.tolist())
    return [[None] * len(own) if k in unseen else own for k, own in enumerate(labels)]
