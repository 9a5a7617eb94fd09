"""Jitted loops of the chart parser: best scores of all spans, and the ways into one cell.

The cell of words i..j-1 is i * (n + 1) + j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets


class Rules(NamedTuple):
    """Binary rules A -> B C, sorted by B, with their log probabilities."""

    symbols: Offsets  # shape (n_rules, 3): A, B, C
    scores: Floats  # shape (n_rules,)
    left_starts: Offsets  # rules with left child B are left_starts[B]:left_starts[B + 1]
    by_parent: Offsets  # rule numbers sorted by A
    parent_starts: Offsets  # rules with parent A are by_parent[parent_starts[A]:parent_starts[A + 1]]


class BestChains(NamedTuple):
    """The best chain of unary rules from parents[k] down to children[k], for every pair that has one."""

    parents: Offsets
    children: Offsets
    scores: Floats


class Chart(NamedTuple):
    """What is known of every span of a sentence of n words."""

    n: int
    lower: Floats  # shape (cells, symbols): best log probability of A over the span by a binary rule or a word
    upper: Floats  # shape (cells, symbols): the same where a chain of unary rules, possibly empty, may follow
    active: Ints  # shape (cells, symbols): active[cell, :counts[cell]] are the symbols that the span can be
    counts: Offsets  # shape (cells,)


@jit
def close_unary(lower: Floats, upper: Floats, chains: BestChains) -> None:
    """upper[A] = max(lower[A], max over chains A =>* B of score + lower[B]), in place."""
    upper[:] = lower
    for k in range(len(chains.parents)):
        value = lower[chains.children[k]] + chains.scores[k]
        if value > upper[chains.parents[k]]:
            upper[chains.parents[k]] = value


@jit
def fill_width(width: int, chart: Chart, rules: Rules, chains: BestChains) -> None:
    """Fill the cells of `width` words; narrower ones are filled already."""
    n, upper = chart.n, chart.upper
    for i in range(n - width + 1):
        j = i + width
        cell = i * (n + 1) + j
        below = chart.lower[cell]
        if width > 1:
            for m in range(i + 1, j):
                left_cell = i * (n + 1) + m
                right = upper[m * (n + 1) + j]
                for a in range(chart.counts[left_cell]):
                    symbol = chart.active[left_cell, a]
                    left_score = upper[left_cell, symbol]
                    for r in range(rules.left_starts[symbol], rules.left_starts[symbol + 1]):
                        value = left_score + right[rules.symbols[r, 2]] + rules.scores[r]
                        if value > below[rules.symbols[r, 0]]:
                            below[rules.symbols[r, 0]] = value
        close_unary(below, upper[cell], chains)
        count = 0
        for symbol in range(below.shape[0]):
            if upper[cell, symbol] > -np.inf:
                chart.active[cell, count] = symbol
                count += 1
        chart.counts[cell] = count


@jit
def incoming(i: int, j: int, parent: int, chart: Chart, rules: Rules) -> tuple[Offsets, Offsets]:
    """Splits and rules of all binary ways into (i, j, parent) that are possible."""
    n, upper = chart.n, chart.upper
    own = rules.by_parent[rules.parent_starts[parent] : rules.parent_starts[parent + 1]]
    splits, used = np.empty(len(own) * (j - i - 1), np.int64), np.empty(len(own) * (j - i - 1), np.int64)
    count = 0
    for r in own:
        left, right = rules.symbols[r, 1], rules.symbols[r, 2]
        for m in range(i + 1, j):
            if upper[i * (n + 1) + m, left] + upper[m * (n + 1) + j, right] > -np.inf:
                splits[count] = m
                used[count] = r
                count += 1
    return splits[:count], used[:count]
