"""The DAG labeling kernel by writing out every directed path of both graphs; a repeated edge is one edge."""

from itertools import product
from math import prod

import numpy as np


def paths(successors):
    """All directed paths, as lists of nodes; successors[node] lists targets of edges."""
    found = [[node] for node in range(len(successors))]
    for path in found:
        found += [[*path, following] for following in sorted(set(successors[path[-1]]))]
    return found


def dag_gram(kx, marginal, c, successors, other_successors):
    """G(tau, t), shape (n, m); kx and marginal = P'^T ky P between the nodes of the two graphs."""
    result = np.zeros(kx.shape)
    for left, right in product(paths(successors), paths(other_successors)):
        if len(left) != len(right):
            continue
        pairs = list(zip(left, right, strict=True))
        for pair in pairs:
            others = prod(kx[other] * marginal[other] for other in pairs if other != pair)
            result[pair] += c ** (2 * len(pairs)) * kx[pair] * others
    return result
