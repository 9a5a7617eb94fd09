"""The tree labeling kernel by writing out every connected ordered subtree of both trees.

A feature takes any subset of the children of a node and keeps their order. Two appearances match when they have the
same shape; the nodes at the same place, counted in pre-order, are matched.
"""

from itertools import product
from math import prod

import numpy as np


def appearances(children):
    """All (shape, nodes in pre-order) of connected subtrees; children[node] lists the child nodes in order."""

    def at(node):
        choices = [[None, *at(child)] for child in children[node]]
        for chosen in product(*choices):
            parts = [part for part in chosen if part is not None]
            yield tuple(shape for shape, _ in parts), [node, *(inner for _, nodes in parts for inner in nodes)]

    return [found for node in range(len(children)) for found in at(node)]


def tree_gram(kx, marginal, c, children, other_children):
    """G(tau, t), shape (n, m); kx and marginal = P'^T ky P between the nodes of the two trees."""
    result = np.zeros(kx.shape)
    for (shape, left), (other_shape, right) in product(appearances(children), appearances(other_children)):
        if shape != other_shape:
            continue
        pairs = list(zip(left, right, strict=True))
        for pair in pairs:
            others = prod(kx[other] * marginal[other] for other in pairs if other != pair)
            result[pair] += c ** (2 * len(pairs)) * kx[pair] * others
    return result
