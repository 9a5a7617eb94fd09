"""What a fitted Gaussian-process labeler keeps, how it is saved, and its local functions at new positions."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Indices, Mask, Matrix
from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.covariance import ExactCovariance, submatrix
from gramline.learners.gaussian_process.low_rank import LowRankPosterior
from gramline.learners.gaussian_process.prediction import ExactPosterior, Moments
from gramline.learners.kinds import GramLearner
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.operator import GramOperator


class LastMoments(NamedTuple):
    """Moments of the last cross Gram: asking for its labels and its probabilities factors each label once."""

    cross: weakref.ref[GramOperator]
    settings: tuple[str, float]
    moments: Moments


class FittedLabeler(GramLearner):
    """The state of a `GaussianProcessLabeler`; its parameters are declared there."""

    row_arrays: ClassVar[tuple[str, ...]] = ("dual_", "precision_", "landmark_order_")

    jitter: float
    variance: str

    dual_: Matrix
    precision_: Matrix
    coupling_mean_: Matrix
    coupling_variance_: Matrix
    scale_: Matrix
    elbo_: float
    elbo_trace_: list[float]
    sweeps_: int
    converged_: bool
    n_distinct_: int
    kernel_parameters_: dict[str, float]
    label_names_: tuple[str, ...]
    label_weights_: Matrix  # square root of the label kernel's diagonal, shape (n_labels,)
    uniform_prior_: bool
    landmark_order_: Indices  # 1, 2, ... at the landmarks of a low rank, else 0, shape (n_rows,)
    landmark_triangle_: Matrix  # shape (rank, rank)
    landmark_means_: Matrix  # shape (rank, n_labels)
    landmark_factors_: Matrix  # shape (n_labels, rank, rank)
    approximation_report_: dict[str, Any]
    prediction_report_: dict[str, Any]

    _gram: GramOperator | None  # of the training; None for a low rank, and for a model saved without its covariance
    _gram_rows: Indices  # which of its rows each row of the fitted arrays is
    _factors: dict[int, Factor]  # by label, once a prediction has needed them
    _last: LastMoments | None

    def forget(self) -> None:
        super().forget()
        self._gram, self._gram_rows, self._factors, self._last = None, np.arange(0), {}, None

    @property
    def is_low_rank(self) -> bool:
        return "landmark_order_" in self.fitted()

    def support(self) -> Mask:
        self.require_fitted()
        return self.landmark_order_ > 0 if self.is_low_rank else np.asarray(self.precision_.any(axis=1))

    def restricted(self, rows: Indices) -> Self:
        reduced = super().restricted(rows)
        if self._gram is not None:
            reduced._gram, reduced._gram_rows = self._gram, self._gram_rows[rows]
        return reduced

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Like any learner's; with the training covariance (one triangle) when predictive variances need it."""
        attributes, arrays = super().to_state()
        attributes["fitted"].pop("prediction_report_", None)
        if self._gram is not None and self.variance != "none":
            rows = self._gram_rows[self.support()]
            arrays["covariance"] = submatrix(self._gram, rows, rows)[np.tri(len(rows), dtype=bool)]
        return attributes, arrays

    @classmethod
    def from_state(cls, attributes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        learner = super().from_state(attributes, {key: arrays[key] for key in arrays if key != "covariance"})
        if "covariance" in arrays:
            support = learner.support()
            n = int(support.sum())
            matrix = np.zeros((n, n))
            matrix[np.tri(n, dtype=bool)] = arrays["covariance"]
            matrix += np.tril(matrix, -1).T
            learner._gram, learner._gram_rows = DenseGram(matrix, [n]), np.cumsum(support) - 1
        return learner

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # weak references cannot be pickled

    def keep_landmarks(self, posterior: LowRankPosterior) -> None:
        self.landmark_order_ = np.zeros(len(self.dual_), np.int64)
        self.landmark_order_[posterior.cross_rows] = 1 + np.arange(len(posterior.cross_rows))
        self.landmark_triangle_ = posterior.triangle
        self.landmark_means_ = posterior.means_at_landmarks
        self.landmark_factors_ = posterior.inner

    def _local_moments(self, cross: GramOperator) -> Moments:
        local = self.local_posterior(cross)
        weights = np.sqrt(self.scale_) * self.weights_of(cross.col_prior, cross.shape[1])
        means = local.means(cross, weights)
        if not self._has_variances(cross):
            return Moments(means, None)
        assert cross.col_diagonal is not None
        return Moments(means, local.variances(cross, cross.col_diagonal, weights))

    def _has_variances(self, cross: GramOperator) -> bool:
        if self.variance == "none":
            return False
        problem, advice = "", ""
        if cross.col_diagonal is None:
            problem, advice = "the cross Gram does not know k(x, x) of its columns", "give DenseGram its col_diagonal"
        elif self._gram is None and not self.is_low_rank:
            problem, advice = "the model was saved without its training covariance", 'train with variance="auto"'
        if problem and self.variance == "exact":
            raise LearnerError(f'variance="exact" asks for predictive variances, but {problem}', advice=advice)
        return not problem

    def local_posterior(self, cross: GramOperator) -> ExactPosterior | LowRankPosterior:
        """The local functions, from landmarks or from the training Gram."""
        if self.is_low_rank:
            landmarks = np.flatnonzero(self.landmark_order_)
            order = landmarks[np.argsort(self.landmark_order_[landmarks])]
            return LowRankPosterior(self.landmark_triangle_, order, self.landmark_means_, self.landmark_factors_)
        rows = np.flatnonzero(self.support())
        covariance = None
        if self._gram is not None:
            covariance = ExactCovariance(self._gram, self._gram_rows[rows], float(self.jitter))
        weights = np.sqrt(self.scale_) * self.weights_of(cross.row_prior, cross.shape[0])[rows]
        return ExactPosterior(covariance, rows, self.dual_[rows], self.precision_[rows], weights, self._factors)

    def weights_of(self, prior: Matrix | None, n_rows: int) -> Matrix:
        """n_labels P(y|x) sqrt(ky(y, y)), shape (n_rows, n_labels)."""
        n_labels = len(self.label_names_)
        table = np.ones((n_rows, n_labels)) if prior is None else n_labels * prior
        return table * self.label_weights_
