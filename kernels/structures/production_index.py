"""Distinct subtrees indexed by production: the columns of a tile, or a forest, in the form that rows look up.

The subtrees of one production form a group and have a place in it. For every child position of a group, postings
sorted by the child's production say which members can continue there: only matching pairs are ever visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees


class Postings(NamedTuple):
    """Groups and their child postings as flat arrays, in the form the compiled loops read."""

    group_starts: Offsets  # shape (n_productions + 1,); members of production p are group_starts[p]:group_starts[p + 1]
    posting_starts: Offsets  # shape (n_productions,); postings of child j of p begin at posting_starts[p] + j * size
    productions: Ints  # production of the child, ascending within one (p, j)
    members: Ints  # place of the member in the group of p
    children: Ints  # place of the child in its own group


@dataclass(frozen=True, eq=False)
class ProductionIndex:
    """Distinct subtrees grouped by production."""

    members: Ints  # number of the subtree in each place, group after group
    postings: Postings

    @classmethod
    def of(cls, productions: Ints, child_indptr: Offsets, children: Ints) -> ProductionIndex:
        """Index subtrees, children first; those without a production match nothing and are left out."""
        n_productions = int(productions.max(initial=-1)) + 1
        arity = np.diff(child_indptr)
        members = np.argsort(productions, kind="stable")
        members = members[np.searchsorted(productions[members], 0) :]
        group_starts = np.searchsorted(productions[members], np.arange(n_productions + 1))
        places = np.full(len(productions), -1, np.int64)
        places[members] = np.arange(len(members)) - group_starts[productions[members]]

        counts = arity[members]
        owners = np.repeat(members, counts)
        links = indices_of_ranges(child_indptr[members], counts)
        positions = links - child_indptr[owners]
        child = children[links]
        order = np.lexsort((places[owners], productions[child], positions, productions[owners]))
        first_posting = offsets_from_lengths(counts)[group_starts[:-1]]
        return cls(
            members.astype(np.int32),
            Postings(
                group_starts.astype(np.int64),
                first_posting,
                productions[child][order].astype(np.int32),
                places[owners][order].astype(np.int32),
                places[child][order].astype(np.int32),
            ),
        )

    @property
    def group_sizes(self) -> Offsets:
        """Members of each production, shape (n_productions,)."""
        return np.diff(self.postings.group_starts)


class Columns(NamedTuple):
    """Which trees contain the members of each group, as flat arrays for the compiled loops."""

    starts: Offsets  # shape (n_productions + 1,); occurrences of production p are starts[p]:starts[p + 1]
    places: Ints  # place of the member in its group
    trees: Ints
    counts: Floats

    @classmethod
    def of(cls, subtrees: DistinctSubtrees, index: ProductionIndex) -> Columns:
        first = subtrees.occurrence_indptr[index.members]
        counts = subtrees.occurrence_indptr[index.members + 1] - first
        source = indices_of_ranges(first, counts)
        places = np.arange(len(index.members)) - np.repeat(index.postings.group_starts[:-1], index.group_sizes)
        return cls(
            offsets_from_lengths(counts)[index.postings.group_starts],
            np.repeat(places, counts).astype(np.int32),
            subtrees.occurrence_trees[source],
            subtrees.occurrence_counts[source].astype(np.float64),
        )
