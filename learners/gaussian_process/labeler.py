"""The Gaussian-process pseudo-likelihood labeler: confidences, missing labels, any set of neighbour offsets."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING
from gramline.learners.arrays import Matrix
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.errors import LearnerError, NotPositiveDefiniteError
from gramline.learners.gaussian_process.covariance import (
    ExactCovariance,
    distinct_features,
    distinct_rows,
    smallest_eigenvalue,
    submatrix,
)
from gramline.learners.gaussian_process.expectation import ExpectedNormalizer
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.kernel_search import KernelSearch, require_tunable
from gramline.learners.gaussian_process.likelihood import LabeledTokens, neighbour_labels
from gramline.learners.gaussian_process.low_rank import (
    LowRankCovariance,
    LowRankPosterior,
    approximation_report,
    low_rank,
)
from gramline.learners.gaussian_process.normalizer import JensenNormalizer, Normalizer
from gramline.learners.gaussian_process.parameters import check_parameters, named_offsets
from gramline.learners.gaussian_process.prediction import Couplings, ExactPosterior, LocalPosterior, Refinement, refine
from gramline.learners.gaussian_process.scale_search import ScaleSearch
from gramline.learners.gaussian_process.training import Progress, maximise
from gramline.learners.kinds import GramLearner
from gramline.learners.labels import Labels, decode_labels, encode_labels
from gramline.learners.linear_algebra.cholesky import Factor
from gramline.learners.operators.checks import check_cross, check_square
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.operator import GramOperator

LARGEST_VARIANCE = 1e100


class GaussianProcessLabeler(GramLearner):
    """p(y_t | neighbours) = softmax over q of f_q(t) + sum_d f_d[nb_d(t), q], local f_q ~ GP(0, scale_q K).

    Trained by maximising a variational bound of the pseudo-likelihood; it never decreases along `elbo_trace_`.
    Positions without a label add nothing and are left out. Positions with identical Gram rows (with `learn_kernel`,
    identical features) share their latent values; their sums stand at the first of them. The Gram's prior P(y|x) enters
    as K_j = n_labels^2 P_j K P_j (so that a uniform prior changes nothing), a diagonal label kernel as a factor.

    offsets          neighbours that a label depends on, or "GPSL1", "GPSL2", "GPSL4"
    bound            of E log sum_q exp f_q: "jensen", the published log sum_q exp(m_q + v_q / 2), too loose when
                     variances are large; "expected" takes the expectation itself, over fixed draws: often better
    scale            of K; with learn_scale="shared" or "per_label" only where the search starts
    learn_kernel     also the parameters of an `ObservationGram`, alternately; `kernel_parameters_` says which
    missing, seed    forget that fraction of the labels, drawn with the seed; a larger one forgets the same and more
    max_sweeps, tolerance     stop at a relative increase of the bound of at most `tolerance`
    jitter           added to the diagonal of the training Gram
    approximation    "nystrom": K of rank `rank` by pivoted Cholesky, plus its missing diagonal; N rank^2 instead of N^3
    variance         "auto": scores include predictive variances when the cross Gram knows k(x, x) of its columns;
                     "exact": an error when it does not; "none": means only, and models keep no covariance
    decoding         "refined": argmax of the refined normalised scores; "viterbi": best path, offsets (-1,) only
    max_refinements, refinement_tolerance      of those scores; `prediction_report_` says how it ended
    """

    name: ClassVar[str] = "gaussian-process"
    factors_by_tiles: ClassVar[bool] = True
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_", "precision_", "landmark_order_")

    dual_: Matrix  # a, shape (n_rows, n_labels)
    precision_: Matrix  # lam, shape (n_rows, n_labels)
    coupling_mean_: Matrix  # shape (n_offsets, n_labels, n_labels), indexed [offset][neighbour][own]
    coupling_variance_: Matrix
    scale_: Matrix  # shape (n_labels,)
    elbo_: float
    elbo_trace_: list[float]  # at the start and after every sweep
    sweeps_: int
    converged_: bool
    n_distinct_: int  # distinct labeled positions
    kernel_parameters_: dict[str, float]  # learned ones; new positions must be compared with these
    label_names_: tuple[str, ...]
    landmark_order_: NDArray[np.int64]  # of a low rank: 1, 2, ... at the landmarks, else 0, shape (n_rows,)
    landmark_triangle_: Matrix  # shape (rank, rank)
    landmark_means_: Matrix  # shape (rank, n_labels)
    landmark_factors_: Matrix  # shape (n_labels, rank, rank)
    approximation_report_: dict[str, Any]  # rank, and errors against the exact covariance on a subset
    label_weights_: Matrix  # square root of the label kernel's diagonal, shape (n_labels,)
    uniform_prior_: bool
    prediction_report_: dict[str, Any]  # of the last prediction

    def __init__(
        self,
        offsets: Sequence[int] | str = (-1, 1),
        bound: Literal["expected", "jensen"] = "jensen",
        scale: float = 1.0,
        learn_scale: Literal["shared", "per_label"] | None = None,
        learn_kernel: bool = False,
        missing: float = 0.0,
        seed: int = 0,
        max_sweeps: int = 50,
        tolerance: float = 1e-6,
        jitter: float = 0.0,
        approximation: Literal["nystrom"] | None = None,
        rank: int | None = None,
        variance: Literal["auto", "exact", "none"] = "auto",
        decoding: Literal["refined", "viterbi"] = "refined",
        max_refinements: int = 100,
        refinement_tolerance: float = 1e-6,
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
        self._factors: dict[int, Factor] = {}  # of the labels, once a prediction has needed them
        # Moments of the last cross Gram: labels and probabilities of the same one cost one factorisation per label.
        self._last: tuple[weakref.ref[GramOperator], tuple[str, float], tuple[Matrix, Matrix | None]] | None = None

    def fit(self, gram: GramOperator, labels: Labels, *, progress: Progress | None = None) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure, None where there is none."""
        offsets = check_parameters(self.get_params())
        self._forget()
        check_square(gram)
        codes, names = encode_labels(gram, labels)
        codes = _forgotten(codes, float(self.missing), int(self.seed))
        labeled = np.flatnonzero(codes >= 0)
        tunable = require_tunable(gram) if self.learn_kernel else None
        # Rows that are equal at the parameters where a search starts need not be so where it ends.
        rows, groups = distinct_rows(gram, labeled) if tunable is None else distinct_features(tunable.features, labeled)
        neighbours = neighbour_labels(codes, gram.layout.rows.lengths, offsets)[labeled]
        tokens = LabeledTokens(codes[labeled], neighbours, groups, len(rows), len(names))
        self.label_names_ = names
        self.label_weights_ = _label_weights(gram, len(names))
        self.uniform_prior_ = gram.row_prior is None
        weights = self._weights(gram.row_prior, gram.shape[0])[rows]
        exact = ExactCovariance(gram, rows, float(self.jitter))
        _check_size(float(self.scale) * (weights**2 * exact.diagonal()[:, None]))
        search = None if self.learn_scale is None else ScaleSearch(shared=self.learn_scale == "shared")
        kernel = None if tunable is None else KernelSearch(tunable, rows, float(self.jitter))
        try:
            covariance = exact if self.approximation is None else self._low_rank(exact)
            scales = np.full(len(names), float(self.scale))
            inference = Inference(covariance, tokens, weights, scales, self._normalizer())
            training = maximise(inference, self.max_sweeps, self.tolerance, search, progress, kernel)
            q = inference.posterior
            if isinstance(covariance, LowRankCovariance):
                scaled = np.sqrt(q.scale) * weights
                self.approximation_report_ = approximation_report(exact, covariance, scaled, q.dual, q.precision)
        except NotPositiveDefiniteError as error:
            raise self._advised(error, exact, tokens) from None
        if kernel is not None:
            gram, self.kernel_parameters_ = kernel.gram, kernel.gram.parameters()
        self.dual_ = np.zeros((gram.shape[0], len(names)))
        self.precision_ = np.zeros_like(self.dual_)
        self.dual_[rows], self.precision_[rows] = q.dual, q.precision
        self.coupling_mean_, self.coupling_variance_, self.scale_ = q.coupling_mean, q.coupling_variance, q.scale
        self.elbo_trace_, self.elbo_ = training.trace, training.trace[-1]
        self.sweeps_, self.converged_, self.n_distinct_ = training.sweeps, training.converged, len(rows)
        if isinstance(covariance, LowRankCovariance):
            self._keep_landmarks(covariance, rows, inference)
        else:
            self._gram, self._gram_rows = gram, np.arange(gram.shape[0])
        return self

    def decision_scores(self, cross: GramOperator) -> Matrix:
        """Scores whose softmax is `predict_proba`, shape (n_columns, n_labels)."""
        return self._refined(cross).scores

    def predict_proba(self, cross: GramOperator) -> Matrix:
        """Refined normalised scores: label probabilities of every new position, shape (n_columns, n_labels)."""
        return self._refined(cross).probabilities

    def predict(self, cross: GramOperator) -> list[list[str]]:
        """Labels of every new structure, by `decoding`."""
        if self.decoding == "viterbi":
            base = self.local_scores(cross)
            table = self._normalizer().potentials(self.coupling_mean_, self.coupling_variance_)[0]
            codes = viterbi(base, table, cross.layout.cols.structure_starts)[0].astype(np.int64)
        else:
            codes = self.predict_proba(cross).argmax(axis=1)
        return decode_labels(codes, self.label_names_, cross.layout.cols.lengths)

    def local_scores(self, cross: GramOperator) -> Matrix:
        """What every new position adds to the score of a path, shape (n_columns, n_labels).

        The mean of the local functions, plus half their variance by Jensen's bound.
        """
        means, variances = self.local_moments(cross)
        return self._normalizer().potentials(means, np.zeros_like(means) if variances is None else variances)

    def local_moments(self, cross: GramOperator) -> tuple[Matrix, Matrix | None]:
        """Predictive means and variances of the local functions, each of shape (n_columns, n_labels).

        No variances when `variance="none"`, or when nobody knows k(x, x) of the columns and it is "auto".
        """
        self._check_still_fitting()
        check_cross(cross, len(self.dual_), self.label_names_, uniform_prior=self.uniform_prior_)
        settings = (self.variance, self.jitter)
        if self._last is None or self._last[0]() is not cross or self._last[1] != settings:
            self._last = weakref.ref(cross), settings, self._local_moments(cross)
        return self._last[2]

    def _local_moments(self, cross: GramOperator) -> tuple[Matrix, Matrix | None]:
        local = self._local_posterior(cross)
        weights = np.sqrt(self.scale_) * self._weights(cross.col_prior, cross.shape[1])
        means = local.means(cross, weights)
        if not self._has_variances(cross):
            return means, None
        assert cross.col_diagonal is not None
        return means, local.variances(cross, cross.col_diagonal, weights)

    def traces(self) -> dict[str, list[float]]:
        return {"bound": [float(bound) for bound in self.elbo_trace_]}

    def notes(self) -> list[str]:
        found = []
        if not self.converged_:
            found.append(
                f"the bound was still growing when training ended (max_sweeps={self.max_sweeps}); give more sweeps "
                "or a larger tolerance"
            )
        report = getattr(self, "prediction_report_", None)
        if report is not None and not report["converged"]:
            other = "more refinements" if self.bound == "expected" else 'bound="expected"'
            found.append(
                f"the refined scores of some structures did not settle (max_refinements={self.max_refinements}), and "
                f"their labels depend on where that ended; try {other}, fewer offsets, or offsets (-1,) with "
                'decoding="viterbi"'
            )
        return found

    # --- state -------------------------------------------------------------------------------------------------

    def support(self) -> NDArray[np.bool_]:
        self.require_fitted()
        needed = self.landmark_order_ > 0 if self._is_low_rank() else self.precision_.any(axis=1)
        return np.asarray(needed, bool)

    def restricted(self, rows: NDArray[np.integer]) -> Self:
        reduced = super().restricted(rows)
        if hasattr(self, "_gram"):
            reduced._gram, reduced._gram_rows = self._gram, self._gram_rows[rows]
        return reduced

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Like any learner's; with the training covariance (one triangle) when predictive variances need it."""
        attributes, arrays = super().to_state()
        attributes["fitted"].pop("prediction_report_", None)
        if hasattr(self, "_gram") and self.variance != "none":
            chosen = self._gram_rows[self.support()]
            arrays["covariance"] = submatrix(self._gram, chosen, chosen)[np.tri(len(chosen), dtype=bool)]
        return attributes, arrays

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # weak references do not travel

    @classmethod
    def from_state(cls, attributes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        rest = {key: array for key, array in arrays.items() if key != "covariance"}
        learner = super().from_state(attributes, rest)
        if "covariance" in arrays:
            chosen = learner.support()
            n = int(chosen.sum())
            matrix = np.zeros((n, n))
            matrix[np.tri(n, dtype=bool)] = arrays["covariance"]
            matrix += np.tril(matrix, -1).T
            learner._gram, learner._gram_rows = DenseGram(matrix, [n]), np.cumsum(chosen) - 1
        return learner

    def _forget(self) -> None:
        for key in [*self.fitted(), "_gram", "_gram_rows"]:
            self.__dict__.pop(key, None)
        self._factors, self._last = {}, None

    # --- pieces ------------------------------------------------------------------------------------------------

    def _low_rank(self, exact: ExactCovariance) -> LowRankCovariance:
        """The jitter stays outside of the rank, unless it is what makes C positive semidefinite."""
        assert self.rank is not None
        plain = ExactCovariance(exact.gram, exact.rows)
        try:
            return LowRankCovariance(low_rank(plain, int(self.rank)), exact.jitter)
        except NotPositiveDefiniteError:
            if not exact.jitter:
                raise
            return LowRankCovariance(low_rank(exact, int(self.rank)))

    def _advised(
        self, error: NotPositiveDefiniteError, exact: ExactCovariance, tokens: LabeledTokens
    ) -> NotPositiveDefiniteError:
        """The same error with the row of the Gram, and the jitter or the scale that would do."""
        row, lowest = int(exact.rows[error.row]), min(smallest_eigenvalue(exact), -np.finfo(float).tiny)
        scale = f", or, if that is only rounding, a scale below {0.9 / (-lowest * tokens.group_sizes.max()):.2g}"
        return NotPositiveDefiniteError(
            f"the Gram matrix is not positive semidefinite: pivot {error.pivot:.3g} at row {row}, smallest eigenvalue "
            f"about {lowest:.3g}; jitter={-1.1 * lowest:.2g} would do" + (scale if self.approximation is None else ""),
            row,
            error.pivot,
        )

    def _keep_landmarks(self, covariance: LowRankCovariance, rows: NDArray[np.int64], inference: Inference) -> None:
        q, found = inference.posterior, covariance.decomposition
        self.landmark_order_ = np.zeros(len(self.dual_), np.int64)
        self.landmark_order_[rows[found.pivots]] = 1 + np.arange(len(found.pivots))
        self.landmark_triangle_ = found.triangle
        self.landmark_means_ = covariance.basis.T @ (np.sqrt(q.scale) * inference.weights * q.dual)
        spreads = [inference.spread(j, q.precision[:, j]) for j in range(len(q.scale))]
        self.landmark_factors_ = np.array([covariance.factor(spread).inner.lower() for spread in spreads])

    def _is_low_rank(self) -> bool:
        return hasattr(self, "landmark_order_")

    def _local_posterior(self, cross: GramOperator) -> LocalPosterior:
        """The local functions, from landmarks or from the training Gram."""
        if self._is_low_rank():
            landmarks = np.flatnonzero(self.landmark_order_)
            order = landmarks[np.argsort(self.landmark_order_[landmarks])]
            return LowRankPosterior(self.landmark_triangle_, order, self.landmark_means_, self.landmark_factors_)
        rows = np.flatnonzero(self.support())
        covariance = None
        if hasattr(self, "_gram"):
            covariance = ExactCovariance(self._gram, self._gram_rows[rows], float(self.jitter))
        weights = np.sqrt(self.scale_) * self._weights(cross.row_prior, cross.shape[0])[rows]
        return ExactPosterior(covariance, rows, self.dual_[rows], self.precision_[rows], weights, self._factors)

    def _check_still_fitting(self) -> None:
        """Parameters may be changed between training and prediction, but not so that they contradict it."""
        self.require_fitted()
        offsets = check_parameters(self.get_params())
        if len(offsets) != len(self.coupling_mean_):
            raise LearnerError(
                f"offsets is {offsets}, but training had {len(self.coupling_mean_)} of them; train again or set it back"
            )

    def _has_variances(self, cross: GramOperator) -> bool:
        if self.variance == "none":
            return False
        missing = None
        if cross.col_diagonal is None:
            missing = "the cross Gram does not know k(x, x) of its columns: give DenseGram its col_diagonal"
        elif not self._is_low_rank() and not hasattr(self, "_gram"):
            missing = "the model was kept without its training covariance"
        if missing is not None and self.variance == "exact":
            raise LearnerError(f'predictive variances were asked for (variance="exact"), but {missing}')
        return missing is None

    def _refined(self, cross: GramOperator) -> Refinement:
        means, variances = self.local_moments(cross)
        result = refine(
            means,
            np.zeros_like(means) if variances is None else variances,
            Couplings(named_offsets(self.offsets), self.coupling_mean_, self.coupling_variance_),
            cross.layout.cols.lengths,
            self._normalizer(),
            self.refinement_tolerance,
            self.max_refinements,
        )
        self.prediction_report_ = {
            "converged": result.converged,
            "iterations": result.iterations,
            "largest_change": result.largest_change,
            "variances": variances is not None,
        }
        return result

    def _normalizer(self) -> Normalizer:
        return JensenNormalizer() if self.bound == "jensen" else ExpectedNormalizer(len(self.label_names_))

    def _weights(self, prior: Matrix | None, n_rows: int) -> Matrix:
        """n_labels P(y|x) sqrt(ky(y, y)), shape (n_rows, n_labels)."""
        n_labels = len(self.label_names_)
        table = np.ones((n_rows, n_labels)) if prior is None else n_labels * prior
        return table * self.label_weights_


def _forgotten(codes: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.int64]:
    """Codes with so many of the labels missing; at least one label stays."""
    labeled = np.flatnonzero(codes >= 0)
    order = np.random.default_rng(seed).permutation(len(labeled))
    left = codes.copy()
    left[labeled[order[: min(round(fraction * len(labeled)), len(labeled) - 1)]]] = MISSING
    return left


def _check_size(prior: Matrix) -> None:
    """Prior variances of the local functions, shape (n, n_labels): their products must fit into float64."""
    largest = float(prior.max(initial=0.0))
    if not largest <= LARGEST_VARIANCE:
        raise LearnerError(
            f"scale times the diagonal of the Gram matrix reaches {largest:.3g}, too much for float64; give a scale "
            f"that keeps it below {LARGEST_VARIANCE:g}, or normalize the kernel"
        )


def _label_weights(gram: GramOperator, n_labels: int) -> Matrix:
    if gram.label_kernel is None:
        return np.ones(n_labels)
    diagonal = np.diagonal(gram.label_kernel)
    if np.any(gram.label_kernel != np.diag(diagonal)):
        raise LearnerError(
            "the Gaussian-process labeler has independent functions per label and needs a diagonal label kernel; "
            "leave label_kernel out"
        )
    return np.sqrt(diagonal)
