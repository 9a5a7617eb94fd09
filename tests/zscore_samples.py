"""Small labeled sequences with overlapping features, and what enumeration says of them."""

from itertools import pairwise

import numpy as np
import pytest
from oracles import zscore as oracle

from gramline.kernels.packing import Features, PackedSequences, Vocabulary

CASES = [  # lengths, features, labels
    ([4, 3, 5], 3, 2),
    ([1, 2, 1, 3], 4, 3),
    ([1, 1, 1], 2, 3),
    ([2, 2], 3, 2),
    ([0, 3, 0, 4], 2, 2),
    ([4, 2], 3, 1),
    ([3, 4, 2, 3], 9, 3),
]
every_case = pytest.mark.parametrize(("lengths", "n_features", "n_labels"), CASES)


def packed_from(rows, lengths, labels, n_labels):
    """A packed corpus with a dense feature table, zeros left out."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))])
    vocabulary = Vocabulary(
        features=tuple(f"f{q}" for q in range(rows.shape[1])), labels=tuple(f"L{p}" for p in range(n_labels))
    )
    features = Features(indptr, np.nonzero(rows)[1], rows[rows != 0])
    return PackedSequences(starts, np.zeros(len(rows)), features, labels, vocabulary)


def example(lengths, n_features, n_labels, seed=0):
    """Overlapping features: several may be active at one position."""
    random = np.random.default_rng(seed)
    n_rows = sum(lengths)
    rows = random.normal(size=(n_rows, n_features)) * (random.random((n_rows, n_features)) < 0.7)
    labels = random.integers(n_labels, size=n_rows)
    return packed_from(rows, lengths, labels, n_labels), rows


def enumerated(packed, rows):
    bounds = list(pairwise(packed.starts.tolist()))
    n_labels = len(packed.vocabulary.labels)
    return oracle.moments([rows[a:b] for a, b in bounds], [packed.labels[a:b] for a, b in bounds], n_labels)


def flat(model):
    return np.concatenate([model.emission_.T.ravel(), model.transition_.ravel()])


def z_of(theta, b, C):
    return theta @ b / np.sqrt(theta @ C @ theta)
