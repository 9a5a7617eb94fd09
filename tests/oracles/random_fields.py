"""Label probabilities of a chain by writing down every label path."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np


def marginals(scores, transition, known=None):
    """(nodes, edges, log Z) of one chain; paths agree with `known`, -1 where a label is free."""
    n, n_labels = scores.shape
    known = [-1] * n if known is None else known
    nodes, edges, total = np.zeros((n, n_labels)), np.zeros((n_labels, n_labels)), 0.0
    for path in product(range(n_labels), repeat=n):
        if any(label not in (-1, own) for label, own in zip(known, path, strict=True)):
            continue
        score = sum(scores[k, label] for k, label in enumerate(path))
        weight = np.exp(score + sum(transition[pair] for pair in pairwise(path)))
        total += weight
        for k, label in enumerate(path):
            nodes[k, label] += weight
        for pair in pairwise(path):
            edges[pair] += weight
    return nodes / total, edges / total, np.log(total)
