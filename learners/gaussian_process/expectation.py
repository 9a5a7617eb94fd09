"""The normaliser that is the expectation itself, E log sum_q exp f_q, taken over a fixed set of draws.

So the bound stays a smooth deterministic function, only tighter than Jensen's; docs/design-notes.md says what that
changes. Draws come in opposite pairs e, -e: with u_q = exp(sqrt(v_q) e_q), the pair needs exp(m_q) u_q and
exp(m_q) / u_q. The powers u are cached: an update changes means, or the variances of one label.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.expectation_loops import (
    ScoreDraws,
    expected_hessians,
    expected_softmax,
    expected_totals,
)
from gramline.learners.gaussian_process.normalizer import Hessian, MatrixHessian, Slopes

DRAWS = 64  # at least
ROTATED = 4  # draws that are rotated, at least
MANY_LABELS = 16  # above it the rotations of two draws are enough, if these are stratified
SMALL_DEVIATION = 1e-4  # below it the quotient of two differences would be mostly rounding
SMALLEST_PRECISION = 1e-12  # every position keeps one, and with it its place in a model
LARGEST_EXPONENT = 300.0  # of a power: a pair's two sums and their product stay far from overflow
CACHE_BYTES = 1 << 26  # of powers; more tokens than that are taken part by part, and nothing is cached


class ExpectedNormalizer:
    """The mean of log sum_q exp(m_q + sqrt(v_q) e_q) over fixed draws e."""

    def __init__(self, n_labels: int, *, cache_bytes: int = CACHE_BYTES) -> None:
        draws = normal_draws(n_labels)
        self._halves = np.ascontiguousarray(draws[: len(draws) // 2].T)  # one of every pair, a row per label
        self._at_once = max(1, cache_bytes // self._halves.nbytes)
        self._powers = Powers(self._halves)

    def totals(self, means: Matrix, variances: Matrix) -> Matrix:
        totals = np.zeros(len(means))
        for part, draws in self._parts(means, np.sqrt(variances)):
            expected_totals(draws, totals[part])
        return totals

    def slopes(self, means: Matrix, variances: Matrix) -> Slopes:
        probabilities, slopes = np.zeros_like(means), np.zeros_like(means)
        deviations = np.sqrt(variances)
        for part, draws in self._parts(means, deviations):
            expected_softmax(draws, probabilities[part], slopes[part])
        flat = probabilities * (1 - probabilities)
        precision = np.where(deviations > SMALL_DEVIATION, slopes / np.maximum(deviations, SMALL_DEVIATION), flat)
        # A mean over few draws may slope the wrong way; the true one never does.
        return Slopes(probabilities, np.maximum(precision, SMALLEST_PRECISION), np.zeros_like(means))

    def hessian(self, means: Matrix, variances: Matrix) -> Hessian:
        hessians = np.zeros((*means.shape, means.shape[1]))
        for part, draws in self._parts(means, np.sqrt(variances)):
            expected_hessians(draws, hessians[part])
        return MatrixHessian(hessians)

    def scores(self, means: Matrix, variances: Matrix) -> Matrix:
        probabilities = self.slopes(means, variances).probabilities
        return np.asarray(np.log(np.maximum(probabilities, np.finfo(float).tiny)))

    def potentials(self, means: Matrix, variances: Matrix) -> Matrix:  # noqa: ARG002 - the score of a path is that of the mean functions
        return means

    def _parts(self, means: Matrix, deviations: Matrix) -> Iterator[tuple[slice, ScoreDraws]]:
        """(tokens, their draws): all tokens at once when their powers fit into the cache."""
        for first in range(0, len(means), self._at_once):
            part = slice(first, first + self._at_once)
            powers = self._powers.of(deviations[part])
            yield part, ScoreDraws(means[part], deviations[part], self._halves, powers)


class Powers:
    """exp(sqrt(v_q) e_q) of every token, label and pair of draws; only labels whose deviations changed cost time."""

    def __init__(self, halves: Matrix) -> None:
        self._halves = halves
        self._largest_deviation = LARGEST_EXPONENT / np.abs(halves).max()
        self._deviations = np.empty((0, len(halves)))
        self._powers = np.empty((0, *halves.shape))

    def of(self, deviations: Matrix) -> Matrix:
        """Shape (n_tokens, n_labels, n_pairs), to be read before the next call; (0, ...) where they would overflow."""
        if not deviations.max(initial=0.0) <= self._largest_deviation:
            return np.empty((0, *self._halves.shape))
        if len(deviations) == len(self._deviations):
            changed = np.flatnonzero((deviations != self._deviations).any(axis=0))
        else:
            self._powers = np.empty((len(deviations), *self._halves.shape))
            changed = np.arange(len(self._halves))
        for q in changed:
            np.exp(np.multiply.outer(deviations[:, q], self._halves[q]), out=self._powers[:, q])
        self._deviations = deviations.copy()
        return self._powers


def powers_bytes(n_tokens: int, n_labels: int) -> int:
    """Memory of the powers that are held at a time."""
    return min(CACHE_BYTES, n_tokens * normal_draws(n_labels).nbytes // 2)


@lru_cache(maxsize=32)
def normal_draws(n_labels: int) -> Matrix:
    """Pairs of opposite draws whose mean is 0 and whose covariance is the identity, shape (n_draws, n_labels).

    Every draw comes with all its rotations, so that no label's place gives it an advantage.
    """
    random = np.random.default_rng(0)
    if n_labels > MANY_LABELS:
        places = np.arange(0.5, 2 * n_labels) / (2 * n_labels)
        few = random.permutation(ndtri(places)).reshape(2, n_labels)
    else:
        few = random.standard_normal((max(-(-DRAWS // (2 * n_labels)), ROTATED), n_labels))
    half = np.concatenate([np.roll(few, shift, axis=1) for shift in range(n_labels)])
    values, vectors = np.linalg.eigh(half.T @ half / len(half))
    half = half @ (vectors / np.sqrt(values)) @ vectors.T
    return np.concatenate([half, -half])
