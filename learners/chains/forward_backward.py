"""Label probabilities of chains: all structures of a corpus in one call, scaled at every position against overflow.

P(y) = exp F(y) / Z,  F(y) = sum_k S[k, y_k] + sum_{k > 0} T[y_{k-1}, y_k]. Where some labels are known, the sums run
over the paths that have them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices, Offsets

LEAST = -300.0  # a factor exp(-300) beside the largest is as good as 0, and its square is not yet 0


class Marginals(NamedTuple):
    """What is expected of a random path."""

    nodes: Floats  # p(y_k = b), shape (n_positions, n_labels); 0 at structures that were left out
    edges: Floats  # expected number of steps a -> b of all structures, shape (n_labels, n_labels)
    log_norms: Floats  # log Z, shape (n_chosen,)


@jit
def forward_backward(
    scores: Floats, transition: Floats, starts: Offsets, chosen: Indices, known: Codes, marginals: Marginals
) -> None:
    """Fill `marginals` for the chosen structures; `known` (n_positions,) are labels, negative where there is none."""
    nodes, edges, log_norms = marginals
    n_labels = scores.shape[1]
    longest = 1
    for structure in chosen:
        longest = max(longest, starts[structure + 1] - starts[structure])
    peak = transition.max()
    factor = np.exp(np.maximum(transition - peak, LEAST))
    turned = factor.T.copy()  # so that every loop runs along rows
    forward, potential = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    scale, back, after = np.empty(longest), np.empty(n_labels), np.empty(n_labels)
    for number in range(len(chosen)):
        first, last = starts[chosen[number]], starts[chosen[number] + 1]
        total = 0.0
        for k in range(last - first):
            row, label = scores[first + k], known[first + k]
            top = row.max() if label < 0 else row[label]
            for b in range(n_labels):
                potential[k, b] = np.exp(max(row[b] - top, LEAST)) if label < 0 or label == b else 0.0
            forward[k, :] = 1.0 if k == 0 else 0.0
            if k > 0:
                for a in range(n_labels):
                    share = forward[k - 1, a]
                    for b in range(n_labels):
                        forward[k, b] += share * factor[a, b]
            scale[k] = 0.0
            for b in range(n_labels):
                forward[k, b] *= potential[k, b]
                scale[k] += forward[k, b]
            for b in range(n_labels):
                forward[k, b] /= scale[k]
            total += top + np.log(scale[k]) + (peak if k > 0 else 0.0)
        log_norms[number] = total
        back[:] = 1.0
        for k in range(last - first - 1, -1, -1):
            for b in range(n_labels):
                nodes[first + k, b] = forward[k, b] * back[b]
                after[b] = potential[k, b] * back[b] / scale[k]
            if k > 0:
                for a in range(n_labels):
                    share = forward[k - 1, a]
                    for b in range(n_labels):
                        edges[a, b] += share * (factor[a, b] * after[b])
                back[:] = 0.0
                for b in range(n_labels):
                    weight = after[b]
                    for a in range(n_labels):
                        back[a] += turned[b, a] * weight


def chain_marginals(
    scores: Floats,
    transition: Floats,
    starts: Offsets,
    chosen: Indices | None = None,
    known: Codes | None = None,
) -> Marginals:
    """Marginals of the chosen structures (all by default), given the labels that are known (none by default).

    `scores` has shape (n, n_labels), `transition` is indexed [previous][current], structure s owns the positions
    starts[s]:starts[s + 1]. Cost O(n n_labels^2).
    """
    n, n_labels = scores.shape
    structures = np.arange(len(starts) - 1) if chosen is None else chosen
    codes = np.full(n, -1, np.int32) if known is None else known
    marginals = Marginals(np.zeros((n, n_labels)), np.zeros((n_labels, n_labels)), np.zeros(len(structures)))
    scores, transition = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(transition, np.float64)
    forward_backward(scores, transition, starts, structures, codes, marginals)
    return marginals
