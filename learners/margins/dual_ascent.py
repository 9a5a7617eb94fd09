"""What learners share that are trained by passes of dual ascent until their duality gap is small."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from gramline.learners.arrays import Codes
from gramline.learners.checkpoints import Checkpoint
from gramline.learners.chosen_constants import Constant, LabelLists
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RoundProgress
from gramline.learners.labels import encode_labels
from gramline.learners.margins.constant import CONSTANT
from gramline.learners.margins.passes import Bounds, MarginProblem, Stopping, convergence_notes, train
from gramline.learners.operators.operator import GramOperator
from gramline.learners.trial_examples import ChoosesOnGram


class DualAscent(Learner):
    """A learner with `passes` and `tolerance`, and the trace of its gap."""

    is_lazy: ClassVar[bool] = True

    passes: int
    tolerance: float

    objective_: float
    gap_: float
    gap_trace_: list[float]

    @property
    def round_limit(self) -> int:
        return self.passes

    def traces(self) -> dict[str, list[float]]:
        return {"gap": [float(gap) for gap in self.gap_trace_]}

    def _convergence_notes(self) -> list[str]:
        return convergence_notes(self.gap_, self.objective_, self._stopping(), len(self.gap_trace_))

    def _stopping(self) -> Stopping:
        return Stopping(float(self.tolerance), int(self.passes))

    def _keep(self, trace: Sequence[Bounds]) -> None:
        """How the passes went."""
        self.objective_, self.gap_ = trace[-1].primal, trace[-1].gap
        self.gap_trace_ = [bounds.gap for bounds in trace]


class MarginLabeler(ChoosesOnGram, DualAscent):
    """A labeler with C, which may be open."""

    constant: ClassVar[Constant] = CONSTANT
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    C: float | str
    C_: float
    trials_: dict[str, Any]
    label_names_: tuple[str, ...]

    def notes(self) -> list[str]:
        return self.choice_notes() + self._convergence_notes()

    def pass_columns(self, n_labels: int) -> int:
        return n_labels + 1  # scores, and their magnitude

    @classmethod
    def _train_fixed(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[LabelLists],
        progress: RoundProgress | None,
        checkpoint: Checkpoint,
    ) -> None:
        encoded = [encode_labels(gram, labels) for labels in label_sets]
        problems = [
            learner._problem(gram, codes.astype(np.int32), len(names))
            for learner, (codes, names) in zip(learners, encoded, strict=True)
        ]
        train(gram, problems, progress, checkpoint)
        for learner, (_, names), problem in zip(learners, encoded, problems, strict=True):
            learner.label_names_ = names
            learner._take(gram, problem)

    @abstractmethod
    def _problem(self, gram: GramOperator, codes: Codes, n_labels: int) -> MarginProblem:
        """What is trained on labels, negative where there is none."""

    @abstractmethod
    def _take(self, gram: GramOperator, problem: Any) -> None:
        """Become the learner that was trained."""

    def _keep(self, trace: Sequence[Bounds]) -> None:
        super()._keep(trace)
        self.C_ = float(self.C)
