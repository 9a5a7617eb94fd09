"""Identical complete subtrees given one number each, over many trees: a strip of a tile, or a weighted forest.

Knows productions and children, not what a kernel makes of them. Two nodes get the same number exactly when the
complete subtrees below them are equal; numbers are given children first, so a child's number is below its parent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels.packing import Ints, Offsets, Packed, PackedParses
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.kernels.structures.distinct_subtrees_loops import heights_of, number_subtrees, occurrences_of


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
