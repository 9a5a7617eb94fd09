"""Moments of any per-position features over all label paths, by dynamic programming along the chain.

phi_j(x, y) = sum_k f_j(y_{k-1}, y_k, k). With mu(i, k) and v(i, k) the first and second moments over all paths that
end in label i at position k (pi(i, k) of them):
    mu_j(i, k)   = sum_h pi(h, k-1) (mu_j(h, k-1) + f_j) / pi(i, k)
    v_jj'(i, k)  = sum_h pi(h, k-1) (v_jj'(h, k-1) + mu_j(h, k-1) f_j' + f_j mu_j'(h, k-1) + f_j f_j') / pi(i, k)
    mean = sum_i mu(i, m) pi(i, m) / sum_i pi(i, m),  the covariance in the same way.
Cost O(m n P^2) for P features: the general route, and a check of the closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Offsets


class PathFeatures(NamedTuple):
    """f_j(h, i, k) in CSR form: row (k n + h) n + i for previous label h and label i; k = 0 uses h = 0 only."""

    starts: Offsets  # shape (m n n + 1,)
    columns: Offsets
    values: Floats
    n_labels: int
    size: int  # P

    @classmethod
    def of(cls, dense: Floats) -> PathFeatures:
        """From an array of shape (m, n, n, P)."""
        length, n_labels, _, size = dense.shape
        rows = csr_array(dense.reshape(length * n_labels * n_labels, size))
        return cls(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(float), n_labels, size)


def chain_features(features: Floats, truth: Codes, n_labels: int) -> PathFeatures:
    """Emission counts [q * n + p], transition counts [a * n + b], then the Hamming loss against `truth`.

    `features` has shape (m, D); P = D n + n^2 + 1.
    """
    length, size = features.shape
    local = np.zeros((length, n_labels, n_labels, size * n_labels + n_labels**2 + 1))
    for k in range(length):
        for label in range(n_labels):
            local[k, :, label, label : size * n_labels : n_labels] = features[k]
            local[k, :, label, -1] = label != truth[k]
            if k > 0:
                for previous in range(n_labels):
                    local[k, previous, label, size * n_labels + previous * n_labels + label] = 1.0
    return PathFeatures.of(local)


def dynamic_moments(features: PathFeatures) -> tuple[Floats, Floats]:
    """Mean, shape (P,), and covariance, shape (P, P), over all label paths."""
    mean, half = _moments(features)
    return mean, half + half.T - np.outer(mean, mean)


@jit
def _moments(features: PathFeatures) -> tuple[Floats, Floats]:
    """The mean, and half the second moment: v = half + half^T."""
    starts, columns, values, n, size = features
    length = (len(starts) - 1) // n**2
    mean, half = np.zeros((n, size)), np.zeros((n, size, size))
    for k in range(length):
        mean_before, half_before = _mean_of_labels(mean, half)
        mean_after, half_after = np.empty((n, size)), np.empty((n, size, size))
        n_previous = n if k > 0 else 1
        share = 1.0 / n_previous  # every label follows every label, so all of them end as many paths
        for label in range(n):
            mean_after[label] = mean_before
            half_after[label] = half_before
            for previous in range(n_previous):
                row = (k * n + previous) * n + label
                for entry in range(starts[row], starts[row + 1]):
                    j, value = columns[entry], share * values[entry]
                    mean_after[label, j] += value
                    half_after[label, j] += value * mean[previous]
                    for other in range(starts[row], starts[row + 1]):
                        half_after[label, j, columns[other]] += 0.5 * value * values[other]
        mean, half = mean_after, half_after
    return _mean_of_labels(mean, half)


@jit
def _mean_of_labels(mean: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Over the labels, each of which ends as many paths."""
    share, total_mean, total_half = 1.0 / len(mean), np.zeros_like(mean[0]), np.zeros_like(half[0])
    for label in range(len(mean)):
        total_mean += share * mean[label]
        total_half += share * half[label]
    return total_mean, total_half


@dataclass(frozen=True, eq=False)
class PathMoments:
    """b*, C* and the moments of the loss of a training set; emissions [q * n + p] first, then [a * n + b]."""

    excess: Floats  # b*
    covariance: Floats  # C*
    loss_mean: float  # mu_l
    loss_covariance: Floats  # c_l


def training_moments(features: csr_array, codes: Codes, starts: Offsets, n: int) -> PathMoments:
    """Sums over all sequences; each one is worked out in the features that occur in it."""
    size = features.shape[1] * n + n * n
    excess, covariance, loss_covariance, loss_mean = np.zeros(size), np.zeros((size, size)), np.zeros(size), 0.0
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = features[first:last]
        used = np.unique(rows.indices)
        dense, truth = rows[:, used].toarray(), codes[first:last]
        mean, spread = dynamic_moments(chain_features(dense, truth, n))
        places = np.concatenate(
            [(used[:, None] * n + np.arange(n)).ravel(), features.shape[1] * n + np.arange(n * n)]
        ).astype(np.int64)
        excess[places] += _counts(dense, truth, n) - mean[:-1]
        covariance[np.ix_(places, places)] += spread[:-1, :-1]
        loss_covariance[places] += spread[:-1, -1]
        loss_mean += float(mean[-1])
    return PathMoments(excess, covariance, loss_mean, loss_covariance)


def _counts(features: Floats, path: Codes, n: int) -> Floats:
    """phi(x, path), shape (D n + n^2,)."""
    chosen = np.eye(n)[path]
    transition = np.zeros((n, n))
    np.add.at(transition, (path[:-1], path[1:]), 1.0)
    return np.concatenate([(features.T @ chosen).ravel(), transition.ravel()])
