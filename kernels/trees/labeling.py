"""The labeling kernel between nodes of ordered trees, over connected subtrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.base import Tile, chunk_starts, is_same, mirror, tile_memory
from gramline.kernels.marginalized import LinkedLabeling, Strip
from gramline.kernels.marginals import Marginals, MarginalTables
from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.equal_columns import list_equal_columns
from gramline.kernels.packing import Offsets, Packed, PackedTrees, frozen
from gramline.kernels.trees.labeling_loops import sweep_trees
from gramline.kernels.trees.level_order import ColumnTrees, LevelOrder
from gramline.kernels.trees.matching_loops import MatchTables, TreePair, fill_matches

CHUNK_COLUMNS = 1024
SPARSE_SHARE = 0.15  # share of equal pairs below which visiting only them beats passing over all; measured
MOST_CELLS = 1 << 21  # of the largest row tree and all columns: three tables of so many numbers stay below 50 MB


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

    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        if isinstance(self.observation, Identity):
            pair = tree_pair(rows, cols)
            few = pair.equal.n_equal < SPARSE_SHARE * rows.n_positions * cols.n_positions
            if few and int(rows.lengths.max(initial=0)) * cols.n_positions <= MOST_CELLS:
                out = tile_memory(rows.n_positions, cols.n_positions, dtype, memory)
                if self._fill_matches(rows, cols, pair, out):
                    return out[:, : cols.n_positions]
        return super().tile(rows, cols, dtype, memory)

    def _fill_matches(self, rows: Packed, cols: Packed, pair: TreePair, out: Tile) -> bool:
        """Fill the tile from its equal pairs alone; False where float32 does not hold a number on the way."""
        is_single = out.dtype == np.float32 and self.is_single(rows, cols)
        precision = np.float32 if is_single else np.float64
        marginals = Marginals(rows, cols, self.label_matrix(), precision)
        link = precision(self.link(rows.n_labels) * marginals.factor)
        scale, limit = precision(float(self.c) ** 2), precision(np.finfo(out.dtype).max)
        marginal_tables = MarginalTables(marginals.left, marginals.right, link)
        failed = fill_matches(pair, marginal_tables, scale, limit, match_tables(pair, precision), out)
        if failed >= 0 and not is_single:
            raise self.overflow_in(rows, cols, (failed, failed + 1), out.dtype)
        if failed < 0 and is_same(rows, cols):
            mirror(out)
        return failed < 0

    def recursion(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> Subtrees:
        return Subtrees(rows, cols, precision)


def ordered(packed: Packed) -> LevelOrder:
    """The trees of a packed corpus in level order."""
    assert isinstance(packed, PackedTrees)
    return LevelOrder.of(packed)


def tree_pair(rows: Packed, cols: Packed) -> TreePair:
    """Both sides in level order, and their equal nodes."""
    left = ordered(rows)
    right = left if cols is rows else ordered(cols)
    row_codes, col_codes = frozen(rows.observed[left.nodes], np.int32), frozen(cols.observed[right.nodes], np.int32)
    inner_nodes = np.flatnonzero(right.n_children)
    inner = list_equal_columns(row_codes, col_codes[inner_nodes])
    inner = inner._replace(columns=inner_nodes[inner.columns].astype(np.int32))
    return TreePair(left, right, row_codes, col_codes, list_equal_columns(row_codes, col_codes), inner)


def match_tables(pair: TreePair, precision: type[np.floating[Any]]) -> MatchTables:
    """Room for the equal pairs of the largest row tree, and for the children of any two nodes."""
    longest = int(np.diff(pair.rows.starts).max(initial=0))
    n, m = (int(side.n_children.max(initial=0)) for side in (pair.rows, pair.cols))
    kap, down, up = np.empty((3, longest, len(pair.cols.nodes)), precision)
    forward, backward = np.empty((2, n + 1, m + 1), precision)
    matched = np.empty((2, longest * np.count_nonzero(pair.cols.n_children)), np.int32)
    return MatchTables(kap, down, up, np.empty((n, m), precision), forward, backward, matched)


class Subtrees:
    """U' and D' over connected subtrees."""

    def __init__(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> None:
        self.rows = ordered(rows)
        order = self.rows if cols is rows else ordered(cols)
        self.cols = ColumnTrees.of(order, chunk_starts(cols.starts, CHUNK_COLUMNS))
        cells = int(rows.lengths.max(initial=0)) * (int(np.diff(self.cols.chunks).max(initial=0)) + 1)
        self.memory = np.empty((3, cells), precision)

    @property
    def columns(self) -> Offsets:
        return self.cols.columns

    def run(self, strip: Strip) -> bool:
        return bool(sweep_trees(self.rows, self.cols, strip, self.memory))
