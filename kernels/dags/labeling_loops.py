"""The two passes of the DAG labeling kernel over a strip of row graphs, chunk by chunk of columns."""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.dags.topology import ColumnGraphs, Neighbours, RowGraphs
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Floats, Offsets


@jit
def sum_neighbours(values: Floats, neighbours: Neighbours, chunk: int, low: int, high: int, sums: Floats) -> None:
    """sums[t] = sum of values[u] over the neighbours u of t; `values` has a sentinel 0 behind the last column."""
    firsts = neighbours.firsts[low:high]
    for t in range(high - low):
        sums[t] = values[firsts[t]]
    for link in range(neighbours.more_starts[chunk], neighbours.more_starts[chunk + 1]):
        sums[neighbours.more_columns[link]] += values[neighbours.more_neighbours[link]]


@jit
def continue_row(sums: Floats, indptr: Offsets, links: Offsets, node: int, base: int, row: Floats) -> None:
    """row = 1 + sum of the rows of `sums` that belong to the neighbours of `node`."""
    row[:] = 1.0
    for link in range(indptr[node], indptr[node + 1]):
        other = sums[links[link] - base]
        for t in range(len(row)):
            row[t] += other[t]


@jit
def sweep_graphs(rows: RowGraphs, cols: ColumnGraphs, strip: Strip, tables: Floats) -> bool:
    """out = scale * kx * (1+U') * (1+D') for the row structures of a strip; whether all of it is within +-limit.

    `tables` is room for two tables of one row graph and one chunk, shape (2, cells): `upward` = 1+U', and `sums`,
    first H = KU A, then KD A^T.
    """
    first, last, kx, weights, out = strip.first, strip.last, strip.kx, strip.weights, strip.out
    factor, scale, limit = strip.factor, strip.scale, strip.limit
    origin = rows.starts[first]
    n_bad = 0
    for structure in range(first, last):
        base = rows.starts[structure]
        n_nodes = rows.starts[structure + 1] - base
        for chunk in range(len(cols.chunks) - 1):
            low, high = cols.chunks[chunk], cols.chunks[chunk + 1]
            width = high - low
            upward = tables[0, : n_nodes * width].reshape(n_nodes, width)
            sums = tables[1, : n_nodes * width].reshape(n_nodes, width)
            downward = np.empty(width, tables.dtype)
            product = np.zeros(width + 1, tables.dtype)
            for place in range(n_nodes):
                node = rows.order[base + place]
                values, row = weights[node - origin, low:high], upward[node - base]
                continue_row(sums, rows.parent_indptr, rows.parents, node, base, row)
                if rows.child_indptr[node + 1] > rows.child_indptr[node]:
                    for t in range(width):
                        product[t] = factor * values[t] * row[t]
                    sum_neighbours(product, cols.parents, chunk, low, high, sums[node - base])
            for place in range(n_nodes - 1, -1, -1):
                node = rows.order[base + place]
                values, row = weights[node - origin, low:high], upward[node - base]
                seen, target = kx[node - origin, low:high], out[node - origin, low:high]
                continue_row(sums, rows.child_indptr, rows.children, node, base, downward)
                for t in range(width):
                    value = scale * seen[t] * (row[t] * downward[t])
                    n_bad += not (abs(value) <= limit)
                    target[t] = value
                if rows.parent_indptr[node + 1] > rows.parent_indptr[node]:
                    for t in range(width):
                        product[t] = factor * values[t] * downward[t]
                    sum_neighbours(product, cols.children, chunk, low, high, sums[node - base])
    return n_bad == 0
