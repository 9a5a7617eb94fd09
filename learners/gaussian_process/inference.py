"""Variational Gaussian inference of the labeler in its stable parametrisation: a and lam per position and label.

m_j = K_j a_j and V_j = (K_j^-1 + diag lam_j)^-1; no inverse of K_j is ever formed, so K_j may be singular.
Every update is damped: its step is halved until the bound does not decrease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.covariance import Covariance
from gramline.learners.gaussian_process.likelihood import LabeledTokens
from gramline.learners.gaussian_process.normalizer import Evaluation, JensenNormalizer, Normalizer
from gramline.learners.linear_algebra.cholesky import Factor

HALVINGS = 6
ROUNDING = 1e-11  # relative decrease of the bound that counts as none
SMALL_PRECISION = 1e-5  # below it 1 - diag(B^-1) has lost too many digits to be divided by lam
COLUMNS_AT_ONCE = 512


@dataclass
class Posterior:
    """q: f_j ~ N(m_j, V_j) at n groups of positions, couplings f_d[a, b] ~ N(mS, vS).

    The means are kept as one dual vector per token, alpha: a = its sums over the groups, mS_d[a, :] = its sums over
    the tokens with neighbour label a. At the optimum alpha = [y=j] - p.
    """

    token_dual: Matrix  # alpha, shape (n_tokens, n_labels)
    dual: Matrix  # a, shape (n, n_labels)
    mean: Matrix  # m = K a, shape (n, n_labels)
    precision: Matrix  # lam, shape (n, n_labels)
    variance: Matrix  # diag V, shape (n, n_labels)
    log_determinant: Matrix  # log |B_j|, shape (n_labels,)
    coupling_mean: Matrix  # mS, shape (n_offsets, n_labels, n_labels), indexed [offset][neighbour][own]
    coupling_variance: Matrix  # vS, same shape
    scale: Matrix  # of K_j, shape (n_labels,)

    @classmethod
    def start(cls, tokens: LabeledTokens, scale: Matrix) -> Posterior:
        """Zero means, and the precisions of evenly spread labels."""
        shape = (tokens.n_groups, tokens.n_labels)
        evenly = np.full((len(tokens.labels), tokens.n_labels), 1.0 / tokens.n_labels)
        return cls(
            token_dual=np.zeros_like(evenly),
            dual=np.zeros(shape),
            mean=np.zeros(shape),
            precision=tokens.group_sums(evenly),
            variance=np.zeros(shape),
            log_determinant=np.zeros(tokens.n_labels),
            coupling_mean=np.zeros((tokens.n_offsets, tokens.n_labels, tokens.n_labels)),
            coupling_variance=1.0 / (1.0 + tokens.neighbour_sums(evenly)),
            scale=scale.copy(),
        )

    def copy(self) -> Posterior:
        return replace(self, **{name: value.copy() for name, value in vars(self).items()})

    @property
    def quadratic(self) -> Matrix:
        """a_j^T K_j a_j = m_j^T K_j^-1 m_j, shape (n_labels,)."""
        found: Matrix = np.einsum("ij,ij->j", self.dual, self.mean)
        return found

    @property
    def degrees_of_freedom(self) -> Matrix:
        """sum_t lam V[t, t] = tr(diag(s) B^-1 diag(s) K_j), shape (n_labels,)."""
        found: Matrix = np.einsum("ij,ij->j", self.precision, self.variance)
        return found


class Inference:
    """The bound of one data set; `posterior` and the scores of every token always belong together.

    A token's score of label q, f_q + sum_d f_d[nb_d, q], has mean `score_means` and variance `score_variances` under q,
    both of shape (n_tokens, n_labels); `normalizer` makes probabilities and a bound of them. Both arrays are replaced,
    never written into: what was computed from them is known by their identity.
    """

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
        self.score_means = np.zeros((len(tokens.labels), tokens.n_labels))
        self.score_variances = np.zeros_like(self.score_means)
        self._totals: tuple[Matrix, Matrix, Matrix] | None = None  # (means, variances, totals) of the last time
        self.refresh()

    def refresh(self) -> None:
        """Variances, determinants and scores from the precisions and means."""
        q = self.posterior
        for j in range(self.tokens.n_labels):
            if j and self._like_first(j):
                q.variance[:, j], q.log_determinant[j] = q.variance[:, 0], q.log_determinant[0]
            else:
                q.variance[:, j], q.log_determinant[j] = self.covariance_of(j, q.precision[:, j])
        self.rescore()

    def follow(self) -> None:
        """Everything that hangs on C, after C was changed; a and lam stay."""
        q = self.posterior
        q.mean = q.scale * self.weights * self.covariance.multiply(self.weights * q.dual)
        self.refresh()

    def labels_alike(self) -> bool:
        """Whether all labels have one posterior covariance: so at the start, which then costs one factorisation."""
        return all(self._like_first(j) for j in range(self.tokens.n_labels))

    def _like_first(self, j: int) -> bool:
        q = self.posterior
        return bool(
            q.scale[j] == q.scale[0]
            and np.array_equal(self.weights[:, j], self.weights[:, 0])
            and np.array_equal(q.precision[:, j], q.precision[:, 0])
        )

    def rescore(self) -> None:
        """m_q[t] + sum_d mS_d[nb_d(t), q] and V_q[t, t] + sum_d vS_d[nb_d(t), q]."""
        q, tokens = self.posterior, self.tokens
        self.score_means = q.mean[tokens.groups] + tokens.coupling_scores(q.coupling_mean)
        self.score_variances = q.variance[tokens.groups] + tokens.coupling_scores(q.coupling_variance)

    def kept(self) -> tuple[Posterior, Matrix, Matrix]:
        """A copy of everything that updates change, for `restore`."""
        return self.posterior.copy(), self.score_means.copy(), self.score_variances.copy()

    def restore(self, kept: tuple[Posterior, Matrix, Matrix]) -> None:
        self.posterior, self.score_means, self.score_variances = kept

    def elbo(self) -> float:
        """The bound with all its constants."""
        q = self.posterior
        local = (q.degrees_of_freedom - q.log_determinant - q.quadratic).sum() / 2
        variance = q.coupling_variance
        couplings = (np.log(variance) - variance - q.coupling_mean**2 + 1).sum() / 2
        linear = (self.tokens.label_counts * q.mean).sum() + (self.tokens.pair_counts * q.coupling_mean).sum()
        return float(local + couplings + linear - self.total())

    def total(self) -> float:
        """Sum of the normalisers of all tokens."""
        known = self._totals
        if known is None or known[0] is not self.score_means or known[1] is not self.score_variances:
            self._keep(self.normalizer.totals(self.score_means, self.score_variances))
        assert self._totals is not None
        return float(self._totals[2].sum())

    def evaluate(self) -> Evaluation:
        """Probabilities of every token and what they ask of the precisions."""
        found = self.normalizer.evaluate(self.score_means, self.score_variances)
        self._keep(found.totals)
        return found

    def _keep(self, totals: Matrix) -> None:
        self._totals = (self.score_means, self.score_variances, totals)

    def probabilities(self) -> Matrix:
        """p_t, shape (n_tokens, n_labels)."""
        return self.evaluate().probabilities

    def spread(self, j: int, precision: Matrix) -> Matrix:
        """s o u, shape (n,): B_j = I + diag(s) K_j diag(s) = I + diag(s o u) C diag(s o u), s = sqrt(lam)."""
        spread: Matrix = np.sqrt(precision * self.posterior.scale[j]) * self.weights[:, j]
        return spread

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

    def update_precision(self, j: int, *, negligible: float = 0.0, compare: bool = True) -> None:
        """lam_j -> what the normaliser wants (p_j by Jensen's bound); every trial step costs a factorisation.

        By Jensen's bound p falls with V, which falls with lam: dp/dlam is about -p (1 - p) V^2 / 2 for each position
        by itself, and the Newton step of that keeps large variances from swinging. The plain direction, which always
        ascends, is the second choice.
        With `compare` off the first step is taken as it is: after a change of scale there is nothing to compare with.
        Otherwise a step that would gain less than `negligible` is not taken: the bound's slope by lam is -gap / 2
        times dV/dlam, about -V^2 for each position by itself, so the gain is about gap^2 V^2 / 4, summed.
        """
        q, tokens = self.posterior, self.tokens
        evaluation = self.evaluate()
        before = self.elbo()
        gap = tokens.group_sums(evaluation.precision[:, j]) - q.precision[:, j]
        if compare and ((gap * q.variance[:, j]) ** 2).sum() / 4 < negligible:
            return
        swing = tokens.group_sums(evaluation.response[:, j]) * q.variance[:, j] ** 2
        variances = self.score_variances
        kept = (q.precision[:, j].copy(), q.variance[:, j].copy(), q.log_determinant[j])
        step = 1.0
        for attempt in range(2 * HALVINGS):
            if attempt == HALVINGS:
                step, swing = 0.5 / (1 + swing.max()), np.zeros_like(swing)
            q.precision[:, j] = kept[0] + step * gap / (1 + swing)
            q.variance[:, j], q.log_determinant[j] = self.covariance_of(j, q.precision[:, j])
            self.score_variances = variances.copy()
            self.score_variances[:, j] += (q.variance[:, j] - kept[1])[tokens.groups]
            np.maximum(self.score_variances, 0.0, out=self.score_variances)
            if not compare or not self.is_worse(before):
                return
            step /= 2
        q.precision[:, j], q.variance[:, j], q.log_determinant[j] = kept
        self.score_variances = variances

    def update_coupling_variances(self) -> None:
        """vS_d -> 1 / (1 + sum over tokens with that neighbour of the precision they want)."""
        q = self.posterior
        evaluation = self.evaluate()
        before = self.elbo()
        kept, variances = q.coupling_variance, self.score_variances
        move = 1.0 / (1.0 + self.tokens.neighbour_sums(evaluation.precision)) - kept
        change = self.tokens.coupling_scores(move)
        step = 1.0
        for _ in range(HALVINGS):
            q.coupling_variance = kept + step * move
            self.score_variances = np.maximum(variances + step * change, 0.0)
            if not self.is_worse(before):
                return
            step /= 2
        q.coupling_variance, self.score_variances = kept, variances

    def is_worse(self, before: float) -> bool:
        """Whether the bound is below `before` by more than rounding (or not a number)."""
        return not self.elbo() >= before - ROUNDING * abs(before)
