"""The conditional random field of label chains, on any position kernel or on explicit features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from gramline.kernels.packing import Packed
from gramline.kernels.parameters import Boolean, Positive, Whole
from gramline.kernels.value_kinds import Number, NumberOrName
from gramline.learners.arrays import Floats
from gramline.learners.chains.constraints import Constraints, allowed_steps
from gramline.learners.chains.forward_backward import chain_marginals
from gramline.learners.chains.labeler import ChainScores, Evidence
from gramline.learners.chains.two_forms import ChoosingChainLabeler
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.chosen_constants import Auto, Constant, LabelLists
from gramline.learners.kinds import RoundProgress
from gramline.learners.labels import decode_labels, encode_labels
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.operators.operator import GramOperator
from gramline.learners.random_fields.lbfgs import Minimum
from gramline.learners.random_fields.training import Setting, train_on_features, train_on_gram
from gramline.learners.token_features import feature_matrix, feature_names, label_names, require_labels


def _penalty(C: float) -> float:
    return 0.5 / C


class KernelCRF(ChoosingChainLabeler):
    """min |w|^2 / 2 + C sum_i [ log Z_i - F_i(y_i) ],  C = 1 / (2 penalty),  |w|^2 = <A, G A> + |T|^2 / rho.

    F(y) = sum_t S[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t] with S = G A. A missing label is summed over all that it may
    be; structures without a label are left out. Priors and label kernel of the Gram play no part.

    With dual=False it learns from explicit features, fit(corpus), with S = F E^T: crfsuite with c1 = 0, c2 = penalty
    and all features that are possible, whose loss is 2 c2 times what is minimised here. The linear kernel of the
    features gives the same.

    penalty="auto" is that of C = 0.3, 1, 3, 10 or 30 divided by the median of k(x, x), with the fewest wrong labels on
    hidden structures: every fifth is hidden, fold after fold, until 10,000 positions were; the larger wins a tie.

    Attributes
    ----------
    dual_ : A, shape (n_rows, n_labels); with dual=True
    emission_ : E, shape (n_labels, n_features); with dual=False
    feature_names_ : the names of its columns
    penalty_ : the penalty that was used, a number
    trials_ : with penalty="auto", the values tried ("penalty"), the wrong labels of each ("wrong") and hidden positions
        ("hidden")
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

    On the features of a corpus, one of whose labels is missing:

    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", None, "V"]])
    >>> learner = KernelCRF(penalty=0.1, dual=False).fit(train)
    >>> learner.predict(Corpus.from_sequences([["the", "cat", "sat"]]))
    [['D', 'N', 'V']]
    """

    name: ClassVar[str] = "kernel-crf"
    summary: ClassVar[str] = (
        "conditional random field of label chains, with probabilities and missing labels, from features or any Gram "
        "matrix between positions"
    )
    constant: ClassVar[Constant] = Constant("penalty", _penalty, tolerance=1e-3, limit="iterations", most=60)
    title: ClassVar[str] = "conditional random field"
    partial_labels: ClassVar[str] = "what each of them may be is summed over"

    penalty_: float
    objective_: float
    objective_trace_: list[float]
    gap_: float

    def __init__(
        self,
        penalty: Annotated[
            float | Auto,
            NumberOrName(above=0, names=("auto",)),
            'weight of |w|^2 beside the likelihood, c2 of crfsuite; `"auto"` chooses it by the labels of hidden '
            "structures",
        ] = 1.0,
        iterations: Annotated[Whole, "of L-BFGS, at most; one pass over the tiles each"] = 200,
        tolerance: Annotated[
            float, Number(least=1e-12), "part of the objective that it may be above its minimum at the end"
        ] = 1e-5,
        transition_weight: Annotated[Positive, "rho, weight of a step between labels beside the Gram matrix"] = 1.0,
        decoding: Annotated[
            Literal["viterbi", "marginals"],
            '`"viterbi"`: the most probable path; `"marginals"`: the most probable label of each position',
        ] = "viterbi",
        dual: Annotated[Boolean, "learn from a Gram matrix; false: from explicit features"] = True,
        constraints: Constraints = "none",
    ) -> None:
        self.penalty = penalty
        self.iterations = iterations
        self.tolerance = tolerance
        self.transition_weight = transition_weight
        self.decoding = decoding
        self.dual = dual
        self.constraints = constraints

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
            return self.choice_notes()
        return [
            *self.choice_notes(),
            f"after {n_iterations} iterations the objective may be {self.gap_:.3g} above its minimum, "
            f"{self.gap_ / abs(self.objective_):.2g} of it (tolerance {self.tolerance:g}); give more iterations, a "
            "larger penalty or a larger tolerance",
        ]

    def predict_proba(self, evidence: Evidence) -> Floats:
        """Probability of every label at every new position, given its structure, shape (n_positions, n_labels)."""
        scores, starts, _ = self._scores(evidence)
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

    @classmethod
    def _train_fixed(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[LabelLists],
        progress: RoundProgress | None,  # noqa: ARG003 - it has no rounds
        checkpoint: Checkpoint,
    ) -> None:
        """All in step."""
        starts = gram.layout.rows.structure_starts
        memories = [] if checkpoint is NOWHERE else [SolveMemory() for _ in learners]
        memory_of: list[SolveMemory | None] = [*memories] or [None] * len(learners)
        encoded = [encode_labels(gram, labels) for labels in label_sets]
        every = [
            learner._setting().steps(codes.astype(np.int32), starts, len(names), memory)
            for learner, (codes, names), memory in zip(learners, encoded, memory_of, strict=True)
        ]
        minima = train_on_gram(gram, every, memories, checkpoint)
        for learner, (_, names), minimum in zip(learners, encoded, minima, strict=True):
            learner.dual_ = minimum.point.dual
            learner._keep(names, minimum)

    def _setting(self) -> Setting:
        stopping = StoppingRule(float(self.tolerance), int(self.iterations))
        return Setting(0.5 / float(self.penalty), float(self.transition_weight), stopping)

    def _fit_features(self, packed: Packed, progress: RoundProgress | None) -> None:  # noqa: ARG002 - it has no rounds
        require_labels(packed)
        columns, names = feature_names(packed), label_names(packed)
        steps = self._setting().steps(packed.labels, packed.starts, len(names))
        self.emission_, minimum = train_on_features(feature_matrix(packed, len(columns)), steps)
        self.feature_names_ = columns
        self._keep(names, minimum)

    def _keep(self, names: tuple[str, ...], minimum: Minimum) -> None:
        self.penalty_, self.transition_ = float(self.penalty), minimum.point.transition
        self.objective_, self.objective_trace_, self.gap_ = minimum.objective, minimum.trace, minimum.bound
        self.label_names_ = names
