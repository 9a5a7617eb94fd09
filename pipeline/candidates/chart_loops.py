"""Jitted loops of the chart parser: best scores of all spans, and the ways into one cell.

Cell of words i..j-1 is i * (n + 1) + j. `lower[cell, A]` is the best log probability of A over the span built by a
binary rule or a word; `upper[cell, A]` lets a chain of unary rules (possibly none) follow.
"""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets


@jit
def close_unary(lower: Floats, upper: Floats, parents: Offsets, children: Offsets, scores: Floats) -> None:
    """upper[A] = max(lower[A], max over chains A =>* B of score + lower[B]), in place."""
    upper[:] = lower
    for k in range(len(parents)):
        value = lower[children[k]] + scores[k]
        if value > upper[parents[k]]:
            upper[parents[k]] = value


@jit
def fill_width(
    width: int,
    n: int,
    lower: Floats,
    upper: Floats,
    active: Ints,
    counts: Offsets,
    rules: Offsets,
    rule_scores: Floats,
    left_starts: Offsets,
    parents: Offsets,
    children: Offsets,
    scores: Floats,
) -> None:
    """Fill the cells of `width` words; narrower ones are done. active[cell, :counts[cell]] are its symbols."""
    for i in range(n - width + 1):
        j = i + width
        cell = i * (n + 1) + j
        below = lower[cell]
        if width > 1:
            for m in range(i + 1, j):
                left_cell = i * (n + 1) + m
                right = upper[m * (n + 1) + j]
                for a in range(counts[left_cell]):
                    symbol = active[left_cell, a]
                    left_score = upper[left_cell, symbol]
                    for r in range(left_starts[symbol], left_starts[symbol + 1]):
                        value = left_score + right[rules[r, 2]] + rule_scores[r]
                        if value > below[rules[r, 0]]:
                            below[rules[r, 0]] = value
        close_unary(below, upper[cell], parents, children, scores)
        found = 0
        for symbol in range(below.shape[0]):
            if upper[cell, symbol] > -np.inf:
                active[cell, found] = symbol
                found += 1
        counts[cell] = found


@jit
def incoming(
    i: int,
    j: int,
    n: int,
    parent: int,
    upper: Floats,
    rules: Offsets,
    rule_scores: Floats,
    order: Offsets,
    parent_starts: Offsets,
    splits: Offsets,
    which: Offsets,
    values: Floats,
) -> int:
    """Every binary way into (i, j, parent): split, rule and best score; returns how many were written."""
    found = 0
    for k in range(parent_starts[parent], parent_starts[parent + 1]):
        r = order[k]
        left, right = rules[r, 1], rules[r, 2]
        for m in range(i + 1, j):
            value = upper[i * (n + 1) + m, left] + upper[m * (n + 1) + j, right] + rule_scores[r]
            if value > -np.inf:
                splits[found] = m
                which[found] = r
                values[found] = value
                found += 1
    return found
