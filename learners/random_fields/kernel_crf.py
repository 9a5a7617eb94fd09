"""The conditional random field of label chains on any position kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from gramline.kernels.parameters import Positive, Whole
from gramline.kernels.value_kinds import Number
from gramline.learners.arrays import Floats
from gramline.learners.chains.constraints import Constraints, allowed_steps
from gramline.learners.chains.forward_backward import chain_marginals
from gramline.learners.chains.labeler import ChainLabeler, ChainScores, dual_scores, predict_rows
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.estimator import Unlabeled
from gramline.learners.kinds import RoundProgress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels, encode_labels
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, solve_together
from gramline.learners.operators.definiteness import not_semidefinite
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.operator import GramOperator, check_square
from gramline.learners.random_fields.lbfgs import Minimum, Problem, lbfgs_steps
from gramline.learners.random_fields.likelihood import ChainLikelihood

ROUNDING = 1e-6  # of all squares: a sum below minus this has another cause


class KernelCRF(ChainLabeler, SharedPassLearner):
    """min |w|^2 / 2 + C sum_i [ log Z_i - F_i(y_i) ],  C = 1 / (2 penalty),  |w|^2 = <A, G A> + |T|^2 / rho.

    crfsuite with c1 = 0, c2 = penalty and all features that are possible. A missing label is summed over all that it
    may be; structures without a label are left out. Priors and label kernel of the Gram play no part.
    be; structures without a label are left out. Priors and label kernel of the Gram play no part.

    Attributes
    ----------
    dual_ : A, shape (n_rows, n_labels)
    transition_ : T, [previous][current], shape (n_labels, n_labels)
    objective_, objective_trace_ : what is minimised, at the end, and at the start and after every iteration
    gap_ : how far above its minimum that is at most, |gradient|^2 / 2; no bound where labels are missing
    label_names_ : the names of the labels

    Examples
    --------
    >>> from gramline.learners import DenseGram, KernelCRF
    >>> gram = DenseGram([[2, 0, 1], [0, 2, 0], [1, 0, 2]], lengths=[2, 1])
    >>> learner = KernelCRF(penalty=0.1).fit(gram, [["A", "B"], ["A"]])
    >>> learner.predict(gram)
    [['A', 'B'], ['A']]
    >>> learner.predict_proba(gram).round(2)
    array([[0.94, 0.06],
           [0.08, 0.92],
           [0.91, 0.09]])
    """

    name: ClassVar[str] = "kernel-crf"
    summary: ClassVar[str] = (
        "conditional random field of label chains, with probabilities and missing labels, from any Gram matrix "
        "between positions"
    )
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    unlabeled: Unlabeled = "drop"  # no parameter: what a missing label may be is summed over

    dual_: Floats
    objective_: float
    objective_trace_: list[float]
    gap_: float

    def __init__(
        self,
        penalty: Annotated[Positive, "weight of |w|^2 beside the likelihood, c2 of crfsuite"] = 1.0,
        iterations: Annotated[Whole, "of L-BFGS, at most; one pass over the tiles each"] = 200,
        tolerance: Annotated[
            float, Number(least=1e-12), "part of the objective that it may be above its minimum at the end"
        ] = 1e-5,
        transition_weight: Annotated[Positive, "rho, weight of a step between labels beside the Gram matrix"] = 1.0,
        decoding: Annotated[
            Literal["viterbi", "marginals"],
            '`"viterbi"`: the most probable path; `"marginals"`: the most probable label of each position',
        ] = "viterbi",
        constraints: Constraints = "none",
    ) -> None:
        self.penalty = penalty
        self.iterations = iterations
        self.tolerance = tolerance
        self.transition_weight = transition_weight
        self.decoding = decoding
        self.constraints = constraints

    def fit(self, gram: GramOperator, labels: Labels) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none."""
        _train([self], gram, [labels])
        return self

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[KernelCRF],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: RoundProgress | None = None,  # noqa: ARG003 - no round counts mistakes
    ) -> list[list[list[str]]]:
        """Fit every learner on its own labels; see `SharedPassLearner.fit_many`."""
        _train(learners, gram, label_sets)
        return predict_rows(learners, [learner.dual_ for learner in learners], gram)

    def pass_columns(self, n_labels: int) -> int:
        return 7 * n_labels  # a plan counts six arrays; the memory of L-BFGS has 32, and a few elements are at work

    @property
    def round_limit(self) -> int:
        return self.iterations

    def traces(self) -> dict[str, list[float]]:
        return {"objective": [float(value) for value in self.objective_trace_]}

    def notes(self) -> list[str]:
        n_iterations = len(self.objective_trace_) - 1
        if self.gap_ <= self.tolerance * abs(self.objective_):
            return []
        return [
            f"after {n_iterations} iterations the objective may be {self.gap_:.3g} above its minimum, "
            f"{self.gap_ / abs(self.objective_):.2g} of it (tolerance {self.tolerance:g}); give more iterations, a "
            "larger penalty or a larger tolerance"
        ]

    def predict_proba(self, cross: GramOperator) -> Floats:
        """Probability of every label at every new position, given its structure, shape (n_columns, n_labels)."""
        scores, starts, _ = self._scores(cross)
        return chain_marginals(scores, self.transition_, starts).nodes

    def decoded(self, scores: ChainScores) -> list[list[str]]:
        """Label paths of every structure from the scores of its positions, by `decoding`."""
        if self.decoding == "viterbi":
            return super().decoded(scores)
        emission, starts, _ = scores
        nodes = chain_marginals(emission, self.transition_, starts).nodes
        # Under constraints the allowed path with the most labels expected to be right.
        allowed = allowed_steps(self.constraints, self.label_names_)
        path, _ = viterbi(nodes, np.zeros_like(self.transition_), starts, allowed=allowed)
        return decode_labels(path, self.label_names_, np.diff(starts))

    def _scores(self, evidence: GramOperator) -> ChainScores:
        self.require_fitted()
        return dual_scores(evidence, self.dual_, self.label_names_)

    def _problem(self, gram: GramOperator, labels: Labels) -> tuple[Problem, tuple[str, ...]]:
        self.check_parameters()
        check_square(gram)
        codes, names = encode_labels(gram, labels)
        likelihood = ChainLikelihood.of(codes.astype(np.int32), gram.layout.rows.structure_starts, len(names))
        return Problem(likelihood, 0.5 / float(self.penalty), float(self.transition_weight)), names

    def _take(self, names: tuple[str, ...], minimum: Minimum, layout: BlockLayout) -> None:
        """Become the learner that was trained."""
        if minimum.curvatures.sum() < -ROUNDING * np.abs(minimum.curvatures).sum():
            row = int(minimum.curvatures.argmin())
            raise not_semidefinite("the gradient has a negative squared length", row, layout)
        self.dual_, self.transition_ = minimum.point.dual, minimum.point.transition
        self.objective_, self.objective_trace_, self.gap_ = minimum.objective, minimum.trace, minimum.bound
        self.label_names_ = names


