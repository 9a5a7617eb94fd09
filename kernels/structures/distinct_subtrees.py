"""Equal complete subtrees get one number, over many trees: a strip of a tile, or a weighted forest.

Knows productions and children, no kernel. Two nodes get the same number exactly when the complete subtrees below them
are equal. Children get their numbers first, so a child's number is below its parent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Ints, Offsets, Packed, PackedParses
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


class DistinctSubtrees(NamedTuple):
    """Distinct complete subtrees of some trees, children first, and the trees that contain each."""

    productions: Ints  # shape (n_distinct,); MISSING for a node without children
    child_indptr: Offsets  # shape (n_distinct + 1,)
    children: Ints  # numbers of the nonterminal children, in order
    occurrence_indptr: Offsets  # shape (n_distinct + 1,)
    occurrence_trees: Ints  # trees that contain the subtree, ascending
    occurrence_counts: Ints  # how often they do

    @classmethod
    def of(cls, packed: Packed) -> DistinctSubtrees:
        """Numbers for every node of a packed corpus of parses; cost O(nodes)."""
        assert isinstance(packed, PackedParses)
        numbers, representatives = number_subtrees(
            packed.starts, packed.symbols, packed.link_indptr, packed.link_targets
        )
        first = packed.link_indptr[representatives]
        counts = packed.link_indptr[representatives + 1] - first
        links = indices_of_ranges(first, counts)
        bases = packed.starts[np.searchsorted(packed.starts, representatives, side="right") - 1]
        children = numbers[packed.link_targets[links] + np.repeat(bases, counts)]
        occurrences = occurrences_of(numbers, packed.starts, len(representatives))
        return cls(packed.symbols[representatives], offsets_from_lengths(counts), children, *occurrences)

    @property
    def n_distinct(self) -> int:
        return len(self.productions)

    def height(self) -> int:
        """Productions on the longest way down: the depth limit from which on nothing changes."""
        return int(heights_of(self.productions, self.child_indptr, self.children).max(initial=0))


@jit
def number_subtrees(
    starts: Offsets, productions: Ints, link_indptr: Offsets, link_targets: Ints
) -> tuple[Ints, Offsets]:
    """Number of the subtree below every node, int32 (n,), and one node per number, int64 (n_distinct,).

    Nodes of a structure are in pre-order, so the reverse order meets children first. An open-addressing table
    holds a representative of each number; a candidate is compared child by child, so equal hashes never merge.
    """
    n_nodes = len(productions)
    size = 16
    while size < 2 * n_nodes:
        size *= 2
    table = np.full(size, -1, np.int64)
    numbers = np.empty(n_nodes, np.int32)
    representatives = np.empty(n_nodes, np.int64)
    bases = np.empty(n_nodes, np.int64)  # first node of the representative's tree
    n_distinct = 0
    for tree in range(len(starts) - 1):
        base = starts[tree]
        for node in range(starts[tree + 1] - 1, base - 1, -1):
            first, last = link_indptr[node], link_indptr[node + 1]
            state = (np.uint64(last - first) ^ np.uint64(productions[node])) * MULTIPLIER
            for link in range(first, last):
                state = ((state ^ (state >> SHIFT)) ^ np.uint64(numbers[base + link_targets[link]])) * MULTIPLIER
            slot = np.int64((state ^ (state >> SHIFT)) & np.uint64(size - 1))
            number = np.int64(-1)
            while number < 0 and table[slot] >= 0:
                candidate = table[slot]
                other = representatives[candidate]
                begin = link_indptr[other]
                same = productions[other] == productions[node] and link_indptr[other + 1] - begin == last - first
                link = first
                while same and link < last:
                    partner = bases[candidate] + link_targets[begin + link - first]
                    same = numbers[base + link_targets[link]] == numbers[partner]
                    link += 1
                if same:
                    number = candidate
                else:
                    slot = (slot + 1) & (size - 1)
            if number < 0:
                number = np.int64(n_distinct)
                table[slot] = number
                representatives[number] = node
                bases[number] = base
                n_distinct += 1
            numbers[node] = number
    return numbers, representatives[:n_distinct].copy()


@jit
def heights_of(productions: Ints, child_indptr: Offsets, children: Ints) -> Ints:
    """Productions on the longest way down from each subtree, int32 (n_distinct,); 0 without a production."""
    heights = np.zeros(len(productions), np.int32)
    for subtree in range(len(productions)):
        if productions[subtree] >= 0:
            highest = 0
            for link in range(child_indptr[subtree], child_indptr[subtree + 1]):
                highest = max(highest, heights[children[link]])
            heights[subtree] = highest + 1
    return heights


@jit
def occurrences_of(numbers: Ints, starts: Offsets, n_distinct: int) -> tuple[Offsets, Ints, Ints]:
    """Trees and counts of each subtree in CSR form: int64 (n_distinct + 1,), int32 (nnz,), int32 (nnz,)."""
    last_tree = np.full(n_distinct, -1, np.int64)
    indptr = np.zeros(n_distinct + 1, np.int64)
    for tree in range(len(starts) - 1):
        for node in range(starts[tree], starts[tree + 1]):
            if last_tree[numbers[node]] != tree:
                last_tree[numbers[node]] = tree
                indptr[numbers[node] + 1] += 1
    for subtree in range(n_distinct):
        indptr[subtree + 1] += indptr[subtree]
    cursor = indptr[:-1] - 1
    trees = np.empty(indptr[-1], np.int32)
    counts = np.zeros(indptr[-1], np.int32)
    last_tree[:] = -1
    for tree in range(len(starts) - 1):
        for node in range(starts[tree], starts[tree + 1]):
            subtree = numbers[node]
            if last_tree[subtree] != tree:
                last_tree[subtree] = tree
                cursor[subtree] += 1
                trees[cursor[subtree]] = tree
            counts[cursor[subtree]] += 1
    return indptr, trees, counts
