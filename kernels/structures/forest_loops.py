"""Compiled loops of forests: which subtrees still matter, and differences of sums over the nodes of new trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.structures.subset_tree_loops import Matches


class DifferenceEntries(NamedTuple):
    """Which differences the subtrees of an index are part of, place by place."""

    indptr: Offsets  # shape (n_places + 1,)
    differences: Ints
    weights: Floats


@jit
def reachable_subtrees(child_indptr: Offsets, children: Ints, weights: Floats) -> NDArray[np.bool_]:
    """True for a subtree of nonzero weight and for everything inside one, bool (n,); children come before parents."""
    kept: NDArray[np.bool_] = weights != 0.0
    for subtree in range(len(weights) - 1, -1, -1):
        if kept[subtree]:
            for link in range(child_indptr[subtree], child_indptr[subtree + 1]):
                kept[children[link]] = True
    return kept


@jit
def add_differences(
    matches: Matches, group_starts: Offsets, entries: DifferenceEntries, out: Floats, magnitudes: Floats
) -> None:
    """out[i, d] += sum over subtrees z of tree i of count_i(z) sum_w weight_d(w) C(z, w); magnitudes of |weight_d(w)|.

    The inner sum is computed once for a subtree, however many trees it occurs in: parses of one sentence have most of
    their subtrees in common.
    """
    subtrees, starts, cells = matches.subtrees, matches.starts, matches.cells
    changes, sizes = np.empty(out.shape[1]), np.empty(out.shape[1])
    for subtree in range(len(starts)):
        if starts[subtree] < 0:
            continue
        first = group_starts[subtrees.productions[subtree]]
        last = group_starts[subtrees.productions[subtree] + 1]
        if entries.indptr[first] == entries.indptr[last]:  # nothing but subtrees that are kept for their parents
            continue
        changes[:] = 0.0
        sizes[:] = 0.0
        for place in range(first, last):
            value = cells[starts[subtree] + place - first]
            for entry in range(entries.indptr[place], entries.indptr[place + 1]):
                summand = entries.weights[entry] * value
                changes[entries.differences[entry]] += summand
                sizes[entries.differences[entry]] += abs(summand)
        for occurrence in range(subtrees.occurrence_indptr[subtree], subtrees.occurrence_indptr[subtree + 1]):
            count = float(subtrees.occurrence_counts[occurrence])
            summed = out[subtrees.occurrence_trees[occurrence]]
            summed_sizes = magnitudes[subtrees.occurrence_trees[occurrence]]
            for difference in range(len(changes)):
                summed[difference] += count * changes[difference]
            for difference in range(len(changes)):
                summed_sizes[difference] += count * sizes[difference]
