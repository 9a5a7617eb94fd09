"""Feature rows that many questions are asked about: indexed by feature once, so that a new row costs what it shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.observations.product_loops import RowSlots, SlottedColumns, place_features
from gramline.kernels.packing import Features, Floats, Ints
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

    def index(self, counts: DTypeLike | None, values: Floats) -> FeatureIndex:
        """The index for counts of that dtype, or for sums of `values`, made when it is first asked for."""
        key = "sums" if counts is None else np.dtype(counts).name
        if key not in self._indices:
            self._indices[key] = _indexed(self, counts, values)
        return self._indices[key]


def _indexed(features: Features, counts: DTypeLike | None, values: Floats) -> FeatureIndex:
    n_columns = np.bincount(features.indices)
    is_dense = n_columns >= max(1, int(len(features) * DENSE_SHARE))
    slot_of = np.empty(len(n_columns) + 1, np.int32)
    slot_of[:-1] = np.where(is_dense, 2 * (np.cumsum(is_dense) - 1), 2 * (np.cumsum(~is_dense) - 1) + 1)
    rare_counts = np.append(n_columns[~is_dense], 0)  # the last list is empty: that of unknown features
    slot_of[-1] = 2 * (len(rare_counts) - 1) + 1
    rare_starts = offsets_from_lengths(rare_counts)
    size = int(rare_starts[-1])
    columns = SlottedColumns(
        np.empty((int(is_dense.sum()), len(features)), np.float64 if counts is None else counts),
        rare_starts,
        np.empty(size, np.int32),
        np.empty(size) if counts is None else NO_VALUES,
    )
    place_features(features.indptr, slot_of[features.indices], values, columns)
    return FeatureIndex(columns, slot_of)
