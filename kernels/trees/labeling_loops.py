"""The two passes of the tree labeling kernel over a strip of row trees, chunk by chunk of columns.

Columns stand by rank among their siblings (`ColumnTrees`), so that every inner loop but the look at a parent, at a
last child and at the original column runs over neighbouring memory.
"""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.trees.level_order import ColumnTrees, LevelOrder


@jit
def extend_forward(kap: Floats, down: Floats, before: Floats, ranks: Offsets, running: Floats, after: Floats) -> None:
    """after[u] = SF(v, u) from before[u] = SF(v - 1, u), u over all columns; the sentinel column is SF(., 0) = 1.

    Q(v, u) = Q(v, u - 1) + KD(tau_v, t_u) SF(v - 1, u - 1), kept in `running`; u - 1 is one rank lower.
    """
    for u in range(ranks[0], ranks[1]):
        running[u] = kap[u] * down[u]
        after[u] = before[u] + running[u]
    for rank in range(1, len(ranks) - 1):
        low, size, left = ranks[rank], ranks[rank + 1] - ranks[rank], ranks[rank - 1]
        sums, left_sums = running[low : low + size], running[left : left + size]
        values, factors, left_before = kap[low : low + size], down[low : low + size], before[left : left + size]
        for i in range(size):
            sums[i] = left_sums[i] + values[i] * factors[i] * left_before[i]
        for u in range(low, low + size):
            after[u] = before[u] + running[u]
    after[len(after) - 1] = 1.0


@jit
def extend_backward(kap: Floats, down: Floats, before: Floats, ranks: Offsets, running: Floats, after: Floats) -> None:
    """after[u] = SB(v, u) from before[u] = SB(v + 1, u): the mirror image, u + 1 is one rank higher."""
    for rank in range(len(ranks) - 2, -1, -1):
        low, high = ranks[rank], ranks[rank + 1]
        size = ranks[rank + 2] - high if rank + 2 < len(ranks) else 0  # columns that have a right sibling
        sums, right_sums = running[low : low + size], running[high : high + size]
        values, factors, right_before = kap[low : low + size], down[low : low + size], before[high : high + size]
        for i in range(size):
            sums[i] = right_sums[i] + values[i] * factors[i] * right_before[i]
        for u in range(low + size, high):
            running[u] = kap[u] * down[u]
        for u in range(low, high):
            after[u] = before[u] + running[u]
    after[len(after) - 1] = 1.0


@jit
def around_siblings(forward: Floats, backward: Floats, ranks: Offsets, around: Floats) -> None:
    """around[u] = SF(v - 1, u - 1) SB(v + 1, u + 1), from `forward` = SF(v - 1, .) and `backward` = SB(v + 1, .)."""
    for u in range(ranks[0], ranks[1]):
        around[u] = 1.0
    for rank in range(1, len(ranks) - 1):
        low, size, left = ranks[rank], ranks[rank + 1] - ranks[rank], ranks[rank - 1]
        values, left_values = around[low : low + size], forward[left : left + size]
        right_values, lefts = backward[low : low + size], around[left : left + size]
        for i in range(size):
            values[i] = left_values[i]
            lefts[i] *= right_values[i]


@jit
def write_row(
    position: int, low: int, kx: Floats, scale: float, factors: Floats, places: Ints, limit: float, out: Floats
) -> int:
    """out = scale * kx * factors for one row, columns in their own order; how many values are beyond +-limit."""
    seen, target = kx[position, low : low + len(places)], out[position, low : low + len(places)]
    n_bad = 0
    for t in range(len(places)):
        value = scale * seen[t] * factors[places[t]]
        n_bad += not (abs(value) <= limit)
        target[t] = value
    return n_bad


@jit
def sweep_trees(
    rows: LevelOrder,
    first: int,
    last: int,
    cols: ColumnTrees,
    kx: Floats,
    weights: Floats,
    factor: float,
    scale: float,
    limit: float,
    tables: Floats,
    out: Floats,
) -> bool:
    """out = scale * kx * (1+U') * (1+D') for row structures first..last-1; whether all of it is within +-limit.

    kap = factor * weights. `tables` is room for three tables of one row tree and one chunk, shape (3, cells): `kap`
    (later kap (1+U')), `down` = 1+D' (later (1+U')(1+D')), and SF between neighbouring children, a row for each node
    that has a left sibling.
    """
    origin = rows.starts[first]
    n_bad = 0
    for structure in range(first, last):
        base = rows.starts[structure]
        n_nodes = rows.starts[structure + 1] - base
        slots = np.full(n_nodes + 1, -1, np.int64)  # row of SF and SB that belongs to the gap left of a node
        n_slots = 0
        for node in range(1, n_nodes):
            if rows.parents[base + node] >= 0 and rows.parents[base + node] == rows.parents[base + node - 1]:
                slots[node] = n_slots
                n_slots += 1
        for chunk in range(len(cols.chunks) - 1):
            low, high = cols.chunks[chunk], cols.chunks[chunk + 1]
            width = high - low
            ranks = cols.rank_starts[cols.rank_indptr[chunk] : cols.rank_indptr[chunk + 1]]
            columns, places = cols.columns[low:high], cols.places[low:high]
            parents, last_children = cols.parents[low:high], cols.last_children[low:high]
            kap = tables[0, : n_nodes * (width + 1)].reshape(n_nodes, width + 1)
            down = tables[1, : n_nodes * width].reshape(n_nodes, width)
            forward = tables[2, : n_slots * (width + 1)].reshape(n_slots, width + 1)
            backward = np.empty((2, width + 1))
            ones = np.ones(width + 1)
            room = np.empty(width + 1)
            running = np.empty(width)

            for node in range(n_nodes - 1, -1, -1):
                values, row = weights[rows.nodes[base + node] - origin, low:high], kap[node]
                for u in range(width):
                    row[u] = factor * values[columns[u]]
                row[width] = 0.0
                continued = down[node]
                n_children = rows.n_children[base + node]
                if n_children == 0:
                    continued[:] = 1.0
                    continue
                child = rows.first_children[base + node] - base
                before = ones
                for number in range(child, child + n_children):
                    after = room if number == child + n_children - 1 else forward[slots[number + 1]]
                    extend_forward(kap[number], down[number], before, ranks, running, after)
                    before = after
                for u in range(width):
                    continued[u] = before[last_children[u]]

            for node in range(n_nodes):
                above = kap[node]
                if rows.parents[base + node] < 0:
                    n_bad += write_row(rows.nodes[base + node] - origin, low, kx, scale, down[node], places, limit, out)
                n_children = rows.n_children[base + node]
                child = rows.first_children[base + node] - base
                before = ones
                # From right to left, so that SB(v + 1, .) is needed for one child at a time.
                for number in range(child + n_children - 1, child - 1, -1):
                    left, is_last = slots[number], number == child + n_children - 1
                    if left >= 0 or not is_last:
                        around_siblings(forward[left] if left >= 0 else ones, before, ranks, room)
                        for u in range(width):
                            room[u] = 1.0 + above[parents[u]] * room[u]
                    else:
                        for u in range(width):
                            room[u] = 1.0 + above[parents[u]]
                    if number > child:
                        after = backward[number % 2]
                        extend_backward(kap[number], down[number], before, ranks, running, after)
                        before = after
                    row, continued = kap[number], down[number]
                    if rows.n_children[base + number] > 0:
                        for u in range(width):
                            row[u] *= room[u]
                    for u in range(width):
                        continued[u] *= room[u]
                    n_bad += write_row(
                        rows.nodes[base + number] - origin, low, kx, scale, continued, places, limit, out
                    )
    return n_bad == 0
