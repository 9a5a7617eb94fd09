"""Means over opposite draws of the logsumexp of every token's scores, of their softmax, and of its Hessian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Matrix


class ScoreDraws(NamedTuple):
    """The scores of every token and label, m + d e over pairs of opposite draws e."""

    means: Matrix  # m, shape (n_tokens, n_labels)
    deviations: Matrix  # d, shape (n_tokens, n_labels)
    halves: Matrix  # one e of every pair, shape (n_labels, n_pairs)
    powers: Matrix  # exp(d e), shape (n_tokens, n_labels, n_pairs); (0, ...) where some would overflow


@jit
def weigh(draws: ScoreDraws, t: int, weights: Matrix) -> float:
    """weights[q, i] = exp(m_q + d_q e_qi) over a common factor, then the same of the opposite draws.

    The factor may differ from pair to pair; returned is the mean of its logarithm.
    """
    means, deviations, halves, powers = draws
    n_labels, n_pairs = halves.shape
    top = -np.inf
    for q in range(n_labels):
        top = max(top, means[t, q])
    if len(powers) > 0:
        for q in range(n_labels):
            level = np.exp(means[t, q] - top)
            for i in range(n_pairs):
                weights[q, i] = level * powers[t, q, i]
                weights[q, n_pairs + i] = level / powers[t, q, i]
        return float(top)
    shift = 0.0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        for i in range(n_pairs):
            top = -np.inf
            for q in range(n_labels):
                top = max(top, means[t, q] + sign * deviations[t, q] * halves[q, i])
            for q in range(n_labels):
                value = means[t, q] + sign * deviations[t, q] * halves[q, i]
                weights[q, side * n_pairs + i] = np.exp(value - top)
            shift += top
    return float(shift / (2 * n_pairs))


@jit
def add_up(weights: Matrix, totals: Matrix) -> float:
    """totals[i] = sum of the labels' weights in draw i; returns the mean of their logarithms."""
    n_pairs = len(totals) // 2
    totals[:] = 0.0
    for q in range(len(weights)):
        for i in range(2 * n_pairs):
            totals[i] += weights[q, i]
    logarithms = 0.0
    for i in range(n_pairs):
        logarithms += np.log(totals[i] * totals[n_pairs + i])
    return logarithms / (2 * n_pairs)


@jit
def expected_totals(draws: ScoreDraws, totals: Matrix) -> None:
    """totals[t] = mean over the draws of the logsumexp."""
    n_labels, n_pairs = draws.halves.shape
    weights, sums = np.empty((n_labels, 2 * n_pairs)), np.empty(2 * n_pairs)
    for t in range(len(draws.means)):
        shift = weigh(draws, t, weights)
        totals[t] = shift + add_up(weights, sums)


@jit
def expected_softmax(draws: ScoreDraws, probabilities: Matrix, slopes: Matrix) -> None:
    """probabilities[t] = mean of the softmax p, and slopes[t] = mean of p e, both of shape (n_tokens, n_labels)."""
    n_labels, n_pairs = draws.halves.shape
    weights, sums = np.empty((n_labels, 2 * n_pairs)), np.empty(2 * n_pairs)
    for t in range(len(draws.means)):
        weigh(draws, t, weights)
        add_up(weights, sums)
        for i in range(2 * n_pairs):
            sums[i] = 1.0 / sums[i]
        for q in range(n_labels):
            share, slope = 0.0, 0.0
            for i in range(n_pairs):
                here = weights[q, i] * sums[i]
                opposite = weights[q, n_pairs + i] * sums[n_pairs + i]
                share += here + opposite
                slope += (here - opposite) * draws.halves[q, i]
            probabilities[t, q] = share / (2 * n_pairs)
            slopes[t, q] = slope / (2 * n_pairs)


@jit
def expected_hessians(draws: ScoreDraws, hessians: Matrix) -> None:
    """hessians[t] = mean of diag p - p p^T."""
    n_labels, n_pairs = draws.halves.shape
    weights, sums = np.empty((n_labels, 2 * n_pairs)), np.empty(2 * n_pairs)
    for t in range(len(draws.means)):
        weigh(draws, t, weights)
        add_up(weights, sums)
        for q in range(n_labels):
            for i in range(2 * n_pairs):
                weights[q, i] /= sums[i]
        hessians[t] = -np.dot(weights, weights.T) / (2 * n_pairs)
        for q in range(n_labels):
            hessians[t, q, q] += weights[q].mean()
