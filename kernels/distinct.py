"""Equal structures have equal rows: the distinct ones, and which of them every row of a Gram matrix is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import MISSING, Offsets, Packed
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths

IGNORED = ("labels", "table", "codes")  # rows are free of labels; codes follow from symbols


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The units of a prepared corpus, each once; a unit is what `Kernel.units` can compare by itself."""

    kernel: Kernel
    units: Packed  # distinct ones, in the order of their first appearance
    first: Offsets  # structure of the corpus that each distinct unit was first seen in, shape (n_units,)
    row_of: Offsets  # distinct row of every row of the corpus, shape (n_rows,)

    @classmethod
    def of(cls, kernel: Kernel, packed: Packed) -> DistinctRows:
        """Of a corpus that `kernel.prepare` returned."""
        every = kernel.units(packed)
        first, unit_of = np.unique(first_equals(every), return_inverse=True)
        units = every if len(first) == len(every) else every.take(first)
        starts = offsets_from_lengths(kernel.row_lengths(units))
        row_of = indices_of_ranges(starts[unit_of], kernel.row_lengths(every))
        where = first if len(every) == len(packed) else np.searchsorted(packed.starts, every.starts[first], "right") - 1
        return cls(kernel, units, where, row_of)

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return int(self.starts[-1])

    @cached_property
    def rows_by_distinct(self) -> tuple[Offsets, Offsets]:
        """All rows of the corpus, distinct row by distinct row and otherwise in order; where those of each begin."""
        counts = np.bincount(self.row_of, minlength=self.n_rows)
        return np.argsort(self.row_of, kind="stable"), offsets_from_lengths(counts)

    @cached_property
    def lengths(self) -> Offsets:
        """Rows of every distinct unit."""
        return self.kernel.row_lengths(self.units)

    @cached_property
    def starts(self) -> Offsets:
        """First distinct row of every distinct unit, and the end."""
        return offsets_from_lengths(self.lengths)

    def units_of(self, rows: Offsets) -> Offsets:
        """Distinct units that hold these distinct rows, in order."""
        units = rows if self.n_rows == len(self.starts) - 1 else np.searchsorted(self.starts, rows, "right") - 1
        if (units[1:] >= units[:-1]).all():  # as they mostly are: not sorted again
            return units[np.append(True, units[1:] > units[:-1])] if len(units) else units
        return np.unique(units)

    def rows_of(self, units: Offsets) -> Offsets:
        """Distinct rows of these distinct units."""
        return indices_of_ranges(self.starts[units], self.lengths[units])

    def take(self, units: Offsets) -> Packed:
        """These distinct units as a corpus; a view where they lie side by side."""
        if len(units) and int(units[-1]) - int(units[0]) + 1 == len(units) and (np.diff(units) == 1).all():
            return self.units.structures(int(units[0]), int(units[-1]) + 1)
        return self.units.take(units)

    def located(self, error: KernelOverflowError, rows: Offsets, cols: Offsets) -> KernelOverflowError:
        """The error of a tile between distinct units, with the structures of the corpus."""
        error.row = int(self.first[rows[error.row]])
        if error.column is not None:
            error.column = int(self.first[cols[error.column]])
        return error


def first_equals(packed: Packed) -> Offsets:
    """For every structure the number of the first one that has the same rows, shape (n_structures,)."""
    if packed.kind != "parses" and (packed.symbols == MISSING).any():  # nobody asked for the identity of observations
        return np.arange(len(packed))
    arrays = {name: array for name, array in packed.arrays().items() if not name.startswith("feature_")}
    starts = arrays.pop("starts")
    targets, ends = arrays.pop("link_targets", None), arrays.pop("link_indptr", None)
    lines = [array for name, array in arrays.items() if name not in IGNORED]
    if len(packed) == packed.n_positions and len(lines) == 1 and targets is None:
        _, first, which = np.unique(packed.symbols, return_index=True, return_inverse=True)
        return first[which]
    seen: dict[tuple[bytes, ...], int] = {}
    result = np.empty(len(packed), np.int64)
    for number, (low, high) in enumerate(pairwise(starts.tolist())):
        key = tuple(line[low:high].tobytes() for line in lines)
        if targets is not None and ends is not None:
            own = ends[low : high + 1]
            key += ((own - own[0]).tobytes(), targets[own[0] : own[-1]].tobytes())
        result[number] = seen.setdefault(key, number)
    return result
