"""What a Gaussian posterior pays for the softmax: E log sum_q exp f_q, for independent f_q ~ N(m_q, v_q) per token.

Jensen's inequality puts log sum_q exp(m_q + v_q / 2) in its place: closed, but far above it once variances are large,
which they are for rare labels. expectation.py has the expectation itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import softmax

from gramline.learners.arrays import Matrix


@dataclass(frozen=True)
class Slopes:
    """The slopes of every token's normaliser."""

    probabilities: Matrix  # d total / d m, shape (n_tokens, n_labels); rows sum to 1
    precision: Matrix  # 2 d total / d v: the lam that the bound wants, shape (n_tokens, n_labels)
    response: Matrix  # d precision / d v where it makes updates swing, else 0, shape (n_tokens, n_labels)


class Hessian(Protocol):
    """W, the second derivatives of every token's normaliser by its means: symmetric and positive semidefinite."""

    def times(self, values: Matrix) -> Matrix:
        """W values, shape (n_tokens, n_labels)."""


class Normalizer(Protocol):
    """E log sum_q exp f_q or a bound of it; all arguments have shape (n_tokens, n_labels)."""

    def totals(self, means: Matrix, variances: Matrix) -> Matrix:
        """The normaliser of every token, shape (n_tokens,)."""

    def slopes(self, means: Matrix, variances: Matrix) -> Slopes: ...

    def hessian(self, means: Matrix, variances: Matrix) -> Hessian: ...

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        """Numbers whose softmax is the probabilities."""

    def potentials(self, means: Matrix, variances: Matrix) -> Matrix:
        """What a label contributes to the score of a whole path."""


class JensenNormalizer:
    """log sum_q exp(m_q + v_q / 2)."""

    def totals(self, means: Matrix, variances: Matrix) -> Matrix:
        # scipy.special.logsumexp takes two to five times as long, and every trial step of the means waits for it.
        scores = means + variances / 2
        top = scores.max(axis=1, keepdims=True)
        return np.asarray((top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))[:, 0])

    def slopes(self, means: Matrix, variances: Matrix) -> Slopes:
        probabilities = softmax(means + variances / 2, axis=1)
        return Slopes(probabilities, probabilities, probabilities * (1 - probabilities) / 2)

    def hessian(self, means: Matrix, variances: Matrix) -> Hessian:
        return SoftmaxHessian(softmax(means + variances / 2, axis=1))

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        return means + variances / 2

    potentials = scores


@dataclass(frozen=True)
class SoftmaxHessian:
    """W = diag p - p p^T."""

    probabilities: Matrix  # p

    def times(self, values: Matrix) -> Matrix:
        weighted = self.probabilities * values
        return np.asarray(weighted - self.probabilities * weighted.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class MatrixHessian:
    """One n_labels x n_labels matrix per token."""

    matrices: Matrix  # shape (n_tokens, n_labels, n_labels)

    def times(self, values: Matrix) -> Matrix:
        return np.asarray(np.matmul(self.matrices, values[:, :, None])[:, :, 0])
