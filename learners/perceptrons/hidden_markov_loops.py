"""Compiled training loops of the Hidden Markov perceptron: decode, compare, update, one structure after another.

A `lag` sums (visit - 1) * update: what the mean over all visits is behind the last weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices, Offsets, Tile
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
    """Weights per position, and the scores S = scale G A of rows, which positions with equal rows may share."""

    weights: Floats  # A, shape (n_positions, n_labels)
    lag: Floats  # shape (n_positions, n_labels)
    sums: Floats  # S^T, shape (n_labels, n_rows)
    sizes: Floats  # scale |G| over the updates that a score is made of: a rounding error is part of it, shape (n_rows,)
    change: Floats  # updates of this visit, shape (n_rows, n_labels)
    counts: Floats  # how many of them, shape (n_rows,)


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
    tile: Tile,
    row_of: Indices,
    scale: float,
    chains: Chains,
    dual: DualWeights,
    transitions: Transitions,
    decoder: Decoder,
    visits: int,
) -> int:
    """One visit of the structures of a block, all arrays those of the block; returns the mistaken structures.

    An update of a position reaches the scores of the whole block at once through its line of `tile`, G between the
    rows of the block; `row_of` is the row of each position.
    """
    labels, starts, visited = chains
    weights, lag, sums, sizes, change, counts = dual
    guess = decoder.path
    n_labels, n_rows = sums.shape
    scores = np.empty((len(labels), n_labels))
    mistakes = 0
    for structure in visited:
        first, last = starts[structure], starts[structure + 1]
        size = 0.0
        for t in range(first, last):
            size += sizes[row_of[t]]
            for label in range(n_labels):
                scores[t, label] = sums[label, row_of[t]]
        decode_chain(scores, transitions.weights, TIE * size, first, last, decoder)
        is_wrong = False
        for t in range(first, last):
            if guess[t] != labels[t]:
                is_wrong = True
                right, wrong, own = labels[t], guess[t], row_of[t]
                change[own, right] += 1.0
                change[own, wrong] -= 1.0
                counts[own] += 1.0
                weights[t, right] += 1.0
                lag[t, right] += visits
                weights[t, wrong] -= 1.0
                lag[t, wrong] -= visits
                line, gaining, losing = tile[own], sums[right], sums[wrong]
                for s in range(n_rows):
                    gaining[s] += scale * line[s]
                for s in range(n_rows):
                    losing[s] -= scale * line[s]
                for s in range(n_rows):
                    sizes[s] += abs(scale * line[s])
        if is_wrong:
            mistakes += 1
            update_transitions(transitions, labels, guess, first, last, float(visits))
        visits += 1
    return mistakes
