"""Directed acyclic graphs prepared for the path recursion: an order of the row nodes, neighbours of both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.errors import PackingError
from gramline.kernels.packing import Ints, Offsets, PackedDags, place


class RowGraphs(NamedTuple):
    """The left side: sources before targets, and the neighbours of each node (positions of the corpus) in CSR form."""

    starts: Offsets  # shape (n_structures + 1,)
    order: Offsets  # positions of each structure, every one behind its parents, shape (n,)
    parent_indptr: Offsets
    parents: Offsets
    child_indptr: Offsets
    children: Offsets

    @classmethod
    def of(cls, packed: PackedDags) -> RowGraphs:
        """Order the nodes. An edge given twice is one edge.

        A corpus has no cycle; packed arrays with one are refused, because they have no order.
        """
        sources, targets = edges_of(packed)
        parent_indptr, parents = _in_csr_form(targets, sources, packed.n_positions)
        child_indptr, children = _in_csr_form(sources, targets, packed.n_positions)
        order, wrong = topological_order(packed.starts, parent_indptr, child_indptr, children)
        if wrong >= 0:
            problem = "the node lies on or behind a cycle"
            raise PackingError(problem, advice="remove one of its edges", **place(packed.starts, wrong))
        return cls(packed.starts, order, parent_indptr, parents, child_indptr, children)


class Neighbours(NamedTuple):
    """The right side of one direction: H[t] = sum over neighbours u of t of a row of values.

    `firsts` holds the first neighbour of every column, or a sentinel, the width of the chunk. All other neighbours are
    in one list of (column, neighbour) pairs per chunk. Columns count from the start of their chunk.
    """

    firsts: NDArray[np.uint32]  # shape (n,); unsigned numbers are looked up faster
    more_starts: Offsets  # shape (n_chunks + 1,)
    more_columns: Ints
    more_neighbours: Ints

    @classmethod
    def of(cls, columns: Offsets, neighbours: Offsets, chunks: Offsets) -> Neighbours:
        """From edges (column, neighbour), sorted by column."""
        widths = np.diff(chunks)
        n = int(chunks[-1])
        origin = np.repeat(chunks[:-1], widths)
        firsts = np.repeat(widths, widths)
        is_first = np.ones(len(columns), np.bool_)
        is_first[1:] = columns[1:] != columns[:-1]
        firsts[columns[is_first]] = neighbours[is_first] - origin[columns[is_first]]
        more, others = columns[~is_first], neighbours[~is_first]
        return cls(
            firsts.astype(np.uint32).reshape(n),
            np.searchsorted(more, chunks).astype(np.int64),
            (more - origin[more]).astype(np.int32),
            (others - origin[more]).astype(np.int32),
        )


class ColumnGraphs(NamedTuple):
    """The right side: chunks of columns and both directions."""

    chunks: Offsets  # shape (n_chunks + 1,)
    parents: Neighbours
    children: Neighbours

    @classmethod
    def of(cls, packed: PackedDags, chunks: Offsets) -> ColumnGraphs:
        sources, targets = edges_of(packed)
        by_target = np.lexsort((sources, targets))
        return cls(
            chunks,
            Neighbours.of(targets[by_target], sources[by_target], chunks),
            Neighbours.of(sources, targets, chunks),
        )


def edges_of(packed: PackedDags) -> tuple[Offsets, Offsets]:
    """Sources and targets of all edges as positions of the corpus, sorted and without repeats."""
    out_degrees = np.diff(packed.link_indptr)
    sources = np.repeat(np.arange(packed.n_positions), out_degrees)
    bases = np.repeat(np.repeat(packed.starts[:-1], packed.lengths), out_degrees)
    both = np.unique(np.stack([sources, bases + packed.link_targets], axis=1), axis=0)
    return both[:, 0], both[:, 1]


def _in_csr_form(owners: Offsets, neighbours: Offsets, n: int) -> tuple[Offsets, Offsets]:
    """Neighbours of each owner in CSR form, sorted."""
    order = np.lexsort((neighbours, owners))
    return np.searchsorted(owners[order], np.arange(n + 1)).astype(np.int64), neighbours[order]


@jit
def topological_order(
    starts: Offsets, parent_indptr: Offsets, child_indptr: Offsets, children: Offsets
) -> tuple[Offsets, int]:
    """Positions of each structure with parents first, int64 (n,); and a node that no order reaches, -1 if none."""
    order = np.empty(starts[-1], np.int64)
    waiting = parent_indptr[1:] - parent_indptr[:-1]
    for structure in range(len(starts) - 1):
        filled = starts[structure]
        for node in range(starts[structure], starts[structure + 1]):
            if waiting[node] == 0:
                order[filled] = node
                filled += 1
        place = starts[structure]
        while place < filled:
            node = order[place]
            for link in range(child_indptr[node], child_indptr[node + 1]):
                child = children[link]
                waiting[child] -= 1
                if waiting[child] == 0:
                    order[filled] = child
                    filled += 1
            place += 1
        if filled < starts[structure + 1]:
            for node in range(starts[structure], starts[structure + 1]):
                if waiting[node] > 0:
                    return order, node
    return order, -1
