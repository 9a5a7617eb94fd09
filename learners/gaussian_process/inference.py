"""Variational Gaussian inference of the labeler in its stable parametrisation: a and lam per position and label.

m_j = K_j a_j and V_j = (K_j^-1 + diag lam_j)^-1. No inverse of K_j is ever formed, so K_j may be singular.
Every update is damped: its step is halved until the bound does not decrease.
"""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.checkpoints import State, kept, named, part_of
from gramline.learners.gaussian_process.covariance import Covariance
from gramline.learners.gaussian_process.likelihood import LabeledTokens
from gramline.learners.gaussian_process.normalizer import JensenNormalizer, Normalizer
from gramline.learners.gaussian_process.posterior import Posterior, Scores
from gramline.learners.linear_algebra.factor import Factor

HALVINGS = 6
ROUNDING = 1e-11  # relative decrease of the bound that counts as none
SMALL_PRECISION = 1e-5  # below it 1 - diag(B^-1) has lost too many digits to be divided by lam
COLUMNS_AT_ONCE = 512


class Inference:
    """The bound of one data set. `scores` always belong to `posterior`: every method that changes q replaces them."""

    def __init__(
        self,
        covariance: Covariance,
        tokens: LabeledTokens,
        weights: Matrix,
        scale: Matrix,
        normalizer: Normalizer | None = None,
    ) -> None:
        """`weights` of shape (n, n_labels): K_j = scale_j diag(weights_j) C diag(weights_j)."""
        self.covariance = covariance
        self.tokens = tokens
        self.weights = weights
        self.posterior = Posterior.start(tokens, scale)
        self.normalizer = normalizer or JensenNormalizer()
        self.refresh()

    def refresh(self) -> None:
        """Recompute variances, determinants and scores from the precisions and means."""
        q = self.posterior
        for j in range(self.tokens.n_labels):
            if j and self._is_like_first(j):
                q.variance[:, j], q.log_determinant[j] = q.variance[:, 0], q.log_determinant[0]
            else:
                q.variance[:, j], q.log_determinant[j] = self.covariance_of(j, q.precision[:, j])
        self._rescore()

    def replace_covariance(self, covariance: Covariance) -> None:
        """Recompute all that depends on C; a and lam stay."""
        self.covariance = covariance
        self.posterior.mean = self.local_means(self.posterior.dual)
        self.refresh()

    def rescale(self, factors: Matrix) -> None:
        """Multiply the scales, and with them the means; variances follow with the next precisions or `refresh`."""
        q = self.posterior
        q.scale, q.mean = q.scale * factors, q.mean * factors
        self._rescore()

    def _rescore(self) -> None:
        self.scores = Scores.of(self.posterior, self.tokens, self.normalizer)

    def labels_alike(self) -> bool:
        """Whether all labels have one posterior covariance. They do at the start, which costs one factorisation."""
        return all(self._is_like_first(j) for j in range(self.tokens.n_labels))

    def _is_like_first(self, j: int) -> bool:
        q = self.posterior
        return bool(
            q.scale[j] == q.scale[0]
            and np.array_equal(self.weights[:, j], self.weights[:, 0])
            and np.array_equal(q.precision[:, j], q.precision[:, 0])
        )

    def snapshot(self) -> tuple[Posterior, Scores]:
        """A copy of all that updates change, for `restore`."""
        return self.posterior.copy(), self.scores

    def restore(self, snapshot: tuple[Posterior, Scores]) -> None:
        self.posterior, self.scores = snapshot

    def state(self) -> State:
        """All that updates change; scores are sums of changes, and would not be the same if made anew."""
        of_posterior = {name: kept(array) for name, array in vars(self.posterior).items()}
        return named("posterior", of_posterior) | {"means": self.scores.means, "variances": self.scores.variances}

    def resume(self, state: State) -> None:
        """Go on where `state` was."""
        self.posterior = Posterior(**{name: kept(array) for name, array in part_of(state, "posterior").items()})
        self.scores = Scores(state["means"], state["variances"], self.normalizer)

    def elbo(self) -> float:
        """The bound with all its constants."""
        q = self.posterior
        local = (q.degrees_of_freedom - q.log_determinant - q.quadratic).sum() / 2
        variance = q.coupling_variance
        couplings = (np.log(variance) - variance - q.coupling_mean**2 + 1).sum() / 2
        linear = (self.tokens.label_counts * q.mean).sum() + (self.tokens.pair_counts * q.coupling_mean).sum()
        return float(local + couplings + linear - self.scores.total)

    def is_worse(self, before: float) -> bool:
        """Whether the bound is below `before` by more than rounding (or not a number)."""
        return not self.elbo() >= before - ROUNDING * abs(before)

    def local_means(self, dual: Matrix) -> Matrix:
        """K_j a_j of every label, shape (n, n_labels): one product with C."""
        return self.posterior.scale * self.weights * self.covariance.multiply(self.weights * dual)

    def spread(self, j: int, precision: Matrix) -> Matrix:
        """s o u, shape (n,): B_j = I + diag(s) K_j diag(s) = I + diag(s o u) C diag(s o u), s = sqrt(lam)."""
        return np.asarray(np.sqrt(precision * self.posterior.scale[j]) * self.weights[:, j])

    def covariance_of(self, j: int, precision: Matrix) -> tuple[Matrix, float]:
        """(diag V_j, log |B_j|) for the given lam_j; one factorisation.

        diag V = (1 - diag B^-1) / lam, and where lam is tiny diag K - ||L_B^-1 diag(s) K||^2 per column.
        """
        spread = self.spread(j, precision)
        factor: Factor = self.covariance.factor(spread)
        variance = (1.0 - factor.inverse_diagonal()) / np.maximum(precision, SMALL_PRECISION)
        small = np.flatnonzero(precision < SMALL_PRECISION)
        for first in range(0, len(small), COLUMNS_AT_ONCE):
            chosen = small[first : first + COLUMNS_AT_ONCE]
            explained = factor.quadratic(spread[:, None] * self.covariance.columns(chosen))
            prior = self.covariance.diagonal()[chosen]
            variance[chosen] = self.posterior.scale[j] * self.weights[chosen, j] ** 2 * (prior - explained)
        return np.maximum(variance, 0.0), factor.log_determinant()

    def update_precisions(self, labels: Indices, *, negligible: float = 0.0, compare: bool = True) -> None:
        """lam_j -> what the normaliser wants (p_j by Jensen's bound) for some labels, all by the same step.

        Every trial step costs a factorisation per label. By Jensen's bound p falls with V, which falls with lam:
        dp/dlam is about -p (1 - p) V^2 / 2 for each position by itself, and the Newton step of that keeps large
        variances from swinging. The plain direction, which always ascends, is the second choice.
        Without `compare` the first step is taken as it is: after a change of scale there is nothing to compare with.
        Otherwise a label that would gain less than `negligible` is left out: the bound's slope by lam is -gap / 2
        times dV/dlam, about -V^2 for each position by itself, so the gain is about gap^2 V^2 / 4, summed.
        """
        q, tokens, scores = self.posterior, self.tokens, self.scores
        before = self.elbo()
        gap = tokens.group_sums(scores.slopes.precision[:, labels]) - q.precision[:, labels]
        if compare:
            worth = ((gap * q.variance[:, labels]) ** 2).sum(axis=0) / 4 >= negligible
            labels, gap = labels[worth], gap[:, worth]
        if not len(labels):
            return
        precision, variance = q.precision[:, labels], q.variance[:, labels]
        log_determinant = q.log_determinant[labels]
        swing = tokens.group_sums(scores.slopes.response[:, labels]) * variance**2
        step = 1.0
        for attempt in range(2 * HALVINGS):
            if attempt == HALVINGS:
                step, swing = 0.5 / (1 + swing.max()), np.zeros_like(swing)
            q.precision[:, labels] = precision + step * gap / (1 + swing)
            for j in labels:
                q.variance[:, j], q.log_determinant[j] = self.covariance_of(j, q.precision[:, j])
            moved = scores.variances.copy()
            moved[:, labels] += (q.variance[:, labels] - variance)[tokens.groups]
            self.scores = scores.with_variances(moved)
            if not compare or not self.is_worse(before):
                return
            step /= 2
        q.precision[:, labels], q.variance[:, labels], q.log_determinant[labels] = precision, variance, log_determinant
        self.scores = scores

    def update_coupling_variances(self) -> None:
        """vS_d -> 1 / (1 + sum over tokens with that neighbour of the precision they want)."""
        q, scores, variance = self.posterior, self.scores, self.posterior.coupling_variance
        before = self.elbo()
        move = 1.0 / (1.0 + self.tokens.neighbour_sums(scores.slopes.precision)) - variance
        change = self.tokens.coupling_scores(move)
        step = 1.0
        for _ in range(HALVINGS):
            q.coupling_variance = variance + step * move
            self.scores = scores.with_variances(scores.variances + step * change)
            if not self.is_worse(before):
                return
            step /= 2
        q.coupling_variance, self.scores = variance, scores
