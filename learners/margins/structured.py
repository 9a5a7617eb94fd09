"""The structured support vector machine of label chains, trained block by block from any Gram operator."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from gramline.kernels.packing import Packed
from gramline.kernels.parameters import Boolean, Positive, Whole
from gramline.learners.arrays import Codes
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.two_forms import ChoosingChainLabeler
from gramline.learners.kinds import RoundProgress
from gramline.learners.margins.atom_loops import Margin
from gramline.learners.margins.chain_problem import ChainProblem
from gramline.learners.margins.constant import AUTO_C, OpenC
from gramline.learners.margins.dual_ascent import MarginLabeler
from gramline.learners.margins.feature_training import train_on_features
from gramline.learners.operators.operator import GramOperator
from gramline.learners.token_features import feature_names, label_names


class StructuredSVM(MarginLabeler, ChoosingChainLabeler):
    """min |w|^2 / 2 + C sum_i ( max_y [Delta_i(y) + F_i(y)] - F_i(y_i) ),  |w|^2 = <A, G A> + |T|^2 / rho.

    F(y) = sum_t S[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t] with S = G A. Delta counts wrong positions ("hamming"); or it
    is 1 for every wrong path: "none", the plain maximum margin, which no loss rescales, also called "zero-one". The
    dual is a distribution over label paths for every chain; weight moves from the lowest to the highest of them, one
    chain after another, the same for every block size. A missing label ends a chain: the labeled positions around it
    are chains of their own. Priors and label kernel of the Gram play no part.

    With dual=False it learns from explicit features, fit(corpus), with S = F E^T: the steps are those of their linear
    kernel.

    C="auto" is the one of 0.3, 1, 3, 10 and 30, divided by the median of k(x, x), with the fewest wrong labels on
    hidden structures: every fifth is hidden, fold after fold, until 10,000 positions were; the smaller wins a tie.

    Attributes
    ----------
    dual_ : A = C (Y - mu), shape (n_rows, n_labels), 0 where there is no label; with dual=True
    emission_ : E, shape (n_labels, n_features); with dual=False
    feature_names_ : the names of its columns
    C_ : the C that was used, a number
    trials_ : with C="auto", the values tried ("C"), the wrong labels of each ("wrong") and hidden positions ("hidden")
    transition_ : T, [previous][current], shape (n_labels, n_labels)
    objective_ : what is minimised, at the last weights
    gap_ : how far above its minimum that is at most
    gap_trace_ : the same after every pass
    label_names_ : the names of the labels

    Examples
    --------
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.learners import DenseGram, StructuredSVM
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> new = Corpus.from_sequences([["the", "cat", "sat"]])
    >>> kernel = SequenceLabeling(c=0.5)
    >>> learner = StructuredSVM(C=10.0).fit(DenseGram.of(kernel, train), train.labels)
    >>> learner.predict(DenseGram.of(kernel, train, new))
    [['D', 'N', 'V']]
    >>> learner.gap_ <= 0.01 * learner.objective_
    True
    """

    name: ClassVar[str] = "structured-svm"
    summary: ClassVar[str] = "support vector machine of label chains, from features or any Gram matrix"
    title: ClassVar[str] = "structured support vector machine"
    partial_labels: ClassVar[str] = "each of them ends a chain, and the labeled positions around it learn"
    round_measure: ClassVar[str] = "structures inside the margin"

    def __init__(
        self,
        C: Annotated[OpenC, "weight of a chain inside the margin; " + AUTO_C] = 1.0,
        loss: Annotated[
            Literal["hamming", "zero-one", "none"],
            'margin that a wrong path must keep: `"hamming"` the positions at which it is wrong, `"none"` and '
            '`"zero-one"` 1',
        ] = "hamming",
        passes: Annotated[Whole, "over the training structures, at most"] = 200,
        tolerance: Annotated[Positive, "part of the objective that the duality gap has come down to at the end"] = 0.01,
        transition_weight: Annotated[Positive, "rho, weight of a step between labels beside the Gram matrix"] = 1.0,
        average: Annotated[
            Boolean, "predict with the mean of the weights after each visit, later ones counting more"
        ] = False,
        dual: Annotated[Boolean, "learn from a Gram matrix; false: from explicit features"] = True,
        constraints: Constraints = "none",
    ) -> None:
        self.C = C
        self.loss = loss
        self.passes = passes
        self.tolerance = tolerance
        self.transition_weight = transition_weight
        self.average = average
        self.dual = dual
        self.constraints = constraints

    def _margin(self) -> Margin:
        return Margin(float(self.C), float(self.transition_weight), self.loss == "hamming")

    def _problem(self, gram: GramOperator, codes: Codes, n_labels: int) -> ChainProblem:
        return ChainProblem.start(gram.layout.rows, codes, n_labels, self._margin(), self._stopping())

    def _take(self, gram: GramOperator, problem: ChainProblem) -> None:  # noqa: ARG002 - labels are all it needs
        last = problem.alpha, problem.transitions.weights
        self.dual_, self.transition_ = problem.average() if self.average else last
        self._keep(problem.trace)

    def _fit_features(self, packed: Packed, progress: RoundProgress | None) -> None:
        found = train_on_features(
            packed, self._margin(), self._stopping(), average=bool(self.average), progress=progress
        )
        self.emission_, self.transition_ = found.emission, found.transition
        self.feature_names_, self.label_names_ = feature_names(packed), label_names(packed)
        self._keep(found.trace)
