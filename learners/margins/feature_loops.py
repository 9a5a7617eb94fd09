"""Compiled visits of the structured support vector machine on explicit features: the same steps, other weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Floats
from gramline.learners.chains.viterbi import Decoder
from gramline.learners.margins.atom_loops import Atoms, Chain, Margin, add_scaled
from gramline.learners.margins.structured_loops import Chains, Transitions, ascend, find_violation, rebalance
from gramline.learners.token_features import SparseRows


class Emissions(NamedTuple):
    """Weights per feature, which lie side by side, shape (n_features, n_labels) each."""

    weights: Floats
    lag: Floats  # sum of k (k - 1) times the change of visit k


@jit
def feature_scores(features: SparseRows, first: int, last: int, weights: Floats) -> Floats:
    """F E^T of the positions of a chain, shape (n, n_labels)."""
    starts, columns, values = features
    scores = np.zeros((last - first, weights.shape[1]))
    for t in range(last - first):
        for entry in range(starts[first + t], starts[first + t + 1]):
            for b in range(weights.shape[1]):
                scores[t, b] += values[entry] * weights[columns[entry], b]
    return scores


@jit
def feature_square(features: SparseRows, first: int, last: int, row: Floats) -> Floats:
    """F F^T of the positions of a chain, shape (n, n); `row` (n_features,) is 0 and work space."""
    starts, columns, values = features
    n = last - first
    square = np.zeros((n, n))
    for s in range(n):
        for entry in range(starts[first + s], starts[first + s + 1]):
            row[columns[entry]] += values[entry]
        for t in range(n):
            for entry in range(starts[first + t], starts[first + t + 1]):
                square[s, t] += row[columns[entry]] * values[entry]
        for entry in range(starts[first + s], starts[first + s + 1]):
            row[columns[entry]] = 0.0
    return square


@jit
def visit_features(
    features: SparseRows,
    chains: Chains,
    atoms: Atoms,
    emissions: Emissions,
    transitions: Transitions,
    margin: Margin,
    decoder: Decoder,
    visits: int,
    is_inner: bool,
) -> float:
    """One visit of every chain, after `visits` visits; how much larger D is."""
    starts, columns, values = features
    weights, lag = emissions
    row, total = np.zeros(len(weights)), 0.0
    for number in range(len(chains.firsts)):
        visits += 1
        first, last = chains.firsts[number], chains.lasts[number]
        chain = Chain(number, first, chains.gold[first:last])
        if is_inner and atoms.n_used[number] == 1:
            continue
        scores = feature_scores(features, first, last, weights)
        if is_inner:
            gained, moved = rebalance(scores, transitions.weights, chain, margin, atoms)
        else:
            if not find_violation(scores, transitions.weights, chain, margin.is_hamming, atoms, decoder):
                continue
            square = feature_square(features, first, last, row)
            gained, moved = ascend(square, scores, transitions.weights, chain, margin, atoms, decoder)
        total += gained
        late = float(visits) * float(visits - 1)
        add_scaled(transitions.weights, 1.0, moved.edges)
        add_scaled(transitions.lag, late, moved.edges)
        for t in range(last - first):
            if not moved.nodes[t].any():
                continue
            for entry in range(starts[first + t], starts[first + t + 1]):
                for b in range(weights.shape[1]):
                    step = values[entry] * moved.nodes[t, b]
                    weights[columns[entry], b] += step
                    lag[columns[entry], b] += late * step
    return total
