"""The structured support vector machine of label chains, trained block by block from any Gram operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from gramline.kernels.packing import Packable, Packed
from gramline.kernels.parameters import Boolean, Positive, Whole
from gramline.learners.arrays import Floats
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.labeler import (
    ChainLabeler,
    ChainScores,
    Evidence,
    check_form,
    check_labels_of_form,
    dual_scores,
    feature_scores,
    predict_rows,
)
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.chosen_constants import ChoosesConstant, Constant, LabelLists, train_chosen
from gramline.learners.estimator import Unlabeled
from gramline.learners.kinds import CorpusLearner, RoundProgress, SharedPassLearner
from gramline.learners.labels import Labels, encode_labels
from gramline.learners.margins.atom_loops import Margin
from gramline.learners.margins.chain_problem import ChainProblem
from gramline.learners.margins.constant import AUTO_C, CONSTANT, OpenC
from gramline.learners.margins.feature_training import train_on_features
from gramline.learners.margins.passes import Bounds, Stopping, convergence_notes, train
from gramline.learners.operators.operator import GramOperator
from gramline.learners.token_features import feature_names, label_names, packed_sequences
from gramline.learners.trial_examples import FeatureExamples, GramExamples

WHAT = "structured support vector machine"


class StructuredSVM(ChoosesConstant, ChainLabeler, SharedPassLearner, CorpusLearner):
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
    is_lazy: ClassVar[bool] = True
    constant: ClassVar[Constant] = CONSTANT
    round_measure: ClassVar[str] = "structures inside the margin"
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)
    uses_partial_labels: ClassVar[bool] = True

    unlabeled: Unlabeled = "drop"  # no parameter: a missing label ends a chain, whoever asks

    dual_: Floats
    emission_: Floats
    feature_names_: list[str]
    C_: float
    trials_: dict[str, Any]
    objective_: float
    gap_: float
    gap_trace_: list[float]

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

        `labels` has one list per structure, None where there is none. `progress` is called after every pass with its
        number, from 1, and the chains inside the margin. The dual form goes on from a `checkpoint`; the other one is
        quick, and keeps none.
        """
        self.check_parameters()
        check_form(evidence, WHAT, dual=self.dual)
        self.forget()
        check_labels_of_form(labels, dual=self.dual)
        gathered: Any = evidence
        if labels is not None:
            _train([self], gathered, [labels], progress, checkpoint)
            return self

        def fit_one(learner: StructuredSVM, packed: Packed) -> None:
            found = train_on_features(
                packed, learner._margin(), learner._stopping(), average=bool(learner.average), progress=progress
            )
            learner.emission_, learner.transition_ = found.emission, found.transition
            learner.feature_names_, learner.label_names_ = feature_names(packed), label_names(packed)
            learner._keep(found.trace)

        train_chosen([self], FeatureExamples(packed_sequences(gathered), fit_one), NOWHERE)
        return self

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[StructuredSVM],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: RoundProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> list[list[list[str]]]:
        """Fit every learner on its own labels; see `SharedPassLearner.fit_many`."""
        _train(learners, gram, label_sets, progress, checkpoint)
        return _predict_all(learners, gram)

    def pass_columns(self, n_labels: int) -> int:
        return n_labels + 1  # scores, and their magnitude

    @property
    def round_limit(self) -> int:
        return self.passes

    def traces(self) -> dict[str, list[float]]:
        return {"gap": [float(gap) for gap in self.gap_trace_]}

    def notes(self) -> list[str]:
        converged = convergence_notes(self.gap_, self.objective_, self._stopping(), len(self.gap_trace_))
        return self.choice_notes() + converged

    def _scores(self, evidence: Evidence) -> ChainScores:
        self.require_fitted()
        check_form(evidence, WHAT, dual=self.dual)
        if self.dual:
            return dual_scores(evidence, self.dual_, self.label_names_)
        return feature_scores(evidence, self.emission_, self.feature_names_)

    def _stopping(self) -> Stopping:
        return Stopping(float(self.tolerance), int(self.passes))

    def _margin(self) -> Margin:
        return Margin(float(self.C), float(self.transition_weight), self.loss == "hamming")

    def _take(self, names: tuple[str, ...], problem: ChainProblem) -> None:
        """Become the learner that was trained."""
        last = problem.alpha, problem.transitions.weights
        self.dual_, self.transition_ = problem.average() if self.average else last
        self._keep(problem.trace)
        self.label_names_ = names

    def _keep(self, trace: list[Bounds]) -> None:
        self.C_, self.objective_, self.gap_ = float(self.C), trace[-1].primal, trace[-1].gap
        self.gap_trace_ = [bounds.gap for bounds in trace]


def _train(
    learners: Sequence[StructuredSVM],
    gram: GramOperator,
    label_sets: Sequence[Labels],
    progress: RoundProgress | None,
    checkpoint: Checkpoint = NOWHERE,
) -> None:
    """Passes over the tiles until every learner has converged, after those of a choice of C."""

    def fit_all(some: Sequence[StructuredSVM], sets: list[LabelLists], part: Checkpoint) -> None:
        problems: list[ChainProblem] = []
        names: list[tuple[str, ...]] = []
        for learner, labels in zip(some, sets, strict=True):
            found, own_names = encode_labels(gram, labels)
            codes, stopping = found.astype(np.int32), learner._stopping()
            problems.append(ChainProblem.start(gram.layout.rows, codes, len(own_names), learner._margin(), stopping))
            names.append(own_names)
        train(gram, problems, progress, part)
        for learner, own_names, problem in zip(some, names, problems, strict=True):
            learner._take(own_names, problem)

    for learner in learners:
        learner.check_parameters()
    examples = GramExamples.of(gram, label_sets, fit_all, _predict_all)
    train_chosen(learners, examples, checkpoint)


def _predict_all(learners: Sequence[StructuredSVM], gram: GramOperator) -> list[list[list[str]]]:
    return predict_rows(learners, [learner.dual_ for learner in learners], gram)
