"""Kernel values that nobody keeps: between structures that changed and rows that have not received the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Packed, concatenate
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.packets import Changed, Delivery, Packet
from gramline.learners.operators.tile_memory import TileMemory

BATCH_ROWS = 2048  # changed rows that are compared at once: about one tile


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


class Comparison:
    """Kernel values between the units of one corpus, counted."""

    def __init__(self, how: Computing, gram: ComputesValues, *, merge: bool) -> None:
        self.distinct = DistinctRows.of(how.kernel, how.packed, merge=merge)
        self._kernel, self._dtype, self._gram = how.kernel, how.dtype, gram
        self._square, self._strip = TileMemory(how.dtype), TileMemory(how.dtype)  # a visit needs both

    def changed(self, rows: Indices) -> Changed:
        """The units of these rows, as a corpus."""
        units = self.distinct.units_of(rows)
        return Changed(self.distinct.take(units), units, np.searchsorted(self.distinct.rows_of(units), rows))

    def keeps(self, i: int, j: int) -> bool:
        """Whether this tile can be read instead."""
        return self._gram.keeps(min(i, j), max(i, j))

    def square(self, units: Indices) -> Tile:
        """Values between the rows of these units, in memory that the next one reuses."""
        packed = self.distinct.take(units)
        return self._tile(self._square, (packed, units), (packed, units))

    def strips(self, packets: Sequence[Packet], units: Indices, seen: Indices) -> Iterator[Delivery]:
        """Packets, rows that have not received them, and their values, of units that received all until `seen`.

        Rows are counted among those of `units`.
        """
        offsets = offsets_from_lengths(self.distinct.lengths[units])
        order = np.argsort(seen, kind="stable")  # so that rows which have not received a packet come first
        for batch in _batches(sorted(packets, key=lambda packet: packet.stamp), int(seen.min()) if len(seen) else 0):
            places = order[: np.searchsorted(seen[order], batch[-1].stamp)]
            cols = units[places]
            lengths = self.distinct.lengths[cols]
            parts = [packet.changed for packet in batch if packet.changed is not None]
            rows = parts[0].packed if len(parts) == 1 else concatenate([part.packed for part in parts])
            row_units = np.concatenate([part.units for part in parts])
            tile = self._tile(self._strip, (rows, row_units), (self.distinct.take(cols), cols))
            received = np.repeat(seen[places], lengths)
            changed = []
            first = 0
            for packet, part in zip(batch, parts, strict=True):
                last = first + int(self.distinct.lengths[part.units].sum())
                tile[first:last, np.searchsorted(received, packet.stamp) :] = 0.0
                changed.append(first + part.rows)
                first = last
            lines = np.concatenate(changed)
            values = tile if len(lines) == len(tile) else tile[lines]
            is_in_order = len(places) == len(units) and bool((np.diff(places) == 1).all())
            yield batch, slice(None) if is_in_order else indices_of_ranges(offsets[places], lengths), values

    def _tile(self, memory: TileMemory, rows: tuple[Packed, Indices], cols: tuple[Packed, Indices]) -> Tile:
        height, width = (int(self.distinct.lengths[units].sum()) for _, units in (rows, cols))
        try:
            tile = self._kernel.tile(rows[0], cols[0], self._dtype, memory.of(height, width))
        except KernelOverflowError as error:
            raise self.distinct.located(error, rows[1], cols[1]) from None
        self._gram.count_values(tile.size)
        return tile


def _batches(packets: Sequence[Packet], since: int) -> Iterator[list[Packet]]:
    """Packets made after `since`, in order, as many at once as fill about one tile."""
    batch: list[Packet] = []
    size = 0
    for packet in packets:
        if packet.stamp <= since or packet.changed is None:
            continue
        batch.append(packet)
        size += packet.changed.packed.n_positions
        if size >= BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
