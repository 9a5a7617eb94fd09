"""The pointwise support vector machine on a labeling kernel, trained block by block from any Gram operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from gramline.kernels.parameters import Positive, Whole
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.positions import Given, PositionLabeler, predict_rows
from gramline.learners.checkpoints import NOWHERE, Checkpoint, State
from gramline.learners.chosen_constants import ChoosesConstant, Constant, LabelLists, train_chosen
from gramline.learners.kinds import RoundProgress
from gramline.learners.labels import Labels, encode_labels
from gramline.learners.margins.constant import AUTO_C, CONSTANT, OpenC
from gramline.learners.margins.labeling_loops import Steps, Weights, margin_terms, visit_block
from gramline.learners.margins.passes import Bounds, Stopping, Terms, convergence_notes, train
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.lazy_scores import Change, Visit
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.packets import Scores
from gramline.learners.trial_examples import GramExamples


class LabelingSVM(ChoosesConstant, PositionLabeler):
    """min |w|^2 / 2 + C sum_t ( max_b ([b != y_t] + S[t, b]) - S[t, y_t] ),  S = P o (G ((A o P) ky)).

    The multi-class machine of Crammer and Singer on every labeled position, with the prior P(y|x) and the label kernel
    ky of the Gram; a uniform prior counts as 1, so that C weighs the plain Gram. Its dual, max sum_t A[t, y_t] -
    <A, S> / 2 with A[t, b] <= C [b = y_t] and rows that sum to 0, is solved by exact steps of one position after
    another, the same for every block size. Positions without a label keep A[t] = 0.

    C="auto" is the one of 0.3, 1, 3, 10 and 30, divided by the median of k(x, x), with the fewest wrong labels on
    hidden structures: every fifth is hidden, fold after fold, until 10,000 positions were; the smaller wins a tie.

    Attributes
    ----------
    dual_ : A, shape (n_rows, n_labels)
    C_ : the C that was used, a number
    trials_ : with C="auto", the values tried ("C"), the wrong labels of each ("wrong") and hidden positions ("hidden")
    objective_ : what is minimised, at the end
    gap_ : how far above its minimum that is at most
    gap_trace_ : the same after every pass
    label_names_ : the names of the columns
    label_kernel_ : ky, shape (n_labels, n_labels); None for the identity
    uniform_prior_ : whether P is uniform

    Examples
    --------
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.learners import DenseGram, LabelingSVM
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> new = Corpus.from_sequences([["the", "cat", "sat"]])
    >>> kernel = SequenceLabeling(c=0.5)
    >>> learner = LabelingSVM(C=10.0).fit(DenseGram.of(kernel, train), train.labels)
    >>> learner.predict(DenseGram.of(kernel, train, new))
    [['D', 'N', 'V']]
    >>> learner.gap_ <= 0.01 * learner.objective_
    True
    """

    name: ClassVar[str] = "labeling-svm"
    summary: ClassVar[str] = "support vector machine over positions, from a Gram matrix of a labeling kernel"
    is_lazy: ClassVar[bool] = True
    constant: ClassVar[Constant] = CONSTANT
    round_measure: ClassVar[str] = "positions inside the margin"
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    dual_: Matrix
    C_: float
    trials_: dict[str, Any]
    objective_: float
    gap_: float
    gap_trace_: list[float]

    def __init__(
        self,
        C: Annotated[OpenC, "weight of a position inside the margin; " + AUTO_C] = 1.0,
        passes: Annotated[Whole, "over the training positions, at most"] = 200,
        tolerance: Annotated[Positive, "part of the objective that the duality gap has come down to at the end"] = 0.01,
        constraints: Constraints = "none",
    ) -> None:
        self.C = C
        self.passes = passes
        self.tolerance = tolerance
        self.constraints = constraints

    def fit(
        self,
        gram: GramOperator,
        labels: Labels,
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none.

        `progress` is called after every pass with its number, from 1, and the positions inside the margin.
        """
        _train([self], gram, [labels], progress, checkpoint)
        return self

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[LabelingSVM],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> list[list[list[str]]]:
        """Fit every learner on its own labels; see `SharedPassLearner.fit_many`."""
        _train(learners, gram, label_sets, progress, checkpoint)
        return predict_rows(learners, gram)

    def pass_columns(self, n_labels: int) -> int:
        return n_labels + 1  # scores, and their magnitude

    @property
    def resumes(self) -> bool:
        return True

    @property
    def round_limit(self) -> int:
        return self.passes

    def traces(self) -> dict[str, list[float]]:
        return {"gap": [float(gap) for gap in self.gap_trace_]}

    def notes(self) -> list[str]:
        converged = convergence_notes(self.gap_, self.objective_, self._stopping(), len(self.gap_trace_))
        return self.choice_notes() + converged

    def _stopping(self) -> Stopping:
        return Stopping(float(self.tolerance), int(self.passes))

    def _dual(self) -> Matrix:
        return self.dual_

    def _uniform_probability(self) -> float:
        return 1.0

    def _take(self, gram: GramOperator, names: tuple[str, ...], problem: PositionProblem) -> None:
        """Become the learner that was trained."""
        self.dual_, self.C_ = problem.alpha, problem.C
        self.objective_, self.gap_ = problem.trace[-1].primal, problem.trace[-1].gap
        self.gap_trace_ = [bounds.gap for bounds in problem.trace]
        self.label_names_, self.label_kernel_, self.uniform_prior_ = names, gram.label_kernel, gram.row_prior is None


