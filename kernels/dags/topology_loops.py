"""Compiled loop behind `RowGraphs`."""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Offsets


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
