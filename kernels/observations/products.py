"""The fastest exact way to dot products of feature rows: counts for binary features, sums for real ones."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.observations.base import GatheredStrips, Strips, inverse_norms
from gramline.kernels.observations.indexed import NO_VALUES, IndexedFeatures
from gramline.kernels.observations.product_loops import (
    RowSlots,
    SlottedColumns,
    assign_slots,
    fill_from_counts,
    fill_from_distances,
    fill_products,
    place_features,
    scale_cells,
    sum_squares,
    to_distances,
)
from gramline.kernels.packing import Features, Floats, Ints, Packed, frozen

# Measured on 2048 columns: a dense line costs about as much as a rare list of this share of the columns.
DENSE_SHARE_OF_COUNTS = 1 / 64
DENSE_SHARE_OF_SUMS = 1 / 8
# Nanoseconds per cell, rough: only their ratios decide which way is taken.
GATHER_COST, TABLE_COST, COUNT_COST, SUM_COST, EXPONENTIAL_COST = 0.6, 0.5, 0.02, 0.15, 5.0


class FeatureMap(Protocol):
    """k_x as a function of the dot product, or of the squared distance."""

    @property
    def normalized(self) -> bool: ...
    @property
    def by_distance(self) -> bool: ...
    @property
    def of_unit_rows(self) -> bool: ...

    def apply(self, values: Floats) -> None:
        """Replace dot products (or squared distances) by kernel values, in place; two-dimensional."""
        ...

    def self_values(self, features: Features) -> Floats:
        """k(x, x) of every feature row, before normalization."""
        ...


def slotted(
    rows: Features, cols: Features, dense_share: float, counts: DTypeLike | None = None
) -> tuple[RowSlots, SlottedColumns]:
    """Both sides by slots; `counts` is the dtype that holds counts of common features, None for real features."""
    row_values, col_values = (NO_VALUES, NO_VALUES) if counts else (values_of(rows), values_of(cols))
    if isinstance(cols, IndexedFeatures):
        index = cols.index(counts, col_values)
        return index.rows(rows, row_values), index.columns
    least_dense = max(1, int(len(cols) * dense_share))
    row_slots, col_slots, n_dense, rare_starts = assign_slots(rows.indices, cols.indices, least_dense)
    dense, rare_cols = np.empty((n_dense, len(cols)), counts or np.float64), np.empty(rare_starts[-1], np.int32)
    columns = SlottedColumns(dense, rare_starts, rare_cols, NO_VALUES if counts else np.empty(rare_starts[-1]))
    place_features(cols.indptr, col_slots, col_values, columns)
    return RowSlots(rows.indptr, row_slots, row_values), columns


class CountedStrips:
    """Binary features: integers, so the map is a table."""

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap) -> None:
        row_sizes, col_sizes = np.diff(rows.indptr), np.diff(cols.indptr)
        largest_row, largest_col = int(row_sizes.max(initial=0)), int(col_sizes.max(initial=0))
        most = min(largest_row, largest_col)
        dtype = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
        self.rows, self.cols = slotted(rows, cols, DENSE_SHARE_OF_COUNTS, dtype)
        self.by_distance, self.col_sizes = feature_map.by_distance, col_sizes
        table = np.arange(float((largest_row + largest_col if self.by_distance else most) + 1)).reshape(1, -1)
        feature_map.apply(table)
        self.table = table[0]

    def fill(self, first: int, last: int, out: Floats) -> None:
        if self.by_distance:
            fill_from_distances(first, self.rows, self.cols, self.col_sizes, self.table, out[: last - first])
        else:
            fill_from_counts(first, self.rows, self.cols, self.table, out[: last - first])


class SummedStrips:
    """Real features, sparse or dense."""

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap) -> None:
        self.rows, self.cols = slotted(rows, cols, DENSE_SHARE_OF_SUMS)
        self.map = feature_map
        if feature_map.by_distance:
            self.row_norms, self.col_norms = squared_norms(rows), squared_norms(cols)

    def fill(self, first: int, last: int, out: Floats) -> None:
        fill_products(first, self.rows, self.cols, out[: last - first])
        if self.map.by_distance:
            to_distances(self.row_norms[first:last], self.col_norms, out)
        self.map.apply(out)


class ScaledStrips:
    """Other strips, each cell times the scales of its row and its column."""

    def __init__(self, strips: Strips, row_scales: Floats, col_scales: Floats) -> None:
        self.strips, self.row_scales, self.col_scales = strips, row_scales, col_scales

    def fill(self, first: int, last: int, out: Floats) -> None:
        self.strips.fill(first, last, out)
        scale_cells(self.row_scales[first:last], self.col_scales, out)


class DotProducts:
    """The map that leaves dot products as they are."""

    normalized = by_distance = of_unit_rows = False

    def apply(self, values: Floats) -> None:
        pass

    def self_values(self, features: Features) -> Floats:
        return squared_norms(features)


class UnitStrips:
    """A map of the cosine of two feature rows, or of the distance of their directions; a row of zeros stays one."""

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap) -> None:
        row_scales, col_scales = (inverse_norms(squared_norms(features)) for features in (rows, cols))
        self.cosines = ScaledStrips(product_strips(rows, cols, DotProducts()), row_scales, col_scales)
        self.map = feature_map
        self.row_norms, self.col_norms = ((scales > 0).astype(np.float64) for scales in (row_scales, col_scales))

    def fill(self, first: int, last: int, out: Floats) -> None:
        self.cosines.fill(first, last, out)
        if self.map.by_distance:
            to_distances(self.row_norms[first:last], self.col_norms, out)
        self.map.apply(out)


def feature_strips(rows: Packed, cols: Packed, feature_map: FeatureMap) -> Strips:
    """Strips of `feature_map`; equal observations are computed once and gathered where that is cheaper."""
    direct = cost_per_cell(rows.features, cols.features, feature_map)
    if direct > 2 * GATHER_COST and not isinstance(cols.features, IndexedFeatures):
        row_features, row_codes = distinct(rows)
        col_features, col_codes = distinct(cols)
        share = len(row_features) * len(col_features) / max(1, rows.n_positions * cols.n_positions)
        if share * direct + GATHER_COST < direct:
            values = np.empty((len(row_features), len(col_features)))
            direct_strips(row_features, col_features, feature_map).fill(0, len(row_features), values)
            return GatheredStrips(values, row_codes, col_codes)
    return direct_strips(rows.features, cols.features, feature_map)


def direct_strips(rows: Features, cols: Features, feature_map: FeatureMap) -> Strips:
    """Every cell by itself, scaled when the map asks for it."""
    strips = (UnitStrips if feature_map.of_unit_rows else product_strips)(rows, cols, feature_map)
    if not feature_map.normalized or feature_map.by_distance:  # a function of the distance has k(x, x) = 1
        return strips
    row_scales, col_scales = (inverse_norms(feature_map.self_values(features)) for features in (rows, cols))
    return ScaledStrips(strips, row_scales, col_scales)


def product_strips(rows: Features, cols: Features, feature_map: FeatureMap) -> CountedStrips | SummedStrips:
    """A map of the dot products themselves."""
    return (CountedStrips if rows.is_binary and cols.is_binary else SummedStrips)(rows, cols, feature_map)


def cost_per_cell(rows: Features, cols: Features, feature_map: FeatureMap) -> float:
    """Rough nanoseconds to evaluate one cell without gathering."""
    features_per_row = len(rows.indices) / max(1, len(rows))
    if rows.is_binary and cols.is_binary:
        return TABLE_COST + COUNT_COST * features_per_row
    return TABLE_COST + SUM_COST * features_per_row + (EXPONENTIAL_COST if feature_map.by_distance else 0.0)


def distinct(packed: Packed) -> tuple[Features, Ints]:
    """The features of the distinct observations, and which of them each position has."""
    _, where_first, codes = np.unique(packed.symbols, return_index=True, return_inverse=True)
    return packed.features.take(where_first), codes.astype(np.int32)


def values_of(features: Features) -> Floats:
    """The values of all entries, also of binary features; read-only as those of a corpus are."""
    return frozen(np.ones(len(features.indices)), np.float64) if features.values is None else features.values


def squared_norms(features: Features) -> Floats:
    """|x|^2 of every row."""
    if features.values is None:
        return np.diff(features.indptr).astype(np.float64)
    norms = np.empty(len(features))
    sum_squares(features.indptr, features.values, norms)
    return norms
