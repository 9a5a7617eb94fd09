"""The two passes of the tree labeling kernel over a strip of row trees, chunk by chunk of columns.

Columns are sorted by rank among their siblings (`ColumnTrees`), so every inner loop runs over neighbouring memory,
except where it reads a parent or a last child, or puts a finished row in order again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import ask_for, jit
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Floats, Offsets
from gramline.kernels.trees.level_order import ColumnChunk, ColumnTrees, LevelOrder, RowTree, column_chunk, row_tree


class Tables(NamedTuple):
    """What the two passes keep of one row tree and one chunk of `width` columns; column `width` is a sentinel."""

    kap: Floats  # shape (n_nodes, width + 1): kap, later kap (1+U')
    down: Floats  # shape (n_nodes, width): 1+D'
    forward: Floats  # shape (n_gaps, width + 1): SF between neighbouring children
    ones: Floats  # shape (width + 1,): SF and SB of no child
    room: Floats  # shape (width + 1,)
    running: Floats  # shape (width + 1,): Q
    backward: Floats  # shape (2, width + 1): SB of the last two children


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
def write_row(row: int, chunk: ColumnChunk, strip: Strip, up: Floats, down: Floats, products: Floats) -> int:
    """out = scale * kx * (1+U')(1+D') for one row, columns in their own order; how many values are beyond +-limit.

    `products` is room for a row.
    """
    seen, target = strip.kx[row, chunk.low : chunk.high], strip.out[row, chunk.low : chunk.high]
    scale, limit, places = strip.scale, strip.limit, chunk.places
    n_bad = 0
    for u in range(len(places)):
        value = scale * seen[u] * (down[u] * up[u])
        n_bad += not (abs(value) <= limit)
        products[u] = value
    for t in range(len(places)):
        target[t] = products[places[t]]
    return n_bad


@jit
def tables_of(memory: Floats, tree: RowTree, chunk: ColumnChunk) -> Tables:
    """The tables of one row tree and one chunk, in `memory` where they grow with both."""
    n_nodes, n_gaps, width = len(tree.rows), tree.n_gaps, chunk.high - chunk.low
    kap = memory[0, : n_nodes * (width + 1)].reshape(n_nodes, width + 1)
    down = memory[1, : n_nodes * width].reshape(n_nodes, width)
    forward = memory[2, : n_gaps * (width + 1)].reshape(n_gaps, width + 1)
    lines = np.empty((5, width + 1), memory.dtype)
    lines[0] = 1.0
    return Tables(kap, down, forward, lines[0], lines[1], lines[2], lines[3:])


@jit
def sum_downward(tree: RowTree, chunk: ColumnChunk, strip: Strip, tables: Tables) -> None:
    """kap and 1+D' of all nodes, children first, and SF of all gaps between siblings."""
    last_children, width = chunk.last_children, chunk.high - chunk.low
    for node in range(len(tree.rows) - 1, -1, -1):
        weights, kap, down = strip.weights[tree.rows[node], chunk.low : chunk.high], tables.kap[node], tables.down[node]
        for u in range(width):
            kap[u] = strip.factor * weights[u]
        kap[width] = 0.0
        if tree.n_children[node] == 0:
            down[:] = 1.0
            continue
        first = tree.first_children[node]
        last = first + tree.n_children[node] - 1
        before = tables.ones
        for child in range(first, last + 1):
            after = tables.room if child == last else tables.forward[tree.gaps[child + 1]]
            extend_forward(tables.kap[child], tables.down[child], before, chunk.ranks, tables.running, after)
            before = after
        for u in range(width):
            down[u] = before[last_children[u]]


@jit
def continue_child(forward: Floats, backward: Floats, above: Floats, chunk: ColumnChunk, row: Floats) -> None:
    """row = 1+U' of a child, from SF left and SB right of it and `above` = kap (1+U') of its parent."""
    parents = chunk.parents
    around_siblings(forward, backward, chunk.ranks, row)
    for u in range(len(parents)):
        row[u] = 1.0 + above[parents[u]] * row[u]


@jit
def continue_only_child(above: Floats, chunk: ColumnChunk, row: Floats) -> None:
    """row = 1+U' of a child without siblings: SF and SB are 1."""
    parents = chunk.parents
    for u in range(len(parents)):
        row[u] = 1.0 + above[parents[u]]


@jit
def continue_children(node: int, tree: RowTree, chunk: ColumnChunk, strip: Strip, tables: Tables) -> int:
    """kap (1+U') of the children of a node, and their rows of the tile; how many values are beyond +-limit.

    From right to left, so that SB(v + 1, .) is needed for one child at a time.
    """
    first = tree.first_children[node]
    last = first + tree.n_children[node] - 1
    row, right, n_bad = tables.room, tables.ones, 0
    for child in range(last, first - 1, -1):
        kap, down = tables.kap[child], tables.down[child]
        ask_for(strip.out[tree.rows[child], chunk.low : chunk.high])
        if first == last:
            continue_only_child(tables.kap[node], chunk, row)
        else:
            left = tables.ones if child == first else tables.forward[tree.gaps[child]]
            continue_child(left, right, tables.kap[node], chunk, row)
        if child > first:
            after = tables.backward[child % 2]
            extend_backward(kap, down, right, chunk.ranks, tables.running, after)
            right = after
        n_bad += write_row(tree.rows[child], chunk, strip, row, down, tables.running)
        if tree.n_children[child] > 0:
            for u in range(len(down)):
                kap[u] *= row[u]
    return n_bad


@jit
def sum_upward(tree: RowTree, chunk: ColumnChunk, strip: Strip, tables: Tables) -> int:
    """1+U' of all nodes, parents first, and G = scale kx (1+U')(1+D'); how many values are beyond +-limit."""
    n_bad = 0
    for node in range(len(tree.rows)):
        if tree.is_root[node]:
            n_bad += write_row(tree.rows[node], chunk, strip, tables.ones, tables.down[node], tables.room)
        n_bad += continue_children(node, tree, chunk, strip, tables)
    return n_bad


@jit
def sweep_trees(rows: LevelOrder, cols: ColumnTrees, strip: Strip, memory: Floats) -> bool:
    """out = scale * kx * (1+U') * (1+D') for the row structures of a strip; whether all of it is within +-limit.

    `memory` is room for the three tables that grow with a row tree and a chunk, shape (3, cells).
    """
    n_bad = 0
    for structure in range(strip.first, strip.last):
        tree = row_tree(rows, structure, rows.starts[strip.first])
        for number in range(len(cols.chunks) - 1):
            chunk = column_chunk(cols, number)
            tables = tables_of(memory, tree, chunk)
            sum_downward(tree, chunk, strip, tables)
            n_bad += sum_upward(tree, chunk, strip, tables)
    return n_bad == 0
