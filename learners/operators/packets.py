"""What rows know of each problem, and what visits of a dual learner changed, until all other rows have received it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Indices, Matrix, Tile

Rows: TypeAlias = "slice | Indices"

FEW_KINDS = 8  # in any case
KINDS_SHARE = 0.5  # of the rows: with more kinds of changes than that, adding them up first saves nothing


class Scores(NamedTuple):
    """What one problem knows of some rows."""

    sums: Matrix  # (G W)^T, shape (n_columns, n_rows)
    magnitudes: Matrix  # |G| times the sizes of all changes: what a rounding error is part of, shape (n_rows,)


@dataclass(frozen=True, eq=False)
class Changed:
    """Which structures hold changed rows; whoever compares them takes them from its corpus."""

    units: Indices  # their numbers
    rows: Indices  # which of their rows are the changed ones
    n_rows: int  # of these structures
    n_positions: int  # of these structures


class Kinds(NamedTuple):
    """The changes of a packet that are not the same, and which rows have them."""

    steps: Matrix  # shape (n_changed, n_kinds)
    sizes: Matrix  # shape (n_problems, n_kinds)
    order: Indices  # places of rows in the packet, kind by kind, shape (n,)
    starts: Indices  # of each kind in `order`, and the end, shape (n_kinds + 1,)


@dataclass(frozen=True, eq=False)
class Packet:
    """What a visit changed, for all rows that it did not visit; or what several did, one after the other."""

    stamp: int  # when
    rows: Indices  # changed rows of the source, in order, shape (n,)
    steps: Matrix  # of the weights, only columns that changed, shape (n_changed, n)
    sizes: Matrix  # shape (n_problems, n)
    touched: dict[int, Indices]  # by problem: the columns of its weights that the next lines of `steps` are
    changed: Changed | None  # where values are computed
    begin: int = 0  # rows of changed structures in all packets before it

    @cached_property
    def kinds(self) -> Kinds | None:
        """Rows that change in the same way, together; None where most change in a way of their own."""
        every = np.concatenate([self.steps, self.sizes])
        weights = np.sqrt(np.arange(2.0, len(every) + 2.0))
        keys = np.zeros(len(self.rows))
        for weight, line in zip(weights, every, strict=True):  # one by one: equal columns have equal sums
            keys += weight * line
        _, first, kind_of = np.unique(keys, return_index=True, return_inverse=True)
        is_few = len(first) <= max(FEW_KINDS, KINDS_SHARE * len(keys))
        if not is_few or not np.array_equal(every[:, first][:, kind_of], every):
            return None
        starts = offsets_from_lengths(np.bincount(kind_of, minlength=len(first)))
        return Kinds(self.steps[:, first], self.sizes[:, first], np.argsort(kind_of, kind="stable"), starts)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the structures, which follow from the rows; packets never change, so these are no copies."""
        return {
            "stamp": np.array(self.stamp),
            "begin": np.array(self.begin),
            "rows": self.rows,
            "steps": self.steps,
            "sizes": self.sizes,
            "problems": np.array(list(self.touched), np.int64),
            "ends": np.cumsum([len(columns) for columns in self.touched.values()]),
            "columns": np.concatenate(list(self.touched.values())),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], changed: Changed | None) -> Packet:
        """The inverse of `to_arrays`."""
        columns = np.split(arrays["columns"], arrays["ends"][:-1])
        touched = dict(zip(arrays["problems"].tolist(), columns, strict=True))
        steps, sizes, begin = arrays["steps"], arrays["sizes"], int(arrays.get("begin", np.array(0)))
        return cls(int(arrays["stamp"]), arrays["rows"], steps, sizes, touched, changed, begin)


def combined(packets: Sequence[Packet]) -> Packet:
    """One packet of them all, for one product; its rows are those of the packets, side by side."""
    if len(packets) == 1:
        return packets[0]
    problems = dict.fromkeys(problem for packet in packets for problem in packet.touched)
    touched = {
        problem: np.unique(np.concatenate([packet.touched[problem] for packet in packets if problem in packet.touched]))
        for problem in problems
    }
    first_line = dict(zip(problems, offsets_from_lengths([len(columns) for columns in touched.values()]), strict=False))
    rows = np.concatenate([packet.rows for packet in packets])
    steps = np.zeros((sum(map(len, touched.values())), len(rows)))
    sizes = np.zeros((len(problems), len(rows)))
    places = {problem: place for place, problem in enumerate(problems)}
    begin = 0
    for packet in packets:
        span = slice(begin, begin + len(packet.rows))
        line = 0
        for number, (problem, columns) in enumerate(packet.touched.items()):
            lines = first_line[problem] + np.searchsorted(touched[problem], columns)
            steps[lines, span] = packet.steps[line : line + len(columns)]
            sizes[places[problem], span] = packet.sizes[number]
            line += len(columns)
        begin = span.stop
    return Packet(packets[-1].stamp, rows, steps, sizes, touched, None)


class Values(NamedTuple):
    """G between changed rows and visited ones, as it lies in a tile."""

    tile: Tile  # rows are C-contiguous, or columns are
    lines: Indices | None = None  # of the tile, one for every changed row; None: all, in order
    columns: Indices | None = None  # of the tile, one for every visited row; None: all, in order

    def matrix(self) -> Matrix:
        """The values themselves in double precision, of all columns of the tile."""
        return np.asarray(self.tile if self.lines is None else self.tile[self.lines], np.float64)


# Packets, which of the visited rows have not received them, and G between their changed rows and these.
Delivery: TypeAlias = "tuple[Sequence[Packet], Rows, Values]"
