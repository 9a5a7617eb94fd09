"""The labeling kernel between nodes of ordered trees, over connected subtrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramline.kernels.base import chunk_starts
from gramline.kernels.marginalized import LinkedLabeling, Strip
from gramline.kernels.packing import Packed, PackedTrees
from gramline.kernels.trees.labeling_loops import sweep_trees
from gramline.kernels.trees.level_order import ColumnTrees, LevelOrder


@dataclass(frozen=True)
class TreeLabeling(LinkedLabeling):
    """G(tau,t) = c^2 kx(tau,t) (1+U'(tau,t)) (1+D'(tau,t)); features are labelled connected subtrees.

    A feature takes any subset of the children of a node and keeps their order. With SF(v,u) the sum over all
    order-preserving partial matchings of the first v with the first u children, SB its mirror image:

        1+D'(tau,t) = SF(n,m),   SF(v,u) = SF(v-1,u) + Q(v,u),   Q(v,u) = Q(v,u-1) + kap (1+D')(tau_v,t_u) SF(v-1,u-1)
        U'(tau,t) = kap(p,q) (1+U'(p,q)) SF_pq(v-1,u-1) SB_pq(v+1,u+1)   for the v-th child of p and the u-th of q

    Nothing is subtracted or divided. Forests are fine: U' = 0 at every root. O(T T') per pair. Positive semidefinite
    when kx is. Marginalized labeling kernel on trees.

    >>> from gramline.kernels import TreeLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_trees([["eats", "dog", "bone"]], [[[1, 2], [], []]], [["V", "N", "N"]])
    >>> TreeLabeling().gram(corpus)
    array([[2.25, 0.  , 0.  ],
           [0.  , 1.75, 0.  ],
           [0.  , 0.  , 1.75]])
    """

    name: ClassVar[str] = "tree-labeling"
    summary: ClassVar[str] = "connected subtrees of ordered trees"
    packed_kind: ClassVar[str] = "trees"

    def recursion(self, rows: Packed, cols: Packed) -> Subtrees:
        return Subtrees(rows, cols)


class Subtrees:
    """U' and D' over connected subtrees."""

    def __init__(self, rows: Packed, cols: Packed) -> None:
        assert isinstance(rows, PackedTrees)
        assert isinstance(cols, PackedTrees)
        self.rows = LevelOrder.of(rows)
        self.cols = ColumnTrees.of(self.rows if cols is rows else LevelOrder.of(cols), chunk_starts(cols.starts))
        cells = int(rows.lengths.max(initial=0)) * (int(np.diff(self.cols.chunks).max(initial=0)) + 1)
        self.memory = np.empty((3, cells))

    def run(self, strip: Strip) -> bool:
        return bool(sweep_trees(self.rows, self.cols, strip, self.memory))
