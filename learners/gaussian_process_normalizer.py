"""What a Gaussian posterior pays for the softmax: E log sum_q exp f_q, for independent f_q ~ N(m_q, v_q) per token.

Jensen's inequality puts log sum_q exp(m_q + v_q / 2) in its place: closed, but far above it once variances are large,
which they are for rare labels. `ExpectedNormalizer` takes the expectation itself over a fixed set of draws, so the
bound stays a smooth deterministic function, only tighter; docs/design-notes.md says what that changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.learners.gaussian_process_likelihood import softmax

Matrix = NDArray[np.float64]

DRAWS = 64  # at least
ROTATED = 4  # draws that are rotated, at least
SMALL_DEVIATION = 1e-4  # below it the quotient of two differences would be mostly rounding
SMALLEST_PRECISION = 1e-12  # every position keeps one, and with it its place in a model


@dataclass(frozen=True)
class Evaluation:
    """The normaliser of every token and its slopes."""

    totals: Matrix  # shape (n_tokens,)
    probabilities: Matrix  # d total / d m, shape (n_tokens, n_labels); rows sum to 1
    precision: Matrix  # 2 d total / d v: the lam that the bound wants, shape (n_tokens, n_labels)
    response: Matrix  # d precision / d v where it makes updates swing, else 0, shape (n_tokens, n_labels)


class Roots(Protocol):
    """R of the Hessian by the means, R R^T, per token."""

    def times(self, values: Matrix) -> Matrix:
        """R values, shape (n_tokens, n_labels)."""
        ...

    def transposed(self, values: Matrix) -> Matrix:
        """R^T values."""
        ...


class Normalizer(Protocol):
    """E log sum_q exp f_q or a bound of it; all arguments have shape (n_tokens, n_labels)."""

    def totals(self, means: Matrix, variances: Matrix) -> Matrix: ...

    def evaluate(self, means: Matrix, variances: Matrix) -> Evaluation: ...

    def roots(self, means: Matrix, variances: Matrix) -> Roots: ...

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        """Numbers whose softmax are the probabilities."""
        ...

    def potentials(self, means: Matrix, variances: Matrix) -> Matrix:
        """What a label contributes to the score of a whole path."""
        ...


def normalizer_of(bound: str, n_labels: int) -> Normalizer:
    return JensenNormalizer() if bound == "jensen" else ExpectedNormalizer(n_labels)


class JensenNormalizer:
    """log sum_q exp(m_q + v_q / 2)."""

    def totals(self, means: Matrix, variances: Matrix) -> Matrix:
        return softmax(means + variances / 2)[1]

    def evaluate(self, means: Matrix, variances: Matrix) -> Evaluation:
        probabilities, totals = softmax(means + variances / 2)
        return Evaluation(totals, probabilities, probabilities, probabilities * (1 - probabilities) / 2)

    def roots(self, means: Matrix, variances: Matrix) -> Roots:
        return SoftmaxRoots(np.sqrt(softmax(means + variances / 2)[0]))

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        return means + variances / 2

    def potentials(self, means: Matrix, variances: Matrix) -> Matrix:
        return means + variances / 2


class ExpectedNormalizer:
    """The mean of log sum_q exp(m_q + sqrt(v_q) e_q) over fixed draws e."""

    def __init__(self, n_labels: int) -> None:
        self.draws = normal_draws(n_labels)

    def totals(self, means: Matrix, variances: Matrix) -> Matrix:
        totals = np.zeros(len(means))
        expected_totals(means, np.sqrt(variances), self.draws, totals)
        return totals

    def evaluate(self, means: Matrix, variances: Matrix) -> Evaluation:
        deviations = np.sqrt(variances)
        totals, probabilities, slopes = np.zeros(len(means)), np.zeros_like(means), np.zeros_like(means)
        expected_softmax(means, deviations, self.draws, totals, probabilities, slopes)
        flat = probabilities * (1 - probabilities)
        precision = np.where(deviations > SMALL_DEVIATION, slopes / np.maximum(deviations, SMALL_DEVIATION), flat)
        # A mean over few draws may slope the wrong way; the true one never does.
        return Evaluation(totals, probabilities, np.maximum(precision, SMALLEST_PRECISION), np.zeros_like(means))

    def roots(self, means: Matrix, variances: Matrix) -> Roots:
        hessians = np.zeros((*means.shape, means.shape[1]))
        expected_hessians(means, np.sqrt(variances), self.draws, hessians)
        values, vectors = np.linalg.eigh(hessians)
        return MatrixRoots(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        found: Matrix = np.log(np.maximum(self.evaluate(means, variances).probabilities, np.finfo(float).tiny))
        return found

    def potentials(self, means: Matrix, variances: Matrix) -> Matrix:  # noqa: ARG002 - the score of a path is that of the mean functions
        return means


@lru_cache(maxsize=32)
def normal_draws(n_labels: int) -> Matrix:
    """Pairs of opposite draws whose mean is 0 and whose covariance is the identity, shape (n_draws, n_labels).

    Every draw comes with all its rotations, so that no label's place gives it an advantage.
    """
    few = np.random.default_rng(0).standard_normal((max(-(-DRAWS // (2 * n_labels)), ROTATED), n_labels))
    half = np.concatenate([np.roll(few, shift, axis=1) for shift in range(n_labels)])
    values, vectors = np.linalg.eigh(half.T @ half / len(half))
    half = half @ (vectors / np.sqrt(values)) @ vectors.T
    return np.concatenate([half, -half])


@dataclass(frozen=True)
class SoftmaxRoots:
    """R = diag(sqrt p) (I - sqrt p sqrt p^T): a projection, because p sums to 1."""

    root: Matrix  # sqrt p

    def times(self, values: Matrix) -> Matrix:
        return self.root * self._centred(values)

    def transposed(self, values: Matrix) -> Matrix:
        return self._centred(self.root * values)

    def _centred(self, values: Matrix) -> Matrix:
        centred: Matrix = values - self.root * (self.root * values).sum(axis=1, keepdims=True)
        return centred


@dataclass(frozen=True)
class MatrixRoots:
    """One n_labels x n_labels matrix per token."""

    matrices: Matrix  # shape (n_tokens, n_labels, n_labels)

    def times(self, values: Matrix) -> Matrix:
        return np.asarray(np.matmul(self.matrices, values[:, :, None])[:, :, 0])

    def transposed(self, values: Matrix) -> Matrix:
        return np.asarray(np.matmul(values[:, None, :], self.matrices)[:, 0])


# The three loops take the same exponentials, each for itself: shared as a function they took a third longer with few
# labels, and inlined by numba 0.68 expected_softmax still a quarter.
@jit
def expected_totals(means: Matrix, deviations: Matrix, draws: Matrix, totals: Matrix) -> None:
    """totals[t] = mean over the draws of the logsumexp."""
    n_labels = means.shape[1]
    values = np.empty(n_labels)
    for t in range(len(means)):
        for draw in draws:
            top = -np.inf
            for q in range(n_labels):
                values[q] = means[t, q] + deviations[t, q] * draw[q]
                top = max(top, values[q])
            total = 0.0
            for q in range(n_labels):
                total += np.exp(values[q] - top)
            totals[t] += top + np.log(total)
        totals[t] /= len(draws)


@jit
def expected_softmax(
    means: Matrix, deviations: Matrix, draws: Matrix, totals: Matrix, probabilities: Matrix, slopes: Matrix
) -> None:
    """The same, with the mean softmax p and slopes = mean of p e, both of shape (n_tokens, n_labels)."""
    n_labels = means.shape[1]
    values = np.empty(n_labels)
    for t in range(len(means)):
        for draw in draws:
            top = -np.inf
            for q in range(n_labels):
                values[q] = means[t, q] + deviations[t, q] * draw[q]
                top = max(top, values[q])
            total = 0.0
            for q in range(n_labels):
                values[q] = np.exp(values[q] - top)
                total += values[q]
            totals[t] += top + np.log(total)
            for q in range(n_labels):
                share = values[q] / total
                probabilities[t, q] += share
                slopes[t, q] += share * draw[q]
        totals[t] /= len(draws)
        for q in range(n_labels):
            probabilities[t, q] /= len(draws)
            slopes[t, q] /= len(draws)


@jit
def expected_hessians(means: Matrix, deviations: Matrix, draws: Matrix, hessians: Matrix) -> None:
    """hessians[t] = mean of diag p - p p^T."""
    n_labels = means.shape[1]
    values = np.empty(n_labels)
    for t in range(len(means)):
        for draw in draws:
            top = -np.inf
            for q in range(n_labels):
                values[q] = means[t, q] + deviations[t, q] * draw[q]
                top = max(top, values[q])
            total = 0.0
            for q in range(n_labels):
                values[q] = np.exp(values[q] - top)
                total += values[q]
            for q in range(n_labels):
                share = values[q] / total / len(draws)
                hessians[t, q, q] += share
                for r in range(n_labels):
                    hessians[t, q, r] -= share * values[r] / total