def _train(learners: Sequence[KernelCRF], gram: GramOperator, label_sets: Sequence[Labels]) -> None:
    """Iterations until every learner has converged, with one product for all of them each."""
    made = [learner._problem(gram, labels) for learner, labels in zip(learners, label_sets, strict=True)]
    layout, diagonal = gram.layout.rows, gram.diagonal()
    if len(diagonal) and diagonal.min() < -ROUNDING * np.abs(diagonal).max():
        row = int(diagonal.argmin())
        raise not_semidefinite(f"k(x, x) is {diagonal[row]:g}", row, layout)
    solves = [
        lbfgs_steps(problem, gram.shape[0], StoppingRule(float(learner.tolerance), int(learner.iterations)))
        for learner, (problem, _) in zip(learners, made, strict=True)
    ]

    def apply_all(blocks: dict[int, Floats]) -> dict[int, Floats]:
        product = np.asarray(gram.matmul(np.hstack(list(blocks.values()))), np.float64)
        ends = np.cumsum([block.shape[1] for block in blocks.values()])[:-1]
        parts = map(np.ascontiguousarray, np.split(product, ends, axis=1))
        return dict(zip(blocks, parts, strict=True))

    for learner, (_, names), minimum in zip(learners, made, solve_together(apply_all, solves), strict=True):
        learner._take(names, minimum, layout)
