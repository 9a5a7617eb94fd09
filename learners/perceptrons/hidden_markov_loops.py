"""Compiled training loops of the Hidden Markov perceptron: decode, compare, update, one structure after another."""

from __future__ import annotations

from gramline.kernels._jit import jit
from gramline.kernels.packing import Ints
from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.chains.ties import TIE
from gramline.learners.chains.viterbi import decode_chain


@jit
def update_transitions(
    transition: Floats, lag: Floats, labels: Codes, guess: Codes, first: int, last: int, before: float
) -> None:
    """T[right] += 1, T[guess] -= 1 for every step of the path; `lag` sums (visit - 1) * delta for the average."""
    for k in range(first + 1, last):
        transition[labels[k - 1], labels[k]] += 1.0
        lag[labels[k - 1], labels[k]] += before
        transition[guess[k - 1], guess[k]] -= 1.0
        lag[guess[k - 1], guess[k]] -= before


@jit
def primal_round(
    indptr: Offsets,
    indices: Ints,
    values: Floats,
    labels: Codes,
    starts: Offsets,
    emission: Floats,
    emission_lag: Floats,
    emission_sizes: Floats,
    transition: Floats,
    transition_lag: Floats,
    visits: int,
    scores: Floats,
    best: Floats,
    back: Codes,
    guess: Codes,
) -> int:
    """One round over all structures after `visits` visits; returns how many structures were decoded wrongly.

    `emission` has shape (n_features, n_labels): the weights of a feature lie side by side. `emission_sizes`,
    shape (n_features,), sums |value| of the updates of a feature: what a rounding error of its weights is part of.
    """
    n_labels = emission.shape[1]
    mistakes = 0
    for structure in range(len(starts) - 1):
        first, last = starts[structure], starts[structure + 1]
        size = 0.0
        for k in range(first, last):
            scores[k] = 0.0
            for entry in range(indptr[k], indptr[k + 1]):
                row, value = emission[indices[entry]], values[entry]
                size += abs(value) * emission_sizes[indices[entry]]
                for label in range(n_labels):
                    scores[k, label] += value * row[label]
        decode_chain(scores, transition, TIE * size, first, last, best, back, guess)
        is_wrong = False
        for k in range(first, last):
            if guess[k] != labels[k]:
                is_wrong = True
                for entry in range(indptr[k], indptr[k + 1]):
                    feature, value = indices[entry], values[entry]
                    emission[feature, labels[k]] += value
                    emission_lag[feature, labels[k]] += visits * value
                    emission[feature, guess[k]] -= value
                    emission_lag[feature, guess[k]] -= visits * value
                    emission_sizes[feature] += abs(value)
        if is_wrong:
            mistakes += 1
            update_transitions(transition, transition_lag, labels, guess, first, last, float(visits))
        visits += 1
    return mistakes


@jit
def dual_block(
    tile: Floats,
    labels: Codes,
    starts: Offsets,
    is_used: Codes,
    scores: Floats,
    sizes: Floats,
    change: Floats,
    dual: Floats,
    dual_lag: Floats,
    transition: Floats,
    transition_lag: Floats,
    visits: int,
    best: Floats,
    back: Codes,
    guess: Codes,
) -> int:
    """One visit of the structures of a block, all arrays those of the block; returns the mistaken structures.

    An update of position t reaches the scores of the whole block at once through column t of the diagonal `tile`;
    `change` collects the updates, for the other blocks; `sizes`, shape (n,), sums |G| over all updates of a position:
    what a rounding error of its scores is part of.
    """
    mistakes = 0
    for structure in range(len(starts) - 1):
        if not is_used[structure]:
            continue
        first, last = starts[structure], starts[structure + 1]
        size = 0.0
        for t in range(first, last):
            size += sizes[t]
        decode_chain(scores, transition, TIE * size, first, last, best, back, guess)
        is_wrong = False
        for t in range(first, last):
            if guess[t] != labels[t]:
                is_wrong = True
                right, wrong = labels[t], guess[t]
                change[t, right] += 1.0
                change[t, wrong] -= 1.0
                dual[t, right] += 1.0
                dual_lag[t, right] += visits
                dual[t, wrong] -= 1.0
                dual_lag[t, wrong] -= visits
                for s in range(len(scores)):
                    scores[s, right] += tile[s, t]
                    scores[s, wrong] -= tile[s, t]
                    sizes[s] += abs(tile[s, t])
        if is_wrong:
            mistakes += 1
            update_transitions(transition, transition_lag, labels, guess, first, last, float(visits))
        visits += 1
    return mistakes
