"""The fastest exact way to dot products of feature rows: counts for binary features, sums for real ones."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.observations.base import GatheredStrips, RoundedStrips, Strips, inverse_norms
from gramline.kernels.observations.count_loops import (
    PADDING,
    SinglePowers,
    Singles,
    fill_from_counts,
    fill_from_distances,
    fill_powers,
    place_columns,
)
from gramline.kernels.observations.indexed import NO_VALUES, IndexedFeatures, room_for_columns
from gramline.kernels.observations.product_loops import (
    RowSlots,
    SlottedColumns,
    assign_slots,
    fill_products,
    place_features,
    scale_cells,
    sum_squares,
    to_distances,
)
from gramline.kernels.observations.reused import ReusedFeatures
from gramline.kernels.packing import Features, Floats, Ints, Packed, frozen

# Measured on 2048 columns: a dense line costs about as much as a rare list of this share of the columns.
DENSE_SHARE_OF_COUNTS = 1 / 256
DENSE_SHARE_OF_SUMS = 1 / 8
COUNTED_ROWS = 8  # at once
MOST_SINGLE_DEGREE, MOST_SINGLE_OFFSET = 4, 1e4
# Nanoseconds per cell, rough: only their ratios decide which way is taken.
GATHER_COST, TABLE_COST, COUNT_COST, SUM_COST, EXPONENTIAL_COST = 0.6, 0.5, 0.02, 0.15, 5.0


class Power(NamedTuple):
    """(x . x' + offset)^degree."""

    offset: float
    degree: int

    @property
    def is_single(self) -> bool:
        """Whether float32 holds it and its inverse root for any number of features; else a table in float64 does."""
        return self.degree <= MOST_SINGLE_DEGREE and self.offset <= MOST_SINGLE_OFFSET


class FeatureMap(Protocol):
    """k_x as a function of the dot product, or of the squared distance."""

    @property
    def power(self) -> Power | None:
        """The map as a power of the dot product, where it is one."""
        ...

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


def slotted(rows: Features, cols: Features, dense_share: float, *, counts: bool) -> tuple[RowSlots, SlottedColumns]:
    """Both sides by slots, for counts of common features or for sums of products."""
    row_values, col_values = (NO_VALUES, NO_VALUES) if counts else (values_of(rows), values_of(cols))
    if isinstance(cols, IndexedFeatures):
        index = cols.index(col_values, counts=counts)
        return index.rows(rows, row_values), index.columns
    least_dense = max(1, int(len(cols) * dense_share))
    if counts and isinstance(cols, ReusedFeatures):
        known = cols.slots(least_dense)
        return known.rows(rows, row_values), known.columns
    row_slots, col_slots, n_dense, rare_starts = assign_slots(rows.indices, cols.indices, least_dense)
    columns = room_for_columns(n_dense, len(cols), rare_starts, counts=counts)
    if counts:
        place_columns(cols.indptr, col_slots, columns)
    else:
        place_features(cols.indptr, col_slots, col_values, columns)
    return RowSlots(rows.indptr, row_slots, row_values), columns


class Counted:
    """Binary features on both sides: which features they share, and room to count them."""

    def __init__(self, rows: Features, cols: Features) -> None:
        self.row_sizes, self.col_sizes = np.diff(rows.indptr), np.diff(cols.indptr)
        self.most = min(int(self.row_sizes.max(initial=0)), int(self.col_sizes.max(initial=0)))
        dtype = np.uint8 if self.most < 1 << 8 else np.uint16 if self.most < 1 << 16 else np.uint32
        self.rows, self.cols = slotted(rows, cols, DENSE_SHARE_OF_COUNTS, counts=True)
        self.room = np.empty((COUNTED_ROWS, 64 * self.cols.dense.shape[1]), dtype)


class CountedStrips:
    """Binary features: integers, so the map is a table."""

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap) -> None:
        self.counted = counted = Counted(rows, cols)
        self.by_distance = feature_map.by_distance
        largest = counted.most
        if self.by_distance:
            largest = int(counted.row_sizes.max(initial=0)) + int(counted.col_sizes.max(initial=0))
        table = np.arange(float(largest + 1)).reshape(1, -1)
        feature_map.apply(table)
        self.table = table[0]

    def fill(self, first: int, last: int, out: Floats) -> None:
        counted = self.counted
        sides, target = (first, counted.rows, counted.cols), out[: last - first]
        if self.by_distance:
            fill_from_distances(*sides, counted.col_sizes, self.table, counted.room, target)
        else:
            fill_from_counts(*sides, self.table, counted.room, target)


class PowerStrips:
    """Binary features and a power of their dot product, in single precision from the counts on.

    A power is a product of at most four numbers below 1e5, so nothing overflows and a few roundings are all the error.
    `fill` takes arrays that are wider, too.
    """

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap, power: Power) -> None:
        self.counted, self.n_cols = Counted(rows, cols), len(cols)
        sides = (rows, cols)
        scales = [
            inverse_norms(feature_map.self_values(side)) if feature_map.normalized else np.ones(len(side))
            for side in sides
        ]
        units = [inverse_norms(squared_norms(side)) if feature_map.of_unit_rows else NO_VALUES for side in sides]
        singles = [array.astype(np.float32) for array in (*scales, *units)]
        for number in (1, 3):  # those of the columns
            if len(singles[number]):
                singles[number] = np.append(singles[number], np.zeros(PADDING, np.float32))
        self.powers = SinglePowers(np.float32(power.offset), power.degree, *singles)

    def fill(self, first: int, last: int, out: Singles) -> None:
        counted = self.counted
        sides = (first, counted.rows, counted.cols)
        fill_powers(*sides, self.n_cols, self.powers, counted.room, out[: last - first])


class SummedStrips:
    """Real features, sparse or dense."""

    def __init__(self, rows: Features, cols: Features, feature_map: FeatureMap) -> None:
        self.rows, self.cols = slotted(rows, cols, DENSE_SHARE_OF_SUMS, counts=False)
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
    power = Power(0.0, 1)

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


def feature_strips(rows: Packed, cols: Packed, feature_map: FeatureMap, dtype: DTypeLike = np.float64) -> Strips:
    """Strips of `feature_map`; equal observations are computed once and gathered where that is cheaper."""
    direct = cost_per_cell(rows.features, cols.features, feature_map)
    if direct > 2 * GATHER_COST and not isinstance(cols.features, IndexedFeatures):
        row_features, row_codes = distinct(rows)
        col_features, col_codes = distinct(cols)
        share = len(row_features) * len(col_features) / max(1, rows.n_positions * cols.n_positions)
        if share * direct + GATHER_COST < direct:
            values = np.empty((len(row_features), len(col_features)), dtype)
            strips_of(row_features, col_features, feature_map, dtype).fill(0, len(row_features), values)
            return GatheredStrips(values, row_codes, col_codes)
    return strips_of(rows.features, cols.features, feature_map, dtype)


def strips_of(rows: Features, cols: Features, feature_map: FeatureMap, dtype: DTypeLike) -> Strips:
    """Every cell by itself; in single precision only where that loses nothing but a few roundings."""
    if dtype == np.float64:
        return direct_strips(rows, cols, feature_map)
    if feature_map.power is not None and feature_map.power.is_single and rows.is_binary and cols.is_binary:
        return PowerStrips(rows, cols, feature_map, feature_map.power)
    return RoundedStrips(direct_strips(rows, cols, feature_map), len(cols))


def direct_strips(rows: Features, cols: Features, feature_map: FeatureMap) -> Strips:
    """Every cell by itself in double precision, scaled when the map asks for it."""
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
