"""Compiled loop behind `LevelOrder`."""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Ints, Offsets


@jit
def level_order(starts: Offsets, link_indptr: Offsets, link_targets: Ints) -> tuple[Offsets, Offsets, Offsets, int]:
    """Node, parent's place (-1: root) and first child's place of every place, int64 (n,) each; and a node that is
    no tree's (two parents, or on a cycle), -1 when there is none."""
    n_nodes = starts[-1]
    nodes = np.empty(n_nodes, np.int64)
    parents = np.full(n_nodes, -1, np.int64)
    first_children = np.zeros(n_nodes, np.int64)
    is_child = np.zeros(n_nodes, np.bool_)
    for structure in range(len(starts) - 1):
        base, end = starts[structure], starts[structure + 1]
        for link in range(link_indptr[base], link_indptr[end]):
            target = base + link_targets[link]
            if is_child[target]:
                return nodes, parents, first_children, target
            is_child[target] = True
        filled = base
        for node in range(base, end):
            if not is_child[node]:
                nodes[filled] = node
                filled += 1
        place = base
        while place < filled:
            node = nodes[place]
            first_children[place] = filled
            for link in range(link_indptr[node], link_indptr[node + 1]):
                nodes[filled] = base + link_targets[link]
                parents[filled] = place
                filled += 1
            place += 1
        if filled < end:
            # What the queue never reached hangs below a cycle or lies on it; walking up as often as there are nodes
            # would name a node on it, any unreached one serves.
            reached = np.zeros(end - base, np.bool_)
            for place in range(base, filled):
                reached[nodes[place] - base] = True
            for node in range(base, end):
                if not reached[node - base]:
                    return nodes, parents, first_children, node
    return nodes, parents, first_children, -1
