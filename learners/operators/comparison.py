"""Kernel values that nobody keeps: between structures that changed and rows that have not received the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.observations.reused import reused
from gramline.kernels.packing import Packed
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.packets import Changed, Packet, Values, combined
from gramline.learners.operators.sum_loops import clear_received
from gramline.learners.operators.tile_memory import TileMemory

BATCH_ROWS = 2048  # rows of changed structures that are compared at once, about: one tile
SPARE_VALUES = 500_000  # that are computed for nothing sooner than another selection of units is indexed


@dataclass(frozen=True)
class Computing:
    """How values are computed that nobody keeps."""

    kernel: Kernel
    packed: Packed  # the prepared corpus of the rows
    dtype: np.dtype[np.generic]  # of the values


@runtime_checkable
class ComputesValues(Protocol):
    """An operator that computes some or all of its tiles when they are asked for."""

    def computing(self) -> Computing | None:
        """How; None where every tile is kept."""

    def keeps(self, i: int, j: int) -> bool:
        """Whether the tile of these blocks is kept; the first one, (0, 0), whenever any is."""

    def count_values(self, n_values: int) -> None:
        """So many kernel values were computed for it elsewhere."""


def computing(gram: object) -> Computing | None:
    """How an operator computes values that it does not keep; None where it keeps all."""
    return gram.computing() if isinstance(gram, ComputesValues) else None


class Batch(NamedTuple):
    """Changes that are brought together."""

    whole: Packet  # all of them, one after the other
    rows: Packed  # the structures that hold changed rows
    units: Indices  # their numbers
    starts: Indices  # first row of the structures of each packet, and the end
    lines: Indices  # changed rows among those of `rows`
    packets: Sequence[Packet]  # oldest first

    @classmethod
    def of(cls, distinct: DistinctRows, packets: Sequence[Packet]) -> Batch:
        parts = [packet.changed for packet in packets if packet.changed is not None]
        units = np.concatenate([part.units for part in parts])
        starts = offsets_from_lengths([part.n_rows for part in parts])
        lines = np.concatenate([first + part.rows for first, part in zip(starts, parts, strict=False)])
        return cls(combined(packets), distinct.take(units), units, starts, lines, packets)


class Strip(NamedTuple):
    """What some units have not received."""

    whole: Packet
    places: Indices  # of these units among those asked for
    values: Values


class Comparison:
    """Kernel values between the distinct units of one corpus, counted."""

    def __init__(self, how: Computing, gram: ComputesValues) -> None:
        self.distinct = DistinctRows.of(how.kernel, how.packed)
        self._kernel, self._dtype, self._gram = how.kernel, how.dtype, gram
        self._square, self._strip = TileMemory(how.dtype), TileMemory(how.dtype)  # a visit needs both
        self._batches: dict[tuple[int, ...], Batch] = {}  # of the last visit: the next one needs nearly the same
        self._taken: tuple[Indices, Packed] = np.empty(0, np.int64), how.packed.structures(0, 0)

    def changed(self, rows: Indices) -> Changed:
        """The units of these distinct rows."""
        units = self.distinct.units_of(rows)
        every = self.distinct.rows_of(units)
        starts = self.distinct.units.starts
        n_positions = int((starts[units + 1] - starts[units]).sum())
        return Changed(units, np.searchsorted(every, rows), len(every), n_positions)

    def keeps(self, i: int, j: int) -> bool:
        """Whether this tile can be read instead."""
        return self._gram.keeps(min(i, j), max(i, j))

    def square(self, units: Indices) -> Tile:
        """Values between the rows of these units, in memory that the next one reuses."""
        packed = self._take(units)
        return self._tile(self._square, (packed, units), (packed, units))

    def strips(self, packets: Sequence[Packet], units: Indices, seen: Indices) -> Iterator[Strip]:
        """What units have not received, each of which has received everything until its `seen`.

        Columns of the values are the rows of these units.
        """
        order = np.argsort(seen, kind="stable")  # so that units which have not received a packet come first
        since = int(seen.min()) if len(seen) else 0
        before, self._batches = self._batches, {}
        for group in _groups([packet for packet in packets if packet.stamp > since and packet.changed is not None]):
            key = tuple(map(id, group))
            batch = self._batches[key] = before.get(key) or Batch.of(self.distinct, group)
            places = np.sort(order[: np.searchsorted(seen[order], group[-1].stamp)])
            if (len(units) - len(places)) * batch.rows.n_positions <= SPARE_VALUES:
                places = np.arange(len(units))
            cols = units[places]
            tile = self._tile(self._strip, (batch.rows, batch.units), (self._take(cols), cols))
            if int(seen[places].max(initial=0)) >= group[0].stamp:
                received = np.repeat(seen[places], self.distinct.lengths[cols])
                clear_received(tile, batch.starts, np.array([packet.stamp for packet in group]), received)
            yield Strip(batch.whole, places, Values(tile, batch.lines))

    def _take(self, units: Indices) -> Packed:
        """These units as a corpus; most are asked for several times in a row, and indexed once for all."""
        known, packed = self._taken
        if not np.array_equal(units, known):
            packed = reused(self.distinct.take(units))
            self._taken = units, packed
        return packed

    def _tile(self, memory: TileMemory, rows: tuple[Packed, Indices], cols: tuple[Packed, Indices]) -> Tile:
        height, width = (int(self.distinct.lengths[units].sum()) for _, units in (rows, cols))
        try:
            tile = self._kernel.tile(rows[0], cols[0], self._dtype, memory.of(height, width))
        except KernelOverflowError as error:
            raise self.distinct.located(error, rows[1], cols[1]) from None
        self._gram.count_values(tile.size)
        return tile


def _groups(packets: Sequence[Packet]) -> Iterator[list[Packet]]:
    """Packets in order, as many together as fill about one tile.

    Bounds follow from what was changed before, whatever the others are: whoever brings a packet, and whenever, brings
    it together with the same ones.
    """
    for _, group in groupby(sorted(packets, key=lambda packet: packet.stamp), lambda one: one.begin // BATCH_ROWS):
        yield list(group)
