"""A weighted sum of trees kept as one forest of distinct subtrees: what a trained ranker is.

    sum_i a_i K(T_i, T) = sum over distinct complete subtrees z of weight(z) * sum_{b in T} C(z, b)

weight(z) is the sum of the weights of the trees z occurs in, with multiplicity. Knows nothing of learners or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.packing import Floats, Ints, Offsets, Packed
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees
from gramline.kernels.structures.forest_loops import reachable_subtrees
from gramline.kernels.structures.production_index import ProductionIndex
from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.kernels.structures.subset_tree_loops import add_weighted


@dataclass(frozen=True)
class ForestSize:
    """How much smaller a forest is than its trees."""

    n_trees: int  # trees of nonzero weight
    n_nodes: int  # nodes of those trees
    n_subtrees: int  # distinct subtrees kept

    @property
    def ratio(self) -> float:
        """Nodes of the trees per subtree kept."""
        return self.n_nodes / max(1, self.n_subtrees)

    def to_array(self) -> NDArray[np.int64]:
        return np.array([self.n_trees, self.n_nodes, self.n_subtrees], np.int64)

    @classmethod
    def from_array(cls, numbers: NDArray[Any]) -> ForestSize:
        return cls(*(int(number) for number in numbers))


@dataclass(frozen=True, eq=False)
class SubtreeGraph:
    """Distinct subtrees as one graph, children before their parents."""

    productions: Ints  # shape (n_subtrees,)
    child_indptr: Offsets  # shape (n_subtrees + 1,)
    children: Ints

    @property
    def n_subtrees(self) -> int:
        return len(self.productions)

    @classmethod
    def pruned(
        cls, productions: Ints, child_indptr: Offsets, children: Ints, weights: Floats
    ) -> tuple[SubtreeGraph, Ints]:
        """Without the subtrees of weight 0 that no subtree of another weight contains; and the new numbers, or -1."""
        kept = np.flatnonzero(reachable_subtrees(child_indptr, children, weights))
        number = np.full(len(productions), -1, np.int32)
        number[kept] = np.arange(len(kept))
        counts = np.diff(child_indptr)[kept]
        links = indices_of_ranges(child_indptr[kept], counts)
        return cls(productions[kept], offsets_from_lengths(counts), number[children[links]]), number

    def index(self) -> ProductionIndex:
        return ProductionIndex.of(self.productions, self.child_indptr, self.children)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"productions": self.productions, "child_indptr": self.child_indptr, "children": self.children}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SubtreeGraph:
        return cls(
            np.asarray(arrays["productions"], np.int32),
            np.asarray(arrays["child_indptr"], np.int64),
            np.asarray(arrays["children"], np.int32),
        )


@dataclass(frozen=True, eq=False)
class WeightedForest:
    """F(T) = sum_i a_i K(T_i, T) as a graph of distinct subtrees and the weight of each.

    Attributes
    ----------
    kernel : the subset-tree kernel K.
    graph : distinct subtrees, children first.
    weights : weight of each subtree, shape (n_subtrees,).
    size : how many trees and nodes are summed, and how many subtrees are kept.

    >>> from gramline.kernels import SubsetTree, WeightedForest
    >>> from gramline.pipeline import Corpus
    >>> trees = Corpus.from_parses(["(NP (D the) (N man))", "(NP (D the) (N dog))"]).packed()
    >>> WeightedForest.of(SubsetTree(), trees, [1.0, -1.0]).values(trees)
    array([ 3., -3.])
    """

    kernel: SubsetTree
    graph: SubtreeGraph
    weights: Floats  # shape (n_subtrees,); 0 for a subtree that is kept for its parents only
    size: ForestSize

    @classmethod
    def of(cls, kernel: SubsetTree, packed: Packed, weights: ArrayLike) -> WeightedForest:
        """The forest of sum_i weights[i] K(T_i, .); a normalized kernel's 1 / sqrt(K(T_i, T_i)) is in the weight."""
        packed = kernel.prepare(packed)
        given = np.asarray(weights, float)
        if given.shape != (len(packed),):
            raise PackingError(
                f"a forest needs one weight per tree: {len(packed)} trees, weights of shape {given.shape}"
            )
        if not np.isfinite(given).all():
            tree = int(np.flatnonzero(~np.isfinite(given))[0])
            raise PackingError("the weight is not a finite number", structure=tree)
        subtrees = DistinctSubtrees.of(packed)
        scaled = given * kernel.scales(packed)
        owners = np.repeat(np.arange(subtrees.n_distinct), np.diff(subtrees.occurrence_indptr))
        counted = subtrees.occurrence_counts * scaled[subtrees.occurrence_trees]
        summed = np.zeros(subtrees.n_distinct)
        np.add.at(summed, owners, counted)
        graph, number = SubtreeGraph.pruned(subtrees.productions, subtrees.child_indptr, subtrees.children, summed)
        used = given != 0
        size = ForestSize(int(used.sum()), int(packed.lengths[used].sum()), graph.n_subtrees)
        return cls(kernel, graph, summed[number >= 0], size)

    @cached_property
    def _index(self) -> ProductionIndex:
        return self.graph.index()

    def values(self, packed: Packed) -> Floats:
        """sum_i a_i K(T_i, T) of every tree T of `packed`, shape (n_trees,); same vocabulary as the forest's trees."""
        summed: Floats = self.changes(packed)[0][0]
        return summed

    def changes(self, packed: Packed) -> tuple[Floats, Floats]:
        """The values, and the sums of the absolute values of their terms; shape (1, n_trees) each."""
        packed = self.kernel.prepare(packed)
        index = self._index
        weights = self.weights[index.members]
        values, magnitudes = np.zeros((2, 1, len(packed)))
        for strip, matches in self.kernel.strips(packed, index):
            add_weighted(matches, index.postings.group_starts, weights, values[0, strip], magnitudes[0, strip])
        refuse_overflow(magnitudes[0], self.kernel)
        scales = self.kernel.scales(packed)
        return values * scales, magnitudes * scales

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The forest without its kernel, as named flat arrays."""
        return {**self.graph.to_arrays(), "weights": self.weights, "size": self.size.to_array()}

    @classmethod
    def from_arrays(cls, kernel: SubsetTree, arrays: Mapping[str, NDArray[Any]]) -> WeightedForest:
        """The inverse of `to_arrays`."""
        weights = np.asarray(arrays["weights"], np.float64)
        return cls(kernel, SubtreeGraph.from_arrays(arrays), weights, ForestSize.from_array(arrays["size"]))


def refuse_overflow(magnitudes: Floats, kernel: SubsetTree) -> None:
    """An error naming the first tree whose sum does not fit."""
    if not np.isfinite(magnitudes).all():
        tree = int(np.flatnonzero(~np.isfinite(magnitudes))[0])
        raise KernelOverflowError("the weighted sum", tree, None, "float64", kernel.advice)
