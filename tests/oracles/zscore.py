"""The Z-score by its definition: every label path of every sequence is written down."""

from itertools import pairwise, product

import numpy as np


def count_features(features, path, n_labels):
    """phi(x, y): emission counts [q * n + p], then transition counts [a * n + b]."""
    size = features.shape[1]
    emission = np.zeros((size, n_labels))
    for k, label in enumerate(path):
        emission[:, label] += features[k]
    transition = np.zeros((n_labels, n_labels))
    for a, b in pairwise(path):
        transition[a, b] += 1
    return np.concatenate([emission.ravel(), transition.ravel()])


def moments(sequences, labels, n_labels):
    """b*, C*, mean loss, loss variance and c_l, summed over the sequences; paths equally likely."""
    total = None
    for features, truth in zip(sequences, labels, strict=True):
        paths = list(product(range(n_labels), repeat=len(features)))
        table = np.array([count_features(features, path, n_labels) for path in paths])
        losses = np.array([sum(a != b for a, b in zip(path, truth, strict=True)) for path in paths], float)
        centred = table - table.mean(axis=0)
        parts = [
            count_features(features, truth, n_labels) - table.mean(axis=0),
            centred.T @ centred / len(paths),
            losses.mean(),
            losses.var(),
            centred.T @ (losses - losses.mean()) / len(paths),
        ]
        total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
    return total


def score_moments(scores, transition):
    """Mean and variance of the score of one sequence over all its paths."""
    values = []
    for path in product(range(scores.shape[1]), repeat=len(scores)):
        value = sum(scores[k, label] for k, label in enumerate(path))
        values.append(value + sum(transition[a, b] for a, b in pairwise(path)))
    return np.mean(values), np.var(values)
