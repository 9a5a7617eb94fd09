"""Feature rows that many questions are asked about: indexed by feature once, so that a new row costs what it shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gramline.kernels.observations.count_loops import place_columns
from gramline.kernels.observations.product_loops import ABSENT, RowSlots, SlottedColumns, place_features
from gramline.kernels.packing import Features, Floats, Ints, Offsets
from gramline.kernels.ranges import offsets_from_lengths

DENSE_SHARE = (
    1 / 16
)  # of the columns have a feature that gets a whole line; bounds lines to 16 times the features a row
NO_VALUES = np.empty(0)


@dataclass(frozen=True)
class FeatureIndex:
    """The columns by slot, and the slot of every feature; the last one is of features that no column has."""

    columns: SlottedColumns
    slot_of: Ints  # shape (n_features + 1,)

    def rows(self, features: Features, values: Floats) -> RowSlots:
        """New rows in these slots; without values (length 0) every value is 1."""
        slots = self.slot_of[np.minimum(features.indices, len(self.slot_of) - 1)]
        return RowSlots(features.indptr, slots, values)


@dataclass(frozen=True, eq=False)
class IndexedFeatures(Features):
    """Features that keep their index; as columns of a tile they are looked up, not sorted again."""

    _indices: dict[str, FeatureIndex] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, features: Features) -> IndexedFeatures:
        return cls(features.indptr, features.indices, features.values)

    def index(self, values: Floats, *, counts: bool) -> FeatureIndex:
        """The index for counts of common features, or for sums of `values`, made when it is first asked for."""
        key = "counts" if counts else "sums"
        if key not in self._indices:
            self._indices[key] = _indexed(self, values, counts=counts)
        return self._indices[key]


def room_for_columns(n_dense: int, n_cols: int, rare_starts: Offsets, *, counts: bool) -> SlottedColumns:
    """Memory for `n_dense` lines and the rare lists: of bits for counts, in whole cache lines, else of floats."""
    n_rare = int(rare_starts[-1])
    if counts:
        lines = np.empty((n_dense + 1, -(-n_cols // 512) * 8), np.uint64)
        return SlottedColumns(lines, rare_starts, np.empty(n_rare, np.int32), NO_VALUES)
    return SlottedColumns(np.empty((n_dense, n_cols)), rare_starts, np.empty(n_rare, np.int32), np.empty(n_rare))


def _indexed(features: Features, values: Floats, *, counts: bool) -> FeatureIndex:
    n_columns = np.bincount(features.indices)
    is_dense = n_columns >= max(1, int(len(features) * DENSE_SHARE))
    slot_of = np.empty(len(n_columns) + 1, np.int32)
    slot_of[:-1] = np.where(is_dense, 2 * (np.cumsum(is_dense) - 1), 2 * np.cumsum(~is_dense) + 1)
    slot_of[-1] = ABSENT
    rare_counts = np.append(0, n_columns[~is_dense])
    columns = room_for_columns(int(is_dense.sum()), len(features), offsets_from_lengths(rare_counts), counts=counts)
    slots = slot_of[features.indices]
    if counts:
        place_columns(features.indptr, slots, columns)
    else:
        place_features(features.indptr, slots, values, columns)
    return FeatureIndex(columns, slot_of)
