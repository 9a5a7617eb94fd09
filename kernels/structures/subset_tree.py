"""The subset-tree kernel of Collins and Duffy: common tree fragments of two parses, a row per structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.base import Kernel, Tile, is_same, mirror, placed, require_fit, structure_runs
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.packing import Floats, Packed, PackedParses, place
from gramline.kernels.parameters import Boolean, Share, Whole
from gramline.kernels.ranges import offsets_from_lengths, range_containing
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees
from gramline.kernels.structures.production_index import Columns, Postings, ProductionIndex
from gramline.kernels.structures.subset_tree_loops import Matches, add_to_tile, cell_starts, match_subtrees, self_values

STRIP_CELLS = 1 << 18  # C(z, w) values held at once, unless one tree needs more: 2 MB, the size of a fast cache


@dataclass(frozen=True)
class SubsetTree(Kernel):
    """K(T, T') = sum over nodes a of T, b of T' of C(a, b).

    C(a, b) = 0 when the productions differ or are missing, otherwise decay * prod_j (1 + C(a_j, b_j)) over the
    nonterminal children. Positive semidefinite. Cost: pairs of distinct subtrees of equal production, per tile.
    Collins and Duffy (2001).

    >>> from gramline.kernels import SubsetTree
    >>> from gramline.pipeline import Corpus
    >>> SubsetTree().gram(Corpus.from_parses(["(NP (D the) (N man))", "(NP (D the) (N dog))"]))
    array([[6., 3.],
           [3., 6.]])
    """

    name: ClassVar[str] = "subset-tree"
    summary: ClassVar[str] = "common fragments of parse trees (Collins and Duffy)"
    packed_kind: ClassVar[str] = "parses"
    per_position: ClassVar[bool] = False

    decay: Annotated[
        Share, "weight of every production of a fragment, above 0 and at most 1; less prefers small ones"
    ] = 1.0
    max_depth: Annotated[Whole | None, "fragments at most so many productions deep; none is no limit"] = None
    normalized: Annotated[
        Boolean, "divide by sqrt(K(T, T) K(T', T')), 0 where that is 0: 1 between a tree and itself"
    ] = False

    def prepare(self, packed: Packed, like: Packed | None = None) -> Packed:
        """Checks that every child comes after its parent: the bottom-up loops rely on it."""
        ready = super().prepare(packed, like)
        assert isinstance(ready, PackedParses)
        local = np.arange(ready.n_positions) - np.repeat(ready.starts[:-1], ready.lengths)
        parents = np.repeat(local, np.diff(ready.link_indptr))
        wrong = np.flatnonzero(ready.link_targets <= parents)
        if len(wrong):
            node = range_containing(ready.link_indptr, int(wrong[0]))
            problem = "the node has a child before itself"
            raise PackingError(problem, advice="pack parses in pre-order", **place(ready.starts, node))
        return ready

    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        subtrees = DistinctSubtrees.of(cols)
        index = ProductionIndex.of(subtrees.productions, subtrees.child_indptr, subtrees.children)
        columns = Columns.of(subtrees, index)
        out = np.zeros((len(rows), len(cols)))
        for strip, matches in self.strips(rows, index):
            add_to_tile(matches, columns, out[strip])
        require_fit(out, np.float64, type(self).__name__, self.advice)
        if self.normalized:
            _divide(out, self._self_values(rows), 0)
            _divide(out, self._self_values(cols), 1)
        if is_same(rows, cols):
            mirror(out)
        require_fit(out, dtype, type(self).__name__, self.advice)
        return placed(out, dtype, memory)

    def diagonal(self, packed: Packed) -> Floats:
        values = self._self_values(packed)
        return (values > 0).astype(np.float64) if self.normalized else values

    def scales(self, packed: Packed) -> Floats:
        """What a value of each structure is multiplied by: 1 / sqrt(K(T, T)) when normalized, otherwise 1."""
        scales = np.ones((len(packed), 1))
        if self.normalized:
            _divide(scales, self._self_values(packed), 0)
        return scales[:, 0]

    @property
    def advice(self) -> str:
        """What to change when values grow too large."""
        return "lower decay or set max_depth" + ("" if self.normalized else ", or normalize it")

    def strips(self, packed: Packed, index: ProductionIndex) -> Iterator[tuple[slice, Matches]]:
        """C between all trees of `packed` and an index, for runs of trees whose cells fit STRIP_CELLS."""
        sizes = np.append(index.group_sizes, 0)
        known = (packed.symbols >= 0) & (packed.symbols < len(sizes) - 1)
        cells = offsets_from_lengths(sizes[np.where(known, packed.symbols, -1)])[packed.starts]
        for first, last in structure_runs(cells, STRIP_CELLS):
            yield slice(first, last), self._matches(DistinctSubtrees.of(packed.structures(first, last)), index.postings)

    def _matches(self, subtrees: DistinctSubtrees, postings: Postings) -> Matches:
        starts, total = cell_starts(subtrees.productions, postings.group_starts)
        current = np.zeros(total)
        if self.max_depth is None:
            match_subtrees(subtrees, starts, postings, float(self.decay), current, current)
            return Matches(subtrees, starts, current)
        previous = np.zeros(total)
        for _ in range(min(self.max_depth, subtrees.height())):
            match_subtrees(subtrees, starts, postings, float(self.decay), previous, current)
            previous, current = current, previous
        return Matches(subtrees, starts, previous)

    def _self_values(self, packed: Packed) -> Floats:
        assert isinstance(packed, PackedParses)
        depth = 0 if self.max_depth is None else min(self.max_depth, int(packed.lengths.max(initial=1)))
        values = self_values(
            packed.starts, packed.symbols, packed.link_indptr, packed.link_targets, float(self.decay), depth
        )
        if not np.isfinite(values).all():
            structure = int(np.flatnonzero(~np.isfinite(values))[0])
            raise KernelOverflowError(type(self).__name__, structure, structure, "float64", self.advice)
        return values


def _divide(out: Floats, self_values: Floats, axis: int) -> None:
    """out /= sqrt(self_values) along `axis`, in place; 0 where the self-value is 0."""
    scale = np.divide(1.0, np.sqrt(self_values), out=np.zeros_like(self_values), where=self_values > 0)
    out *= scale[:, None] if axis == 0 else scale[None, :]
