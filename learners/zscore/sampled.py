"""Moments over random label paths instead of all of them; the covariance is multiplied with, never formed.

For S paths per sequence, C* theta = sum over sequences of (1/S) sum_paths (phi - mean) (phi - mean)^T theta. A path's
score needs only the scores R = F E of its positions, so a product costs S N steps besides F and F^T.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import structure_sums
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, block_conjugate_gradient


class SampledMoments:
    """b*, c_l and mu_l of random paths, and products with C*; theta = [E (D x n), T (n x n)] flat."""

    def __init__(self, features: csr_array, statistics: ChainStatistics, n_paths: int, seed: int) -> None:
        self.features = features
        self.transposed = features.T.tocsr()
        self.statistics = statistics
        random = np.random.default_rng(seed)
        shape = (n_paths, len(statistics.codes))
        self.paths: Codes = random.integers(statistics.n_labels, size=shape, dtype=np.int32)
        wrong = (self.paths != statistics.codes).astype(np.float64)
        losses = structure_sums(wrong.T, statistics.starts)  # shape (n_sequences, n_paths)
        even = np.full((*losses.shape, 1), 1.0 / n_paths)
        truth = self._gathered(np.ones((len(losses), 1, 1)), statistics.codes[None, :])[:, 0]
        self.excess: Floats = truth - self._gathered(even, self.paths)[:, 0]
        self.loss_mean = float(losses.mean(axis=1).sum())
        centred = (losses - losses.mean(axis=1, keepdims=True)) / n_paths
        self.loss_covariance: Floats = self._gathered(centred[:, :, None], self.paths)[:, 0]

    def apply(self, block: Floats) -> Floats:
        """C* @ block, shape (D n + n^2, width)."""
        n, width = self.statistics.n_labels, block.shape[1]
        size = self.features.shape[1] * n
        emitted = np.asarray(self.features @ np.ascontiguousarray(block[:size]).reshape(-1, n * width))
        scores = np.zeros((len(self.statistics.starts) - 1, len(self.paths), width))
        transition = np.ascontiguousarray(block[size:]).reshape(n, n, width)
        _follow(self.paths, self.statistics.starts, emitted.reshape(-1, n, width), transition, scores, False)
        scores -= scores.mean(axis=1, keepdims=True)
        scores /= len(self.paths)
        return self._gathered(scores, self.paths)

    @property
    def covariance(self) -> Floats:
        """C*, for small problems."""
        return self.apply(np.eye(len(self.excess)))

    def solve(self, sides: Floats, ridges: Floats, stopping: StoppingRule) -> Floats:
        """(C* + diag(ridges))^-1 sides by conjugate gradients, scaled to about a unit diagonal."""
        scales = (1.0 / np.sqrt(self._exact_diagonal() + ridges))[:, None]
        with one_blas_thread():
            (solution,) = block_conjugate_gradient(
                lambda block: scales * self.apply(scales * block) + ridges[:, None] * scales**2 * block,
                scales * sides,
                stopping=stopping,
            )
        return np.asarray(scales * solution.trusted("the Z-score's sampled system"))

    def _exact_diagonal(self) -> Floats:
        """The diagonal of the exact C*, near that of the sampled one, shape (D n + n^2,)."""
        n, length = self.statistics.n_labels, self.statistics.n_transitions
        squares = np.asarray(self.features.power(2).sum(axis=0)).ravel()
        emission = np.repeat(squares * (1.0 / n - 1.0 / n**2), n)
        return np.concatenate([emission, np.full(n * n, length * (1.0 / n**2 - 1.0 / n**4))])

    def _gathered(self, weights: Floats, paths: Codes) -> Floats:
        """sum of weight * phi(path): weights of shape (n_sequences, n_paths, width) to (D n + n^2, width)."""
        n, width = self.statistics.n_labels, weights.shape[2]
        counts, transition = np.zeros((paths.shape[1], n, width)), np.zeros((n, n, width))
        _follow(paths, self.statistics.starts, counts, transition, np.ascontiguousarray(weights), True)
        emission = np.asarray(self.transposed @ counts.reshape(len(counts), n * width))
        return np.concatenate([emission.reshape(-1, width), transition.reshape(n * n, width)])


@jit
def _follow(
    paths: Codes, starts: Offsets, emission: Floats, transition: Floats, of_paths: Floats, is_transposed: bool
) -> None:
    """of_paths[sequence, path] += emission[k, label] + transition[label before, label] for every step of the path.

    Transposed: every step adds of_paths to those entries of `emission` and `transition` instead. The last axis, over
    columns of weights, is that of the inner loop.
    """
    for structure in range(len(starts) - 1):
        first, last = starts[structure], starts[structure + 1]
        for path in range(len(paths)):
            own = of_paths[structure, path]
            for k in range(first, last):
                label = paths[path, k]
                _add(own, emission[k, label], is_transposed)
                if k > first:
                    _add(own, transition[paths[path, k - 1], label], is_transposed)


@jit
def _add(own: Floats, step: Floats, is_transposed: bool) -> None:
    for column in range(len(own)):
        if is_transposed:
            step[column] += own[column]
        else:
            own[column] += step[column]
