"""The marginalized labeling kernel between positions of two sequences, by enumeration of features and labelings.

A feature is a labelled subsequence of d positions; one appearance counts c^d gap^(skipped positions). For positions
tau, t and labels a, b: the sum over all pairs of appearances of d positions in which tau and t sit at the same place,
of the products of kx and ky over the matched positions, averaged over all labels of the other matched positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def full_kernel(
    kx: np.ndarray, row_prior: np.ndarray, col_prior: np.ndarray, ky: np.ndarray, c: float, gap: float
) -> np.ndarray:
    """K(tau,t,a,b), shape (n, m, L, L); kx between the positions, shape (n, m)."""
    n, m = kx.shape
    n_labels = len(ky)
    result = np.zeros((n, m, n_labels, n_labels))
    for size in range(1, min(n, m) + 1):
        for left, right in itertools.product(_appearances(n, size), _appearances(m, size)):
            skipped = _skipped(left) + _skipped(right)
            weight = c ** (2 * size) * (gap**skipped if skipped else 1.0)
            if weight == 0.0:
                continue
            observed = math.prod(float(kx[i, j]) for i, j in zip(left, right, strict=True))
            for labels in itertools.product(range(n_labels), repeat=2 * size):
                row_labels, col_labels = labels[:size], labels[size:]
                term = weight * observed
                for i, j, a, b in zip(left, right, row_labels, col_labels, strict=True):
                    term *= row_prior[i, a] * col_prior[j, b] * ky[a, b]
                for i, j, a, b in zip(left, right, row_labels, col_labels, strict=True):
                    result[i, j, a, b] += term
    return result


def _appearances(length: int, size: int) -> Sequence[tuple[int, ...]]:
    return list(itertools.combinations(range(length), size))


def _skipped(positions: tuple[int, ...]) -> int:
    return positions[-1] - positions[0] + 1 - len(positions)


def scalar_gram(kx: np.ndarray, marginal: np.ndarray, c: float, gap: float) -> np.ndarray:
    """G(tau,t) by enumeration of features, with the labels of a matched pair already summed: marginal = P'^T ky P."""
    n, m = kx.shape
    result = np.zeros((n, m))
    for size in range(1, min(n, m) + 1):
        for left, right in itertools.product(_appearances(n, size), _appearances(m, size)):
            skipped = _skipped(left) + _skipped(right)
            weight = c ** (2 * size) * (gap**skipped if skipped else 1.0)
            pairs = list(zip(left, right, strict=True))
            for i, j in pairs:
                others = math.prod(float(kx[pair] * marginal[pair]) for pair in pairs if pair != (i, j))
                result[i, j] += weight * float(kx[i, j]) * others
    return result
