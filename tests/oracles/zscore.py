"""The Z-score by its definition: every label path of every sequence is listed; closed forms for longer sequences."""

from itertools import pairwise, product

import numpy as np

from gramline.learners.chains.moments import follows


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


def closed_covariance(features, starts, n):
    """C* of all emission and transition counts summed over sequences, emissions first as [q * n + p], then [a * n + b].

    Shape (D n + n^2, D n + n^2); the same as that of `moments` without listing the paths.
    """
    size = features.shape[1]
    lengths = np.diff(starts)
    n_transitions, n_links = np.maximum(lengths - 1, 0).sum(), np.maximum(lengths - 2, 0).sum()
    inner = follows(starts)
    arriving = features[inner].sum(axis=0)  # Fin
    leaving = features[np.append(inner[1:], False)].sum(axis=0) if len(inner) else arriving  # Fout
    same = np.eye(n)
    emission = np.kron(features.T @ features, same / n - 1.0 / n**2)
    # rows (q, p), columns (a, b)
    to_column = same[:, None, :] / n**2 - 1.0 / n**3 + np.zeros((1, n, 1))
    to_row = same[:, :, None] / n**2 - 1.0 / n**3 + np.zeros((1, 1, n))
    mixed = np.kron(arriving[:, None], to_column.reshape(n, n * n)) + np.kron(
        leaving[:, None], to_row.reshape(n, n * n)
    )
    linked = np.einsum("bc,ad->abcd", same, np.ones((n, n))) + np.einsum("da,bc->abcd", same, np.ones((n, n)))
    transition = n_transitions * (np.eye(n * n) / n**2 - 1.0 / n**4)
    transition = transition + n_links * (linked.reshape(n * n, n * n) / n**3 - 2.0 / n**4)
    full = np.empty((size * n + n * n, size * n + n * n))
    full[: size * n, : size * n] = emission
    full[: size * n, size * n :] = mixed
    full[size * n :, : size * n] = mixed.T
    full[size * n :, size * n :] = transition
    return full


def closed_excess(features, statistics):
    """b* = sum (phi(x, ybar) - mean), ordered like `closed_covariance`, shape (D n + n^2,)."""
    centred = statistics.right_hand_sides()[:, : statistics.n_labels]
    return np.concatenate([(features.T @ centred).ravel(), statistics.transition_excess.ravel()])
