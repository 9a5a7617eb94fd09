"""The pointwise support vector machine on a labeling kernel, trained block by block from any Gram operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from gramline.kernels.parameters import Positive, Whole
from gramline.learners.arrays import Codes, Indices, Matrix
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.positions import Given, PositionLabeler
from gramline.learners.checkpoints import State
from gramline.learners.margins.constant import AUTO_C, OpenC
from gramline.learners.margins.dual_ascent import MarginLabeler
from gramline.learners.margins.labeling_loops import Steps, Weights, margin_terms, visit_block
from gramline.learners.margins.passes import Bounds, Stopping, Terms
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.lazy_scores import Change, Visit
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.packets import Scores


class LabelingSVM(MarginLabeler, PositionLabeler):
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
    partial_labels: ClassVar[str] = "the other positions learn"
    round_measure: ClassVar[str] = "positions inside the margin"

    dual_: Matrix

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

    def _dual(self) -> Matrix:
        return self.dual_

    def _uniform_probability(self) -> float:
        return 1.0

    def _problem(self, gram: GramOperator, codes: Codes, n_labels: int) -> PositionProblem:
        given, alpha = Given.of(gram, codes.astype(np.int64)), np.zeros((len(codes), n_labels))
        return PositionProblem(gram.layout.rows, given, alpha, float(self.C), self._stopping())

    def _take(self, gram: GramOperator, problem: PositionProblem) -> None:
        self.dual_ = problem.alpha
        self.label_kernel_, self.uniform_prior_ = gram.label_kernel, gram.row_prior is None
        self._keep(problem.trace)


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
