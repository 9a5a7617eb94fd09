"""Nodes of ordered trees in level order: parents before children, the children of a node side by side.

In this order the children of a node are a range, its left sibling is the node before it, and the reverse order meets
children first. Any node order of a packed corpus gives the same trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.errors import PackingError
from gramline.kernels.packing import Ints, Offsets, PackedTrees, place
from gramline.kernels.ranges import offsets_from_lengths

Places = NDArray[np.uint32]  # unsigned numbers are looked up faster


class LevelOrder(NamedTuple):
    """Trees renumbered by level; places count over the whole corpus, structures keep their ranges."""

    starts: Offsets  # shape (n_structures + 1,)
    nodes: Offsets  # position of the node in each place, shape (n,)
    parents: Offsets  # place of the parent, -1 for a root, shape (n,)
    first_children: Offsets  # place of the first child (undefined without children), shape (n,)
    n_children: Offsets  # shape (n,)

    @classmethod
    def of(cls, packed: PackedTrees) -> LevelOrder:
        """Renumber. A corpus holds trees; packed arrays that do not are refused, because they have no level order."""
        nodes, parents, first_children, wrong = level_order(packed.starts, packed.link_indptr, packed.link_targets)
        if wrong >= 0:
            problem = "the node has two parents or lies on a cycle, so this is no tree"
            raise PackingError(problem, advice="give each node one parent", **place(packed.starts, wrong))
        return cls(packed.starts, nodes, parents, first_children, np.diff(packed.link_indptr)[nodes])


class RowTree(NamedTuple):
    """One tree of the left side, its nodes in level order and counted from 0."""

    rows: Offsets  # row of the strip of each node, shape (n_nodes,)
    is_root: NDArray[np.bool_]
    first_children: Offsets
    n_children: Offsets
    gaps: Offsets  # number of the gap between a node and its left sibling, -1 without one
    n_gaps: int


class ColumnTrees(NamedTuple):
    """The right side of the recursion: the columns of each chunk by rank among their siblings.

    First come all first siblings, then all second ones, and so on; longer lists of siblings first, so that the left
    sibling of the i-th node of rank r is the i-th node of rank r - 1. All indices count from the start of the chunk;
    where there is no neighbour they are the width of the chunk, the place of a sentinel column.
    """

    chunks: Offsets  # shape (n_chunks + 1,)
    rank_indptr: Offsets  # ranks of chunk k are rank_starts[rank_indptr[k]:rank_indptr[k + 1]], its width included
    rank_starts: Offsets  # first column of each rank
    columns: Offsets  # column of the tile in each place
    places: Places  # place of each column: the inverse of `columns`
    parents: Places  # place of the parent
    last_children: Places  # place of the last child

    @classmethod
    def of(cls, order: LevelOrder, chunks: Offsets) -> ColumnTrees:
        n = len(order.nodes)
        widths = np.diff(chunks)
        chunk = np.repeat(np.arange(len(widths)), widths)
        is_root = order.parents < 0
        ranks = np.where(is_root, 0, np.arange(n) - order.first_children[order.parents])
        siblings = np.where(is_root, 1, order.n_children[order.parents])
        sorted_nodes = np.lexsort((np.arange(n) - ranks, -siblings, ranks, chunk))
        place = np.empty(n + 1, np.int64)  # of each node in level order
        place[sorted_nodes] = np.arange(n)
        place[n] = -1
        origin, width = chunks[:-1][chunk], widths[chunk]

        def within(neighbours: Offsets, exists: NDArray[np.bool_]) -> Places:
            """Places of some neighbours (given in level order) of the sorted nodes, or the sentinel."""
            places_within = np.where(exists, place[np.where(exists, neighbours, n)] - origin, width)
            return places_within[sorted_nodes].astype(np.uint32)

        columns = order.nodes[sorted_nodes]
        places = np.empty(n, np.uint32)
        places[columns] = np.arange(n) - origin
        starts = np.flatnonzero(np.diff(chunk * (n + 1) + ranks[sorted_nodes], prepend=-1))
        n_ranks = np.bincount(chunk[starts], minlength=len(widths))
        rank_indptr = offsets_from_lengths(n_ranks + 1)
        rank_starts = np.empty(rank_indptr[-1], np.int64)
        rank_starts[rank_indptr[1:] - 1] = widths
        rank_starts[np.arange(len(starts)) + chunk[starts]] = starts - chunks[:-1][chunk[starts]]
        last_child = order.first_children + order.n_children - 1
        return cls(
            chunks,
            rank_indptr,
            rank_starts,
            columns,
            places,
            within(order.parents, ~is_root),
            within(last_child, order.n_children > 0),
        )


class ColumnChunk(NamedTuple):
    """One chunk of `ColumnTrees`: the columns low..high-1 of the tile."""

    low: int
    high: int
    ranks: Offsets  # first place of each rank, and the width of the chunk
    places: Places
    parents: Places
    last_children: Places


@jit
def row_tree(order: LevelOrder, structure: int, origin: int) -> RowTree:
    """Tree `structure`, its rows counted from position `origin`."""
    base = order.starts[structure]
    n_nodes = order.starts[structure + 1] - base
    rows, first_children = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    is_root, gaps = np.empty(n_nodes, np.bool_), np.full(n_nodes, -1, np.int64)
    n_gaps = 0
    for node in range(n_nodes):
        parent = order.parents[base + node]
        rows[node] = order.nodes[base + node] - origin
        is_root[node] = parent < 0
        first_children[node] = order.first_children[base + node] - base
        if node > 0 and parent >= 0 and parent == order.parents[base + node - 1]:
            gaps[node] = n_gaps
            n_gaps += 1
    return RowTree(rows, is_root, first_children, order.n_children[base : base + n_nodes], gaps, n_gaps)


@jit
def column_chunk(cols: ColumnTrees, number: int) -> ColumnChunk:
    """Chunk `number`."""
    low, high = cols.chunks[number], cols.chunks[number + 1]
    ranks = cols.rank_starts[cols.rank_indptr[number] : cols.rank_indptr[number + 1]]
    places, parents, last_children = cols.places[low:high], cols.parents[low:high], cols.last_children[low:high]
    return ColumnChunk(low, high, ranks, places, parents, last_children)


@jit
def level_order(starts: Offsets, link_indptr: Offsets, link_targets: Ints) -> tuple[Offsets, Offsets, Offsets, int]:
    """Node, parent's place (-1: root) and first child's place of every place, int64 (n,) each; and a wrong node.

    A wrong node has two parents or lies on a cycle; -1 when there is none.
    """
    n_nodes = starts[-1]
    nodes = np.empty(n_nodes, np.int64)
    parents = np.full(n_nodes, -1, np.int64)
    first_children = np.zeros(n_nodes, np.int64)
    is_unplaced_child = np.zeros(n_nodes, np.bool_)
    for structure in range(len(starts) - 1):
        base, end = starts[structure], starts[structure + 1]
        for link in range(link_indptr[base], link_indptr[end]):
            target = base + link_targets[link]
            if is_unplaced_child[target]:  # of a second parent
                return nodes, parents, first_children, target
            is_unplaced_child[target] = True
        filled = base
        for node in range(base, end):
            if not is_unplaced_child[node]:
                nodes[filled] = node
                filled += 1
        place = base
        while place < filled:
            node = nodes[place]
            first_children[place] = filled
            for link in range(link_indptr[node], link_indptr[node + 1]):
                nodes[filled] = base + link_targets[link]
                parents[filled] = place
                is_unplaced_child[nodes[filled]] = False
                filled += 1
            place += 1
        for node in range(base, end):
            if is_unplaced_child[node]:  # on a cycle, or below one
                return nodes, parents, first_children, node
    return nodes, parents, first_children, -1
