"""The Gaussian-process pseudo-likelihood labeler: confidences, missing labels, any set of neighbour offsets."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from gramline.kernels.parameters import Boolean, NonNegative, Positive, Whole, WholeOrZero
from gramline.kernels.value_kinds import Number, NumberOrName
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.chains.constraints import Constraints, allowed_steps
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.errors import LearnerError, LearnerParameterError, NotPositiveDefiniteError
from gramline.learners.gaussian_process.covariance import (
    ExactCovariance,
    advised,
    distinct_features,
    distinct_rows,
    label_weights,
    require_moderate,
)
from gramline.learners.gaussian_process.expectation import ExpectedNormalizer
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.likelihood import LabeledTokens, drop_labels, neighbour_labels
from gramline.learners.gaussian_process.low_rank import (
    LowRankCovariance,
    LowRankPosterior,
    approximation_report,
    low_rank_covariance,
)
from gramline.learners.gaussian_process.normalizer import JensenNormalizer, Normalizer
from gramline.learners.gaussian_process.parameters import Neighbours, named_offsets
from gramline.learners.gaussian_process.prediction import Couplings, Moments, Refinement, refine
from gramline.learners.gaussian_process.search import KernelSearch, ScaleSearch, require_tunable
from gramline.learners.gaussian_process.state import FittedLabeler, LastMoments
from gramline.learners.gaussian_process.training import SweepProgress, Training, maximise
from gramline.learners.labels import Labels, decode_labels, encode_labels
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.operators.operator import GramOperator, check_cross, check_square

# Prior variance of a position at scale="auto". Measured: with 1, the published scale on a kernel that is at most 1, the
# labels hardly leave the majority; between 100 and 300 errors hardly change, and more variance takes more sweeps.
TYPICAL_VARIANCE = 100.0


class GaussianProcessLabeler(FittedLabeler):
    """p(y_t | neighbours) = softmax over q of f_q(t) + sum_d f_d[nb_d(t), q], local f_q ~ GP(0, scale_q K).

    `fit` maximises a variational bound of the pseudo-likelihood, which never decreases along `elbo_trace_`.
    Positions without a label add nothing and are left out. Positions with identical Gram rows (with `learn_kernel`,
    identical features) share their latent values; the first of them has their sums. The Gram's prior P(y|x) enters
    as K_j = n_labels^2 P_j K P_j (so that a uniform prior changes nothing), a diagonal label kernel as a factor.

    The bound of E log sum_q exp f_q: "jensen" is log sum_q exp(m_q + v_q / 2), too loose when variances are large;
    "expected" takes the expectation itself over fixed draws. The "nystrom" approximation is K by pivoted Cholesky, plus
    its missing diagonal; it takes N rank^2 steps, not N^3.

    The published learner is `GaussianProcessLabeler(**GaussianProcessLabeler.paper_settings())`.

    Attributes
    ----------
    dual_, precision_ : a and lam of the posterior, shape (n_rows, n_labels).
    coupling_mean_, coupling_variance_ : shape (n_offsets, n_labels, n_labels), indexed [offset][neighbour][own].
    scale_ : of every label, shape (n_labels,); what was chosen or learned.
    elbo_, elbo_trace_ : the bound at the end, and at the start and after every sweep.
    sweeps_, converged_, n_distinct_ : sweeps made, whether the bound stopped growing, distinct labeled positions.
    kernel_parameters_ : the learned ones; new positions must be compared with these.
    approximation_report_ : rank, and errors against the exact covariance on a subset.
    prediction_report_ : how the refinement of the last prediction ended.

    >>> from gramline.learners import DenseGram, GaussianProcessLabeler
    >>> gram = DenseGram([[2, 0, 1], [0, 2, 0], [1, 0, 2]], lengths=[2, 1])
    >>> model = GaussianProcessLabeler(offsets=(-1,)).fit(gram, [["A", "B"], ["A"]])
    >>> model.predict(gram), model.converged_
    ([['A', 'B'], ['A']], True)
    >>> model.predict_proba(gram).round(2)
    array([[0.95, 0.05],
           [0.06, 0.94],
           [0.95, 0.05]])
    """

    name: ClassVar[str] = "gaussian-process"
    summary: ClassVar[str] = (
        "label probabilities (`gramline predict --probabilities`) and missing labels (`gramline cv --missing`), "
        "from any Gram matrix between positions"
    )
    factors_by_tiles: ClassVar[bool] = True
    round_measure: ClassVar[str] = "of the bound"
    paper: ClassVar[Mapping[str, Any]] = {"bound": "jensen", "scale": 1.0}

    def __init__(
        self,
        offsets: Neighbours = (-1, 1),
        bound: Annotated[
            Literal["expected", "jensen"],
            '`"expected"` takes the expectation itself, `"jensen"` is the published one',
        ] = "expected",
        scale: Annotated[
            float | Literal["auto"],
            NumberOrName(above=0, names=("auto",)),
            'of the Gram matrix; where the search starts when it is learned; `"auto"` makes its mean diagonal 100',
        ] = "auto",
        learn_scale: Annotated[
            Literal["shared", "per_label"] | None, '`"shared"` or `"per_label"`: learned by maximising the bound'
        ] = None,
        learn_kernel: Annotated[
            Boolean, "learn the parameters of an observation kernel, too (in Python, from an `ObservationGram`)"
        ] = False,
        missing: Annotated[
            float,
            Number(least=0, below=1),
            "forget this fraction of the labels, to see what they are worth; a larger one forgets the same and more",
        ] = 0.0,
        seed: Annotated[WholeOrZero, "which labels are forgotten"] = 0,
        max_sweeps: Annotated[Whole, "over all labels"] = 50,
        tolerance: Annotated[Positive, "relative increase of the bound at which training ends"] = 1e-6,
        jitter: Annotated[NonNegative, "added to the diagonal of the Gram matrix"] = 0.0,
        approximation: Annotated[Literal["nystrom"] | None, '`"nystrom"`: of low `rank`, for large N'] = None,
        rank: Annotated[Whole | None, "of that approximation"] = None,
        variance: Annotated[
            Literal["auto", "exact", "none"],
            'variances enter the scores: `"auto"`: predictive ones where the cross Gram knows k(x, x) of its columns; '
            '`"exact"` refuses one that does not; `"none"`: none, neither these nor those of the functions of '
            "neighbours (the softmax of expected functions), and models keep no covariance",
        ] = "auto",
        decoding: Annotated[
            Literal["refined", "viterbi"],
            '`"refined"`: the highest refined score of each position; `"viterbi"`: the best path, for offset -1 alone',
        ] = "refined",
        max_refinements: Annotated[Whole, "of the normalised scores"] = 100,
        refinement_tolerance: Annotated[Positive, "at which they have settled"] = 1e-6,
        constraints: Constraints = "none",
    ) -> None:
        self.offsets = offsets
        self.bound = bound
        self.scale = scale
        self.learn_scale = learn_scale
        self.learn_kernel = learn_kernel
        self.missing = missing
        self.seed = seed
        self.max_sweeps = max_sweeps
        self.tolerance = tolerance
        self.jitter = jitter
        self.approximation = approximation
        self.rank = rank
        self.variance = variance
        self.decoding = decoding
        self.max_refinements = max_refinements
        self.refinement_tolerance = refinement_tolerance
        self.constraints = constraints
        self.forget()

    def fit(
        self,
        gram: GramOperator,
        labels: Labels,
        *,
        progress: SweepProgress | None = None,
        checkpoint: Checkpoint = NOWHERE,
    ) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none.

        `progress` is called after every sweep with its number, from 1, and the bound. With `learn_kernel` there is no
        `checkpoint`.
        """
        checkpoint = checkpoint if self.resumes else NOWHERE
        self.check_parameters()
        offsets = named_offsets(self.offsets)
        self.forget()
        check_square(gram)
        codes, names = encode_labels(gram, labels)
        codes = drop_labels(codes, float(self.missing), int(self.seed))
        labeled = np.flatnonzero(codes >= 0)
        tunable = require_tunable(gram) if self.learn_kernel else None
        # Rows that are equal at the parameters where a search starts need not be so where it ends.
        rows, groups = distinct_rows(gram, labeled) if tunable is None else distinct_features(tunable.features, labeled)
        neighbours = neighbour_labels(codes, gram.layout.rows.lengths, offsets)[labeled]
        tokens = LabeledTokens(codes[labeled], neighbours, groups, len(rows), len(names))
        self.label_names_, self.label_weights_ = names, label_weights(gram, len(names))
        self.uniform_prior_ = gram.row_prior is None
        weights = self.weights_of(gram.row_prior, gram.shape[0])[rows]
        exact = ExactCovariance(gram, rows, float(self.jitter))
        variances = weights**2 * exact.diagonal()[:, None]
        scale = self._scale(variances)
        require_moderate(scale * variances)
        search = None if self.learn_scale is None else ScaleSearch(shared=self.learn_scale == "shared")
        kernel = None if tunable is None else KernelSearch(tunable, rows, float(self.jitter))
        try:
            covariance = exact if self.rank is None else low_rank_covariance(exact, int(self.rank))
            scales = np.full(len(names), scale)
            inference = Inference(covariance, tokens, weights, scales, self._normalizer())
            stopping = StoppingRule(self.tolerance, self.max_sweeps)
            training = maximise(inference, stopping, search, kernel, progress, checkpoint)
            if isinstance(covariance, LowRankCovariance):
                self.approximation_report_ = approximation_report(exact, covariance, inference)
        except NotPositiveDefiniteError as error:
            raise advised(error, exact, None if self.rank is not None else int(np.bincount(groups).max())) from None
        if kernel is not None:
            gram, self.kernel_parameters_ = kernel.gram, kernel.gram.parameters()
        self._keep(inference, training, rows, gram.shape[0])
        if isinstance(covariance, LowRankCovariance):
            self.keep_landmarks(LowRankPosterior.of(covariance, rows, inference))
        else:
            self._gram, self._gram_rows = gram, np.arange(gram.shape[0])
        return self

    def _scale(self, variances: Matrix) -> float:
        """The number that `scale` says or stands for, given the prior variances of distinct positions at scale 1."""
        if not isinstance(self.scale, str):
            return float(self.scale)
        typical = float(variances.mean())
        return TYPICAL_VARIANCE / typical if np.finfo(float).tiny < typical < np.inf else 1.0

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.approximation is None and self.rank is not None:
            raise LearnerParameterError(f'rank={self.rank!r} means nothing without approximation="nystrom"', key="rank")
        if self.approximation is not None and self.rank is None:
            raise LearnerParameterError('approximation="nystrom" needs a rank', key="rank")
        if self.learn_kernel and self.approximation is not None:
            raise LearnerParameterError(
                "learn_kernel needs the exact covariance", advice="leave approximation out", key="learn_kernel"
            )
        if self.decoding == "viterbi" and named_offsets(self.offsets) != (-1,):
            raise LearnerParameterError(f'decoding="viterbi" needs offsets=(-1,), got {self.offsets}', key="decoding")

    def _keep(self, inference: Inference, training: Training, rows: Indices, n_rows: int) -> None:
        q = inference.posterior
        self.dual_ = np.zeros((n_rows, len(self.label_names_)))
        self.precision_ = np.zeros_like(self.dual_)
        self.dual_[rows], self.precision_[rows] = q.dual, q.precision
        self.coupling_mean_, self.coupling_variance_, self.scale_ = q.coupling_mean, q.coupling_variance, q.scale
        self.elbo_trace_, self.elbo_ = training.trace, training.trace[-1]
        self.sweeps_, self.converged_, self.n_distinct_ = training.sweeps, training.converged, len(rows)

    def predict(self, cross: GramOperator) -> list[list[str]]:
        """Labels of every new structure, by `decoding`."""
        if self.decoding == "refined" and self.constraints == "none":
            codes = self.predict_proba(cross).argmax(axis=1)
            return decode_labels(codes, self.label_names_, cross.layout.cols.lengths)
        if self.decoding == "viterbi":
            scores = self.local_scores(cross)
            couplings = self._couplings()
            steps = self._normalizer().potentials(couplings.mean, couplings.variance)[0]
        else:
            scores = self.decision_scores(cross)
            steps = np.zeros((scores.shape[1], scores.shape[1]))
        allowed = allowed_steps(self.constraints, self.label_names_)
        path, _ = viterbi(scores, steps, cross.layout.cols.structure_starts, allowed=allowed)
        return decode_labels(path, self.label_names_, cross.layout.cols.lengths)

    def predict_proba(self, cross: GramOperator) -> Matrix:
        """Refined normalised scores: label probabilities of every new position, shape (n_columns, n_labels)."""
        return self._refined(cross).probabilities

    def decision_scores(self, cross: GramOperator) -> Matrix:
        """Scores whose softmax is `predict_proba`, shape (n_columns, n_labels)."""
        return self._refined(cross).scores

    def local_scores(self, cross: GramOperator) -> Matrix:
        """What every new position adds to the score of a path, shape (n_columns, n_labels).

        The mean of the local functions, plus half their variance by Jensen's bound.
        """
        moments = self.local_moments(cross)
        return self._normalizer().potentials(*moments.known())

    def local_moments(self, cross: GramOperator) -> Moments:
        """Predictive means and variances of the local functions, each of shape (n_columns, n_labels).

        No variances when `variance="none"`, or when nobody knows k(x, x) of the columns and it is "auto".
        """
        self._check_still_fitting()
        check_cross(cross, len(self.dual_), self.label_names_, uniform_prior=self.uniform_prior_)
        settings = (self.variance, self.jitter)
        if self._last is None or self._last.cross() is not cross or self._last.settings != settings:
            self._last = LastMoments(weakref.ref(cross), settings, self._local_moments(cross))
        return self._last.moments

    def _refined(self, cross: GramOperator) -> Refinement:
        moments = self.local_moments(cross)
        stopping = StoppingRule(self.refinement_tolerance, self.max_refinements)
        result = refine(moments, self._couplings(), cross.layout.cols.lengths, self._normalizer(), stopping)
        self.prediction_report_ = {
            "converged": result.converged,
            "iterations": result.iterations,
            "largest_change": result.largest_change,
            "variances": moments.variances is not None,
        }
        return result

    def _couplings(self) -> Couplings:
        variance = np.zeros_like(self.coupling_variance_) if self.variance == "none" else self.coupling_variance_
        return Couplings(named_offsets(self.offsets), self.coupling_mean_, variance)

    def _normalizer(self) -> Normalizer:
        return JensenNormalizer() if self.bound == "jensen" else ExpectedNormalizer(len(self.label_names_))

    def _check_still_fitting(self) -> None:
        """Parameters may be changed between training and prediction, but not so that they contradict it."""
        self.require_fitted()
        self.check_parameters()
        offsets = named_offsets(self.offsets)
        if len(offsets) != len(self.coupling_mean_):
            raise LearnerError(
                f"offsets is {offsets}, but training had {len(self.coupling_mean_)} of them",
                advice="train again or set it back",
                key="offsets",
            )

    @property
    def resumes(self) -> bool:
        """Unless it learns parameters of the kernel."""
        return not self.learn_kernel

    def traces(self) -> dict[str, list[float]]:
        return {"bound": [float(bound) for bound in self.elbo_trace_]}

    def notes(self) -> list[str]:
        notes = []
        if not self.converged_:
            notes.append(
                f"the bound was still growing when training ended (max_sweeps={self.max_sweeps}); give more sweeps "
                "or a larger tolerance"
            )
        if not self.fitted().get("prediction_report_", {"converged": True})["converged"]:
            other = "more refinements" if self.bound == "expected" else 'bound="expected"'
            notes.append(
                f"the refined scores of some structures did not settle (max_refinements={self.max_refinements}), and "
                f"their labels depend on where that ended; try {other}, fewer offsets, or offsets (-1,) with "
                'decoding="viterbi"'
            )
        return notes
