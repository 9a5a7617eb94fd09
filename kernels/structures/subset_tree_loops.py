"""Compiled loops of the subset-tree kernel: C(z, w) for distinct subtrees of equal production, and sums over it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees
from gramline.kernels.structures.production_index import Columns, Postings


@jit
def cell_starts(productions: Ints, group_starts: Offsets) -> tuple[Offsets, int]:
    """Where the cells C(z, .) of each row subtree begin, -1 where no column shares its production; and their sum."""
    starts = np.full(len(productions), -1, np.int64)
    total = 0
    for subtree in range(len(productions)):
        production = productions[subtree]
        if 0 <= production < len(group_starts) - 1 and group_starts[production + 1] > group_starts[production]:
            starts[subtree] = total
            total += group_starts[production + 1] - group_starts[production]
    return starts, total


@jit
def match_subtrees(
    subtrees: DistinctSubtrees, starts: Offsets, postings: Postings, decay: float, previous: Floats, current: Floats
) -> None:
    """current = C(z, w) = decay * prod_j (1 + previous(z_j, w_j)), over the cells of every row subtree z.

    `previous` may be `current` itself: children come before their parents, which gives the recursion without a
    depth limit. A child pair of different productions has C = 0 and is not visited.
    """
    for subtree in range(len(starts)):
        if starts[subtree] < 0:
            continue
        production = subtrees.productions[subtree]
        size = postings.group_starts[production + 1] - postings.group_starts[production]
        cells = current[starts[subtree] : starts[subtree] + size]
        cells[:] = decay
        first_link = subtrees.child_indptr[subtree]
        for link in range(first_link, subtrees.child_indptr[subtree + 1]):
            child = subtrees.children[link]
            if starts[child] < 0:
                continue
            wanted = subtrees.productions[child]
            low = postings.posting_starts[production] + (link - first_link) * size
            last = low + size
            high = last
            while low < high:
                middle = (low + high) // 2
                if postings.productions[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            below = previous[starts[child] :]
            while low < last and postings.productions[low] == wanted:
                cells[postings.members[low]] *= 1.0 + below[postings.children[low]]
                low += 1


class Matches(NamedTuple):
    """C between the distinct subtrees of some trees and those of an index."""

    subtrees: DistinctSubtrees
    starts: Offsets  # where the cells of each subtree begin, -1 where no subtree of the index shares its production
    cells: Floats  # C(z, w), w over the group of the production of z


@jit
def add_to_tile(matches: Matches, columns: Columns, out: Floats) -> None:
    """out[i, j] += sum over subtrees z of tree i, w of tree j of count_i(z) count_j(w) C(z, w)."""
    subtrees, starts, cells = matches.subtrees, matches.starts, matches.cells
    for subtree in range(len(starts)):
        if starts[subtree] < 0:
            continue
        production = subtrees.productions[subtree]
        first, last = columns.starts[production], columns.starts[production + 1]
        values = cells[starts[subtree] :]
        for occurrence in range(subtrees.occurrence_indptr[subtree], subtrees.occurrence_indptr[subtree + 1]):
            row = out[subtrees.occurrence_trees[occurrence]]
            count = float(subtrees.occurrence_counts[occurrence])
            for column in range(first, last):
                row[columns.trees[column]] += count * columns.counts[column] * values[columns.places[column]]


@jit
def add_weighted(matches: Matches, group_starts: Offsets, weights: Floats, out: Floats, magnitudes: Floats) -> None:
    """out[i] += sum over subtrees z of tree i of count_i(z) sum_w weight(w) C(z, w); magnitudes with |weight(w)|."""
    subtrees, starts, cells = matches.subtrees, matches.starts, matches.cells
    for subtree in range(len(starts)):
        if starts[subtree] < 0:
            continue
        first = group_starts[subtrees.productions[subtree]]
        last = group_starts[subtrees.productions[subtree] + 1]
        values = cells[starts[subtree] :]
        total = 0.0
        size = 0.0
        for place in range(last - first):
            # A weight of 0 belongs to a subtree kept for its parents only; 0 * inf would hide their overflow as nan.
            if weights[first + place] != 0.0:
                value = weights[first + place] * values[place]
                total += value
                size += abs(value)
        for occurrence in range(subtrees.occurrence_indptr[subtree], subtrees.occurrence_indptr[subtree + 1]):
            count = subtrees.occurrence_counts[occurrence]
            out[subtrees.occurrence_trees[occurrence]] += count * total
            magnitudes[subtrees.occurrence_trees[occurrence]] += count * size


@jit
def self_values(
    starts: Offsets, productions: Ints, link_indptr: Offsets, link_targets: Ints, decay: float, depth: int
) -> Floats:
    """K(T, T) of every tree, float64 (n_trees,); `depth` 0 means no limit. Memory: matching node pairs of one tree."""
    values = np.zeros(len(starts) - 1, np.float64)
    for tree in range(len(starts) - 1):
        base = starts[tree]
        n_nodes = starts[tree + 1] - base
        own = productions[base : base + n_nodes]
        order = np.argsort(own)
        group_first = np.zeros(n_nodes, np.int64)  # first place, in `order`, of the node's production
        group_size = np.zeros(n_nodes, np.int64)
        places = np.zeros(n_nodes, np.int64)
        first = 0
        while first < n_nodes:
            last = first + 1
            while last < n_nodes and own[order[last]] == own[order[first]]:
                last += 1
            for place in range(first, last):
                group_first[order[place]] = first
                group_size[order[place]] = last - first if own[order[place]] >= 0 else 0
                places[order[place]] = place - first
            first = last
        cells = np.cumsum(group_size) - group_size
        total = cells[n_nodes - 1] + group_size[n_nodes - 1] if n_nodes > 0 else 0
        current = np.zeros(total, np.float64)
        previous = current if depth == 0 else np.zeros(total, np.float64)
        for _ in range(max(depth, 1)):
            for node in range(n_nodes - 1, -1, -1):
                for place in range(group_size[node]):
                    other = order[group_first[node] + place]
                    left, right = link_indptr[base + node], link_indptr[base + other]
                    value = decay
                    for link in range(link_indptr[base + node + 1] - left):
                        a, b = link_targets[left + link], link_targets[right + link]
                        if own[a] == own[b] and own[a] >= 0:
                            value *= 1.0 + previous[cells[a] + places[b]]
                    current[cells[node] + place] = value
            if depth > 0:
                previous, current = current, previous
        values[tree] = previous.sum()
    return values
