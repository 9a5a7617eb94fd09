"""The Gaussian posterior q of the local functions and couplings, and the scores that tokens have under it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.likelihood import LabeledTokens
from gramline.learners.gaussian_process.normalizer import Hessian, Normalizer, Slopes


@dataclass
class Posterior:
    """q: f_j ~ N(m_j, V_j) at n groups of positions, couplings f_d[a, b] ~ N(mS, vS).

    One dual vector per token, alpha, gives all means: a = its sums over the groups, mS_d[a, :] = its sums over the
    tokens with neighbour label a. At the optimum alpha = [y=j] - p.
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
        return np.asarray(np.einsum("ij,ij->j", self.dual, self.mean))

    @property
    def degrees_of_freedom(self) -> Matrix:
        """sum_t lam V[t, t] = tr(diag(s) B^-1 diag(s) K_j), shape (n_labels,)."""
        return np.asarray(np.einsum("ij,ij->j", self.precision, self.variance))


@dataclass(frozen=True)
class Scores:
    """Under q the score f_q + sum_d f_d[nb_d, q] of label q at a token has this mean and this variance.

    A change of q makes a new record. So the normaliser is computed at most once per record, and never out of date.
    """

    means: Matrix  # shape (n_tokens, n_labels)
    variances: Matrix  # shape (n_tokens, n_labels)
    normalizer: Normalizer

    @classmethod
    def of(cls, posterior: Posterior, tokens: LabeledTokens, normalizer: Normalizer) -> Scores:
        """m_q[t] + sum_d mS_d[nb_d(t), q] and V_q[t, t] + sum_d vS_d[nb_d(t), q]."""
        means = posterior.mean[tokens.groups] + tokens.coupling_scores(posterior.coupling_mean)
        variances = posterior.variance[tokens.groups] + tokens.coupling_scores(posterior.coupling_variance)
        return cls(means, variances, normalizer)

    def with_means(self, means: Matrix) -> Scores:
        return Scores(means, self.variances, self.normalizer)

    def with_variances(self, variances: Matrix) -> Scores:
        """Rounding may have made a variance negative; it becomes 0."""
        return Scores(self.means, np.maximum(variances, 0.0), self.normalizer)

    @cached_property
    def total(self) -> float:
        """Sum of the normalisers of all tokens."""
        return float(self.normalizer.totals(self.means, self.variances).sum())

    @cached_property
    def slopes(self) -> Slopes:
        return self.normalizer.slopes(self.means, self.variances)

    def hessian(self) -> Hessian:
        return self.normalizer.hessian(self.means, self.variances)
