"""The conditional likelihood of label chains and its slope, from scores of positions and transitions (math 11).

sum_i [ log Z_i - log Zc_i ], Zc over the label paths that agree with the labels that are known: F(y) of the right path
where all are. Its slope by S and T is minus (Y - p, N - nu): known less expected labels and steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Codes, Floats, Indices, Offsets
from gramline.learners.chains.forward_backward import Marginals, chain_marginals
from gramline.learners.chains.viterbi import structure_sums


class Slope(NamedTuple):
    """The loss at some scores, and where it falls."""

    loss: float
    nodes: Floats  # Y - p, shape (n_rows, n_labels)
    edges: Floats  # sum of N_i - nu_i, shape (n_labels, n_labels)


@dataclass(frozen=True, eq=False)
class ChainLikelihood:
    """Chains with some or all of their labels; structures without any are left out."""

    known: Codes  # negative where there is no label, shape (n_rows,)
    starts: Offsets  # of the structures, shape (n_structures + 1,)
    chosen: Indices  # structures with a label
    partial: Indices  # those of them that lack some
    complete: Marginals  # Y and N of the others

    @classmethod
    def of(cls, known: Codes, starts: Offsets, n_labels: int) -> ChainLikelihood:
        n_known = structure_sums((known >= 0).astype(np.float64), starts)
        chosen = np.flatnonzero(n_known)
        is_whole = n_known[chosen] == np.diff(starts)[chosen]
        flat = np.zeros((len(known), n_labels))
        complete = chain_marginals(flat, np.zeros((n_labels, n_labels)), starts, chosen[is_whole], known)
        return cls(known, starts, chosen, chosen[~is_whole], complete)

    @property
    def n_labels(self) -> int:
        return len(self.complete.edges)

    @property
    def is_convex(self) -> bool:
        """Whether all labels of the chosen structures are known."""
        return not len(self.partial)

    def __call__(self, scores: Floats, transition: Floats) -> Slope:
        """The loss at S, shape (n_rows, n_labels), and T, shape (n_labels, n_labels)."""
        free = chain_marginals(scores, transition, self.starts, self.chosen)
        nodes, edges, _ = self.complete
        loss = float(free.log_norms.sum() - np.vdot(nodes, scores) - np.vdot(edges, transition))
        if len(self.partial):
            clamped = chain_marginals(scores, transition, self.starts, self.partial, self.known)
            loss -= float(clamped.log_norms.sum())
            nodes, edges = nodes + clamped.nodes, edges + clamped.edges
        return Slope(loss, nodes - free.nodes, edges - free.edges)
