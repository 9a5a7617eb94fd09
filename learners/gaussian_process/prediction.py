"""From a fitted posterior to new positions: local scores, their refinement by the neighbours, and couplings.

mean = K_*^T a and var = k_** - ||L_B^-1 diag(s) K_*||^2. The refined normalised scores are the normaliser's
probabilities: RNS^0 of (mean, var), RNS^t[l] of (mean[l] + sum_d RNS^{t-1}[l + d] mS_d, var[l] + sum_d RNS^{t-1}[l + d]
vS_d), all positions from the previous sweep. By Jensen's bound that is softmax(mean + var / 2 + sum_d RNS g_d) with
g_d = mS_d + vS_d / 2; otherwise the expected softmax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.gaussian_process.covariance import ExactCovariance, row_blocks
from gramline.learners.gaussian_process.likelihood import neighbours
from gramline.learners.gaussian_process.normalizer import Normalizer
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.linear_algebra.tiled_cholesky import TiledFactor
from gramline.learners.operators.operator import GramOperator

CACHE_BYTES = 1 << 30


class Moments(NamedTuple):
    """Predictive means and variances of the local functions, each of shape (n_new, n_labels)."""

    means: Matrix
    variances: Matrix | None  # None where they are not known

    def known(self) -> tuple[Matrix, Matrix]:
        """Both, with variances of 0 where they are not known."""
        return self.means, np.zeros_like(self.means) if self.variances is None else self.variances


@dataclass(frozen=True)
class ExactPosterior:
    """The local functions from the training Gram itself; u are the weights of K_j = diag(u_j) C diag(u_j).

    `factors` caches the factors of the labels for the next call if they are tiles on disk, or if all of them together
    take at most CACHE_BYTES and no more than one factor may; otherwise each is dropped before the next.
    """

    covariance: ExactCovariance | None  # None: means only
    cross_rows: Indices  # the n positions among the rows of a cross Gram
    dual: Matrix  # a, shape (n, n_labels)
    precision: Matrix  # lam, shape (n, n_labels)
    weights: Matrix  # u including the scale, shape (n, n_labels)
    factors: dict[int, Factor]  # by label

    def means(self, cross: GramOperator, new_weights: Matrix) -> Matrix:
        """K_*^T a of every new position, shape (n_new, n_labels); `new_weights` is u of the new positions."""
        spread = np.zeros((cross.shape[0], self.dual.shape[1]))
        spread[self.cross_rows] = self.weights * self.dual
        return cross.matmul(spread, transpose=True) * new_weights

    def variances(self, cross: GramOperator, prior: Matrix, new_weights: Matrix) -> Matrix:
        """k_** - ||L_B^-1 diag(s) K_*||^2, same shape; `prior` is C(x, x) of the new positions.

        One factorisation per label.
        """
        assert self.covariance is not None
        variances = np.empty((cross.shape[1], self.dual.shape[1]))
        limit = CACHE_BYTES if self.covariance.factor_limit is None else min(CACHE_BYTES, self.covariance.factor_limit)
        fit_into_memory = self.precision.size * len(self.precision) * 8 <= limit
        for j in range(variances.shape[1]):
            spread = np.sqrt(self.precision[:, j]) * self.weights[:, j]
            factor = self.factors.get(j) or self.covariance.factor(spread)
            if isinstance(factor, TiledFactor) or fit_into_memory:
                self.factors[j] = factor
            for cols, block in row_blocks(cross, self.cross_rows):
                variances[cols, j] = prior[cols] - factor.quadratic(spread[:, None] * block)
        # Rounding may bring a position that is fully explained below 0.
        return np.maximum(variances, 0.0) * new_weights**2


@dataclass(frozen=True)
class Refinement:
    """Scores after the last sweep, their softmax, and whether the sweeps converged."""

    scores: Matrix  # shape (n_new, n_labels)
    probabilities: Matrix  # shape (n_new, n_labels)
    iterations: int
    largest_change: float
    converged: bool


@dataclass(frozen=True)
class Couplings:
    """The functions of a neighbour's label, indexed [offset][neighbour][own]."""

    offsets: tuple[int, ...]
    mean: Matrix  # mS, shape (n_offsets, n_labels, n_labels)
    variance: Matrix  # vS, same shape


def refine(
    moments: Moments, couplings: Couplings, lengths: Indices, normalizer: Normalizer, stopping: StoppingRule
) -> Refinement:
    """Refined normalised scores of all structures; strong couplings may cycle, hence the cap.

    Every structure stops by itself, when its largest change is at most the tolerance: its prediction does not depend
    on what else is predicted.
    """
    (means, variances), tolerance = moments.known(), stopping.tolerance
    structure = np.repeat(np.arange(len(lengths)), lengths)
    places = [neighbours(lengths, offset) for offset in couplings.offsets]
    near_means, near_variances = means.copy(), variances.copy()
    probabilities = normalizer.slopes(means, variances).probabilities
    change = np.where(np.asarray(lengths) > 0, np.inf, 0.0)  # of every structure, in its last sweep
    iterations = 0
    while (change > tolerance).any() and iterations < stopping.max_iterations:
        fresh_means, fresh_variances = means.copy(), variances.copy()
        for (here, there), mean, variance in zip(places, couplings.mean, couplings.variance, strict=True):
            fresh_means[here] += probabilities[there] @ mean
            fresh_variances[here] += probabilities[there] @ variance
        moving = (change > tolerance)[structure]
        near_means[moving], near_variances[moving] = fresh_means[moving], fresh_variances[moving]
        previous, probabilities = probabilities, probabilities.copy()
        probabilities[moving] = normalizer.slopes(near_means[moving], near_variances[moving]).probabilities
        change = np.where(change > tolerance, 0.0, change)
        np.maximum.at(change, structure[moving], np.abs(probabilities - previous)[moving].max(axis=1))
        iterations += 1
    largest = float(change.max(initial=0.0))
    scores = normalizer.scores(near_means, near_variances)
    return Refinement(scores, probabilities, iterations, largest, largest <= tolerance)