@dataclass(eq=False)
class PositionProblem:
    """Labels of positions with their dual weights; see `MarginProblem`."""

    layout: BlockLayout
    given: Given
    alpha: Matrix  # A, shape (n_rows, n_labels)
    C: float
    stopping: Stopping
    trace: list[Bounds] = field(default_factory=list)
    is_inner: bool = field(default=False, init=False)

    def end_pass(self) -> None:
        """No inner pass follows: every visit of a position is exact."""

    @property
    def n_labels(self) -> int:
        return int(self.alpha.shape[1])

    def visit(self, block: int, visit: Visit, scores: Scores) -> Change | None:
        positions, n_rows = self.layout.rows(block), len(visit.tile)
        steps = Steps(np.zeros((n_rows, self.n_labels)), np.zeros(n_rows))
        weights = Weights(*scores, self.alpha[positions])
        visit_block(visit.tile, visit.local, self.given.part(positions), weights, steps, self.C)
        rows = np.flatnonzero(steps.sizes)
        return Change(rows, steps.change[rows], steps.sizes[rows]) if len(rows) else None

    def measure(self, block: int, local: Indices, scores: Scores) -> Terms:
        positions, structures = self.layout.rows(block), self.layout.structures(block)
        starts = self.layout.structure_starts[structures.start : structures.stop + 1] - positions.start
        norms = np.zeros(len(starts) - 1)
        given, alpha = self.given.part(positions), self.alpha[positions]
        return Terms(*margin_terms(local, given, scores.sums, alpha, starts, norms), norms)

    def bounds(self, hinge: float, norm: float) -> Bounds:
        """P = <A, S> / 2 + C sum of hinges,  D = sum_t A[t, y_t] - <A, S> / 2."""
        labeled = np.flatnonzero(self.given.gold >= 0)
        gained = float(self.alpha[labeled, self.given.gold[labeled]].sum())
        return Bounds(norm / 2.0 + self.C * hinge, gained - norm / 2.0)

    def state(self) -> State:
        return {"alpha": self.alpha.copy()}

    def resume(self, state: State) -> None:
        self.alpha[:] = state["alpha"]


def _train(
    learners: Sequence[LabelingSVM],
    gram: GramOperator,
    label_sets: Sequence[Labels],
    progress: RoundProgress | None,
    checkpoint: Checkpoint = NOWHERE,
) -> None:
    """Passes over the tiles until every learner has converged, after those of a choice of C."""

    def fit_all(some: Sequence[LabelingSVM], sets: list[LabelLists], part: Checkpoint) -> None:
        problems: list[PositionProblem] = []
        names: list[tuple[str, ...]] = []
        for learner, labels in zip(some, sets, strict=True):
            codes, own_names = encode_labels(gram, labels)
            alpha, given = np.zeros((len(codes), len(own_names))), Given.of(gram, codes)
            problems.append(PositionProblem(gram.layout.rows, given, alpha, float(learner.C), learner._stopping()))
            names.append(own_names)
        train(gram, problems, progress, part)
        for learner, own_names, problem in zip(some, names, problems, strict=True):
            learner._take(gram, own_names, problem)

    for learner in learners:
        learner.check_parameters()
    examples = GramExamples.of(gram, label_sets, fit_all, predict_rows)
    train_chosen(learners, examples, checkpoint)
