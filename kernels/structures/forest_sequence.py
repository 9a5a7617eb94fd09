"""A sequence of weighted sums of trees, each the one before plus one tree minus another: what a voting ranker is.

    F_m(T) - F_{m-1}(T) = K(A_m, T) - K(B_m, T) = sum over distinct subtrees z of (n_A(z) - n_B(z)) sum_{b in T} C(z, b)

All trees share one graph of distinct subtrees, so C(z, b) is evaluated once whatever the number of sums. Two parses of
one sentence have most subtrees in common: those cancel before anything is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramline.kernels.errors import PackingError
from gramline.kernels.packing import Floats, Ints, Offsets, Packed
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees
from gramline.kernels.structures.forest import ForestSize, SubtreeGraph, refuse_overflow
from gramline.kernels.structures.forest_loops import DifferenceEntries, add_differences
from gramline.kernels.structures.production_index import ProductionIndex
from gramline.kernels.structures.subset_tree import SubsetTree


@dataclass(frozen=True, eq=False)
class ForestSequence:
    """Distinct subtrees, the distinct differences between two trees, and which of them each step adds."""

    kernel: SubsetTree
    graph: SubtreeGraph
    steps: Ints  # shape (n_steps,): number of the difference that each step adds
    indptr: Offsets  # shape (n_subtrees + 1,)
    differences: Ints  # the differences that each subtree is part of
    weights: Floats  # its n_A(z) - n_B(z) in them; a normalized kernel's scales are in it
    size: ForestSize

    @classmethod
    def of(cls, kernel: SubsetTree, packed: Packed, added: ArrayLike, removed: ArrayLike) -> ForestSequence:
        """Step m adds K(tree added[m], .) and subtracts K(tree removed[m], .); both number trees of `packed`."""
        packed = kernel.prepare(packed)
        pairs = np.column_stack([np.asarray(added, np.int64), np.asarray(removed, np.int64)]).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(packed)):
            raise PackingError(f"a step names tree {pairs.max()}, but there are {len(packed)} trees")
        distinct, steps = np.unique(pairs, axis=0, return_inverse=True)
        shared = DistinctSubtrees.of(packed)
        # Entries (subtree, difference, weight) of both sides, summed where they meet.
        numbers, weights = _occurrences(shared, distinct, kernel.scales(packed))
        keys, places = np.unique(numbers, return_inverse=True)
        summed = np.zeros(len(keys))
        np.add.at(summed, places.ravel(), weights)
        subtrees, differences = np.divmod(keys, max(1, len(distinct)))
        # A node without a production matches nothing.
        used = (summed != 0) & (shared.productions[subtrees] >= 0)
        subtrees, differences, summed = subtrees[used], differences[used].astype(np.int32), summed[used]
        is_used = np.zeros(shared.n_distinct)
        is_used[subtrees] = 1.0
        graph, number = SubtreeGraph.pruned(shared.productions, shared.child_indptr, shared.children, is_used)
        trees = np.unique(distinct)
        size = ForestSize(len(trees), int(packed.lengths[trees].sum()), graph.n_subtrees)
        indptr = np.searchsorted(number[subtrees], np.arange(graph.n_subtrees + 1))
        return cls(kernel, graph, steps.ravel().astype(np.int32), indptr, differences, summed, size)

    @cached_property
    def _index(self) -> ProductionIndex:
        return self.graph.index()

    @cached_property
    def _entries(self) -> DifferenceEntries:
        """The differences in the order of the index."""
        first = self.indptr[self._index.members]
        counts = self.indptr[self._index.members + 1] - first
        source = indices_of_ranges(first, counts)
        return DifferenceEntries(offsets_from_lengths(counts), self.differences[source], self.weights[source])

    def changes(self, packed: Packed) -> tuple[Floats, Floats]:
        """What every step adds to the sum of every tree, and the sums of the absolute values of its terms.

        Shape (n_steps, n_trees) each; `packed` has the vocabulary of the sequence's trees.
        """
        packed = self.kernel.prepare(packed)
        index = self._index
        changes, magnitudes = np.zeros((2, len(packed), int(self.steps.max(initial=-1)) + 1))
        for strip, matches in self.kernel.strips(packed, index):
            add_differences(matches, index.postings.group_starts, self._entries, changes[strip], magnitudes[strip])
        refuse_overflow(magnitudes.sum(axis=1), self.kernel)
        scales = self.kernel.scales(packed)[:, None]
        return (changes * scales).T[self.steps], (magnitudes * scales).T[self.steps]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The sequence without its kernel, as named flat arrays."""
        return {
            **self.graph.to_arrays(),
            "steps": self.steps,
            "indptr": self.indptr,
            "differences": self.differences,
            "weights": self.weights,
            "size": self.size.to_array(),
        }

    @classmethod
    def from_arrays(cls, kernel: SubsetTree, arrays: Mapping[str, NDArray[Any]]) -> ForestSequence:
        """The inverse of `to_arrays`."""
        return cls(
            kernel,
            SubtreeGraph.from_arrays(arrays),
            np.asarray(arrays["steps"], np.int32),
            np.asarray(arrays["indptr"], np.int64),
            np.asarray(arrays["differences"], np.int32),
            np.asarray(arrays["weights"], np.float64),
            ForestSize.from_array(arrays["size"]),
        )


def _occurrences(shared: DistinctSubtrees, pairs: Offsets, scales: Floats) -> tuple[Offsets, Floats]:
    """(subtree * n_pairs + pair, weight) of every subtree in the two trees of every pair."""
    owners = np.repeat(np.arange(shared.n_distinct), np.diff(shared.occurrence_indptr))
    order = np.argsort(shared.occurrence_trees, kind="stable")
    starts = np.searchsorted(shared.occurrence_trees[order], np.arange(len(scales) + 1))
    numbers, weights = [], []
    for side, sign in ((0, 1.0), (1, -1.0)):
        trees = pairs[:, side]
        counts = starts[trees + 1] - starts[trees]
        entries = order[indices_of_ranges(starts[trees], counts)]
        numbers.append(owners[entries] * len(pairs) + np.repeat(np.arange(len(pairs)), counts))
        weights.append(sign * shared.occurrence_counts[entries] * np.repeat(scales[trees], counts))
    return np.concatenate(numbers), np.concatenate(weights)
