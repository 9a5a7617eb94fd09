"""The tree labeling kernel where kx is 0 or 1: only equal pairs of nodes and their children are visited. Jitted only.

Nodes of both sides in level order, so the children of a node are neighbours. Operation by operation what the passes
over whole rows do, without their zeros: the same bytes, in either precision.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginals import MarginalTables
from gramline.kernels.observations.equal_columns import EqualColumns
from gramline.kernels.packing import Ints
from gramline.kernels.trees.level_order import LevelOrder

Table = NDArray[Any]  # float64 or float32


class TreePair(NamedTuple):
    """Both sides, and which of their nodes are equal; all in level order."""

    rows: LevelOrder
    cols: LevelOrder
    row_codes: Ints  # shape (n_rows,)
    col_codes: Ints  # shape (n_cols,)
    equal: EqualColumns
    inner: EqualColumns  # the same without columns that have no children


class MatchTables(NamedTuple):
    """What is known of equal pairs of one row tree."""

    kap: Table  # shape (n_nodes, n_cols); entries of other pairs hold anything
    down: Table  # the same: 1+D'
    up: Table  # the same: 1+U'
    products: Table  # shape (most children of a row, of a column): kap (1+D') between the children of a pair
    forward: Table  # one more either way: SF of the first v and the first u children
    backward: Table  # the same: SB of the children from v and from u on
    matched: Ints  # shape (2, most of them): rows and columns of equal pairs that have equal children


@jit
def match_forward(products: Table, n: int, m: int, sums: Table) -> None:
    """sums[v, u] = SF(v, u) for up to n and m children, both at least 1."""
    sums[0, : m + 1] = 1.0
    for v in range(n):
        sums[v + 1, 0] = 1.0
        run = products[v, 0]
        sums[v + 1, 1] = sums[v, 1] + run
        for u in range(1, m):
            run += products[v, u] * sums[v, u]
            sums[v + 1, u + 1] = sums[v, u + 1] + run


@jit
def match_backward(products: Table, n: int, m: int, sums: Table) -> None:
    """sums[v, u] = SB over the children from v and from u on."""
    sums[n, : m + 1] = 1.0
    for v in range(n - 1, -1, -1):
        sums[v, m] = 1.0
        run = products[v, m - 1]
        sums[v, m - 1] = sums[v + 1, m - 1] + run
        for u in range(m - 2, -1, -1):
            run += products[v, u] * sums[v + 1, u + 1]
            sums[v, u] = sums[v + 1, u] + run


@jit
def fill_kap(structure: int, pair: TreePair, marginals: MarginalTables, kap: Table) -> None:
    """kap of all equal pairs of a row tree where the prior is not uniform."""
    rows, cols, equal = pair.rows, pair.cols, pair.equal
    left, right = marginals.left, marginals.right
    base = rows.starts[structure]
    for p in range(base, rows.starts[structure + 1]):
        for place in range(equal.starts[equal.codes[p]], equal.starts[equal.codes[p] + 1]):
            row, col = rows.nodes[p], cols.nodes[equal.columns[place]]
            marginal = left[row, 0] * right[col, 0]
            for y in range(1, left.shape[1]):
                marginal += left[row, y] * right[col, y]
            kap[p - base, equal.columns[place]] = marginals.factor * marginal


@jit
def has_match(row_codes: Ints, col_codes: Ints) -> bool:
    """Whether two lists of children have an equal pair."""
    found = False
    for code in row_codes:
        for other in col_codes:
            found |= other == code
    return found


@jit
def multiply_children(p: int, q: int, base: int, pair: TreePair, tables: MatchTables) -> None:
    """products[v, u] = kap (1+D') between the v-th child of p and the u-th of q."""
    first, other = pair.rows.first_children[p], pair.cols.first_children[q]
    for v in range(pair.rows.n_children[p]):
        kap, down, row = tables.kap[first + v - base], tables.down[first + v - base], tables.products[v]
        for u in range(pair.cols.n_children[q]):
            is_equal = pair.col_codes[other + u] == pair.row_codes[first + v]
            row[u] = kap[other + u] * down[other + u] if is_equal else 0.0


@jit
def match_downward(structure: int, pair: TreePair, tables: MatchTables) -> int:
    """1+D' of all pairs of a row tree, children first, and the list of those that have equal children: how many."""
    rows, row_codes, col_codes = pair.rows, pair.row_codes, pair.col_codes
    codes, starts, columns = pair.inner.codes, pair.inner.starts, pair.inner.columns
    n_children, first_children = pair.cols.n_children, pair.cols.first_children
    base, end, n_matched = rows.starts[structure], rows.starts[structure + 1], 0
    tables.down[: end - base] = 1.0
    for p in range(end - 1, base - 1, -1):
        n, first = rows.n_children[p], rows.first_children[p]
        if n == 0:
            continue
        for place in range(starts[codes[p]], starts[codes[p] + 1]):
            q = columns[place]
            m, other = n_children[q], first_children[q]
            if has_match(row_codes[first : first + n], col_codes[other : other + m]):
                multiply_children(p, q, base, pair, tables)
                match_forward(tables.products, n, m, tables.forward)
                tables.down[p - base, q] = tables.forward[n, m]
                tables.matched[0, n_matched], tables.matched[1, n_matched] = p, q
                n_matched += 1
    return n_matched


@jit
def match_upward(structure: int, pair: TreePair, n_matched: int, tables: MatchTables) -> None:
    """1+U' of all pairs of a row tree, parents first: only children of equal pairs are joined to anything above."""
    rows, cols, row_codes, col_codes = pair.rows, pair.cols, pair.row_codes, pair.col_codes
    forward, backward, up = tables.forward, tables.backward, tables.up
    base = rows.starts[structure]
    up[: rows.starts[structure + 1] - base] = 1.0
    for k in range(n_matched - 1, -1, -1):
        p, q = tables.matched[0, k], tables.matched[1, k]
        n, first, m, other = rows.n_children[p], rows.first_children[p], cols.n_children[q], cols.first_children[q]
        above = tables.kap[p - base, q] * up[p - base, q]
        if n == 1 and m == 1:
            up[first - base, other] = 1.0 + above
            continue
        multiply_children(p, q, base, pair, tables)
        match_forward(tables.products, n, m, forward)
        match_backward(tables.products, n, m, backward)
        for v in range(n):
            for u in range(m):
                if col_codes[other + u] == row_codes[first + v]:
                    up[first + v - base, other + u] = 1.0 + above * (forward[v, u] * backward[v + 1, u + 1])


@jit
def write_matches(
    structure: int,
    pair: TreePair,
    scale: np.floating[Any],
    limit: np.floating[Any],
    tables: MatchTables,
    out: NDArray[Any],
) -> int:
    """G of all equal pairs of a row tree and 0 elsewhere; how many values are beyond +-limit."""
    codes, starts, columns = pair.equal.codes, pair.equal.starts, pair.equal.columns
    nodes, base, n_bad = pair.cols.nodes, pair.rows.starts[structure], 0
    for p in range(base, pair.rows.starts[structure + 1]):
        downs, ups, target = tables.down[p - base], tables.up[p - base], out[pair.rows.nodes[p]]
        target[:] = 0.0
        for place in range(starts[codes[p]], starts[codes[p] + 1]):
            q = columns[place]
            value = scale * (downs[q] * ups[q])
            n_bad += not (abs(value) <= limit)
            target[nodes[q]] = value
    return n_bad


@jit
def fill_matches(
    pair: TreePair,
    marginals: MarginalTables,
    scale: np.floating[Any],
    limit: np.floating[Any],
    tables: MatchTables,
    out: NDArray[Any],
) -> int:
    """out = scale * (1+U') * (1+D') at equal pairs, 0 elsewhere; returns the first row structure beyond +-limit, or -1.

    kap of an equal pair is factor * sum_y left[i, y] right[t, y], or factor alone where the tables are empty.
    """
    starts = pair.rows.starts
    tables.kap[:] = marginals.factor
    for structure in range(len(starts) - 1):
        if marginals.left.shape[1] > 0:
            fill_kap(structure, pair, marginals, tables.kap)
        n_matched = match_downward(structure, pair, tables)
        match_upward(structure, pair, n_matched, tables)
        if write_matches(structure, pair, scale, limit, tables, out) > 0:
            return structure
    return -1
