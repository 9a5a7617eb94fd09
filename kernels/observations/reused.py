"""Blocks of a corpus that are columns of many tiles: features are put into lines and lists once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.observations.count_loops import place_columns
from gramline.kernels.observations.indexed import NO_VALUES
from gramline.kernels.observations.product_loops import ABSENT, RowSlots, SlottedColumns
from gramline.kernels.packing import Features, Floats, Ints, P
from gramline.kernels.ranges import offsets_from_lengths

MOST_UNUSED = 4  # features of the vocabulary for every entry of a block; with more, an index is mostly empty
INDEX_BYTES = 24  # for every entry of a block, about: the table of slots, the lists and the lines


@dataclass(frozen=True, eq=False)
class ReusedFeatures(Features):
    """Binary features that keep their lines and lists. Values are the same as without."""

    _made: list[ColumnSlots] = field(default_factory=list, repr=False)

    def slots(self, least_dense: int) -> ColumnSlots:
        """As columns of a tile; a feature that at least `least_dense` of them have is dense."""
        if not self._made or self._made[0].least_dense != least_dense:
            self._made[:] = [_slotted(self, least_dense)]
        return self._made[0]


@dataclass(frozen=True)
class ColumnSlots:
    """The columns by feature, and the slot of every feature, that of features which no column has at the end."""

    least_dense: int
    columns: SlottedColumns
    slot_of: Ints  # shape (n_features + 1,)

    def rows(self, features: Features, values: Floats) -> RowSlots:
        """Rows in these slots."""
        return RowSlots(features.indptr, look_up(self.slot_of, features.indices), values)


def reused(packed: P) -> P:
    """The same corpus, for many tiles; itself where its features are not binary, or few of very many."""
    features = packed.features
    if not features.is_binary or not len(features.indices) or type(features) is not Features:
        return packed
    if int(features.indices.max()) > MOST_UNUSED * len(features.indices):
        return packed
    return replace(packed, features=ReusedFeatures(features.indptr, features.indices, None))


def _slotted(features: Features, least_dense: int) -> ColumnSlots:
    n_columns = np.bincount(features.indices)
    is_dense = n_columns >= least_dense
    is_rare = ~is_dense & (n_columns > 0)
    slot_of = np.full(len(n_columns) + 1, ABSENT, np.int32)
    slot_of[:-1][is_dense] = 2 * np.arange(np.count_nonzero(is_dense))
    slot_of[:-1][is_rare] = 2 * np.arange(1, np.count_nonzero(is_rare) + 1) + 1
    rare_starts = offsets_from_lengths(np.append(0, n_columns[is_rare]))
    lines = np.empty((np.count_nonzero(is_dense) + 1, line_words(len(features))), np.uint64)
    columns = SlottedColumns(lines, rare_starts, np.empty(int(rare_starts[-1]), np.int32), NO_VALUES)
    place_columns(features.indptr, look_up(slot_of, features.indices), columns)
    return ColumnSlots(least_dense, columns, slot_of)


def line_words(n_columns: int) -> int:
    """Words of a line with a bit per column, in whole cache lines."""
    return -(-n_columns // 512) * 8


@jit
def look_up(slot_of: Ints, features: Ints) -> Ints:
    """The slot of each feature; features beyond the table have that of its end."""
    last = len(slot_of) - 1
    slots = np.empty(len(features), np.int32)
    for e in range(len(features)):
        slots[e] = slot_of[min(features[e], last)]
    return slots
