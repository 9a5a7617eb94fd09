"""Compiled training loops of the Hidden Markov perceptron: decode, compare, update, one structure after another.

A `lag` sums (visit - 1) * update: what the mean over all visits is behind the last weights.
"""

from __future__ import annotations

from typing import NamedTuple

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices, Offsets
from gramline.learners.chains.viterbi import TIE, Decoder, decode_chain
from gramline.learners.token_features import SparseRows


class Chains(NamedTuple):
    """Labeled structures, and those of them to visit, in order."""

    labels: Codes  # shape (n_positions,)
    starts: Offsets  # shape (n_structures + 1,)
    visited: Indices  # numbers of structures


class Transitions(NamedTuple):
    """T and its lag, shape (n_labels, n_labels) each, [previous][current]."""

    weights: Floats
    lag: Floats


class Emissions(NamedTuple):
    """Weights per feature, which lie side by side, and the scores they give."""

    weights: Floats  # shape (n_features, n_labels)
    lag: Floats  # shape (n_features, n_labels)
    sizes: Floats  # sum of |value| over the updates of a feature: a rounding error is part of it, shape (n_features,)
    scores: Floats  # shape (n_positions, n_labels)


class DualWeights(NamedTuple):
    """Weights per position, and the scores S = G A they give."""

    weights: Floats  # A, shape (n_positions, n_labels)
    lag: Floats  # shape (n_positions, n_labels)
    sizes: Floats  # sum of |G| over the updates that a score is made of: a rounding error is part of it, shape (n,)
    scores: Floats  # shape (n_positions, n_labels)
    change: Floats  # updates of this visit to the block, for the other blocks, shape (n_positions, n_labels)


@jit
def update_transitions(
    transitions: Transitions, labels: Codes, guess: Codes, first: int, last: int, visits: float
) -> None:
    """T[right] += 1, T[guess] -= 1 for every step of the path, after `visits` visits."""
    weights, lag = transitions
    for k in range(first + 1, last):
        weights[labels[k - 1], labels[k]] += 1.0
        lag[labels[k - 1], labels[k]] += visits
        weights[guess[k - 1], guess[k]] -= 1.0
        lag[guess[k - 1], guess[k]] -= visits


@jit
def primal_round(
    chains: Chains,
    features: SparseRows,
    emissions: Emissions,
    transitions: Transitions,
    decoder: Decoder,
    visits: int,
) -> int:
    """One round over all structures after `visits` visits; returns how many structures were decoded wrongly."""
    labels, starts, visited = chains
    row_starts, columns, values = features
    weights, lag, sizes, scores = emissions
    guess = decoder.path
    n_labels = weights.shape[1]
    mistakes = 0
    for structure in visited:
        first, last = starts[structure], starts[structure + 1]
        size = 0.0
        for k in range(first, last):
            scores[k] = 0.0
            for entry in range(row_starts[k], row_starts[k + 1]):
                row, value = weights[columns[entry]], values[entry]
                size += abs(value) * sizes[columns[entry]]
                for label in range(n_labels):
                    scores[k, label] += value * row[label]
        decode_chain(scores, transitions.weights, TIE * size, first, last, decoder)
        is_wrong = False
        for k in range(first, last):
            if guess[k] != labels[k]:
                is_wrong = True
                for entry in range(row_starts[k], row_starts[k + 1]):
                    feature, value = columns[entry], values[entry]
                    weights[feature, labels[k]] += value
                    lag[feature, labels[k]] += visits * value
                    weights[feature, guess[k]] -= value
                    lag[feature, guess[k]] -= visits * value
                    sizes[feature] += abs(value)
        if is_wrong:
            mistakes += 1
            update_transitions(transitions, labels, guess, first, last, float(visits))
        visits += 1
    return mistakes


@jit
def dual_block(
    tile: Floats, chains: Chains, dual: DualWeights, transitions: Transitions, decoder: Decoder, visits: int
) -> int:
    """One visit of the structures of a block, all arrays those of the block; returns the mistaken structures.

    An update of position t reaches the scores of the whole block at once through column t of the diagonal `tile`.
    """
    labels, starts, visited = chains
    weights, lag, sizes, scores, change = dual
    guess = decoder.path
    mistakes = 0
    for structure in visited:
        first, last = starts[structure], starts[structure + 1]
        size = 0.0
        for t in range(first, last):
            size += sizes[t]
        decode_chain(scores, transitions.weights, TIE * size, first, last, decoder)
        is_wrong = False
        for t in range(first, last):
            if guess[t] != labels[t]:
                is_wrong = True
                right, wrong = labels[t], guess[t]
                change[t, right] += 1.0
                change[t, wrong] -= 1.0
                weights[t, right] += 1.0
                lag[t, right] += visits
                weights[t, wrong] -= 1.0
                lag[t, wrong] -= visits
                for s in range(len(scores)):
                    scores[s, right] += tile[s, t]
                    scores[s, wrong] -= tile[s, t]
                    sizes[s] += abs(tile[s, t])
        if is_wrong:
            mistakes += 1
            update_transitions(transitions, labels, guess, first, last, float(visits))
        visits += 1
    return mistakes
