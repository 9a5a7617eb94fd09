"""Where the rows of a Gram matrix come from while a dual learner trains: tiles that are kept, or the kernel itself.

Rows of the Gram that are equal are one row of a `ComputedRows`; those of a `TileRows` are the Gram's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Packed, concatenate
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.operators.gather_loops import gather_columns
from gramline.learners.operators.layout import by_block
from gramline.learners.operators.operator import GramOperator

BATCH_ROWS = 2048  # changed rows that are compared at once: about one tile
SEEN_SHARE = 0.1  # of rows that have received a batch already, below which leaving them out is not worth a copy

Rows: TypeAlias = "slice | Indices"


@dataclass(frozen=True, eq=False)
class Changed:
    """Structures that hold changed rows, as a corpus of their own."""

    packed: Packed
    units: Indices  # their numbers
    rows: Indices  # which rows of `packed` are the changed ones


@dataclass(frozen=True, eq=False)
class Packet:
    """What a visit changed, for all rows that it did not visit."""

    stamp: int  # when
    rows: Indices  # changed rows of the source, in order, shape (n,)
    steps: Matrix  # of the weights, only columns that changed, shape (n_changed, n)
    sizes: Matrix  # shape (n_problems, n)
    touched: dict[int, Indices]  # by problem: the columns of its weights that the next lines of `steps` are
    changed: Changed | None  # where values are computed


class RowSource(Protocol):
    """Rows and values of a Gram matrix as they are asked for, and who has received which changes."""

    @property
    def n_rows(self) -> int: ...

    def visit(self, rows: Rows) -> tuple[Rows, Indices]:
        """The source's rows for rows of the Gram, and for each of the latter which of the former it is."""

    def square(self, rows: Rows) -> Tile:
        """G between the rows of a visit, C-contiguous."""

    def pending(self, rows: Rows, packets: Sequence[Packet]) -> Iterator[tuple[Packet, Rows, Tile]]:
        """(packet, rows that have not received it, G[changed rows, these rows]), of some rows to be visited."""

    def parts(self, rows: Indices) -> list[Indices]:
        """Places in `rows`, changed ones, that make a packet each."""

    def packed(self, rows: Indices) -> Changed | None:
        """The structures of changed rows, where values are computed."""

    def mark(self, rows: Rows, stamp: int) -> None:
        """These rows have received everything until `stamp`."""

    def oldest(self) -> int:
        """Everybody has received what was changed until then."""

    def gram_row(self, row: int) -> int:
        """A row of the Gram that is this row of the source."""


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


def source_of(gram: GramOperator) -> RowSource:
    """Computed where no tile is kept, otherwise from tiles, with what is left out of them computed."""
    if isinstance(gram, ComputesValues) and (how := gram.computing()) is not None:
        keeps_any = gram.keeps(0, 0)
        compare = Comparison(how, gram, merge=not keeps_any)
        return TileRows(gram, compare) if keeps_any else ComputedRows(compare)
    return TileRows(gram, None)


class Comparison:
    """Kernel values between the units of one corpus, counted."""

    def __init__(self, how: Computing, gram: ComputesValues, *, merge: bool) -> None:
        self.distinct = DistinctRows.of(how.kernel, how.packed, merge=merge)
        self._kernel, self._dtype, self._gram = how.kernel, how.dtype, gram
        self._memory = [np.empty(0, how.dtype) for _ in range(2)]  # of a square tile, and of all others

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
        return self._tile(0, (packed, units), (packed, units))

    def strips(
        self, packets: Sequence[Packet], units: Indices, seen: Indices
    ) -> Iterator[tuple[Packet, Indices, Tile]]:
        """(packet, rows that have not received it, their values) of units that received all until `seen`."""
        for batch in _batches(packets, int(seen.min())):
            parts = [packet.changed for packet in batch if packet.changed is not None]
            fresh = seen < batch[-1].stamp
            cols = units if (~fresh).mean() < SEEN_SHARE else units[fresh]
            col_rows = self.distinct.rows_of(cols)
            col_seen = np.repeat(seen if cols is units else seen[fresh], self.distinct.lengths[cols])
            rows = parts[0].packed if len(parts) == 1 else concatenate([part.packed for part in parts])
            row_units = np.concatenate([part.units for part in parts])
            tile = self._tile(1, (rows, row_units), (self.distinct.take(cols), cols))
            first = 0
            for packet, part in zip(batch, parts, strict=True):
                values = tile[first + part.rows]
                wanting = col_seen < packet.stamp
                yield (packet, col_rows, values) if wanting.all() else (packet, col_rows[wanting], values[:, wanting])
                first += int(self.distinct.lengths[part.units].sum())

    def _tile(self, place: int, rows: tuple[Packed, Indices], cols: tuple[Packed, Indices]) -> Tile:
        shape = tuple(int(self.distinct.lengths[units].sum()) for _, units in (rows, cols))
        if self._memory[place].size < shape[0] * shape[1]:
            self._memory[place] = np.empty(shape[0] * shape[1], self._dtype)
        memory = self._memory[place][: shape[0] * shape[1]].reshape(shape)
        try:
            tile = self._kernel.tile(rows[0], cols[0], self._dtype, memory)
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


class ComputedRows:
    """Every value is computed, for distinct rows only."""

    def __init__(self, compare: Comparison) -> None:
        self._compare, self._distinct = compare, compare.distinct
        self.n_rows = self._distinct.n_rows
        self._seen = np.zeros(len(self._distinct.units), np.int64)  # by unit

    def visit(self, rows: Rows) -> tuple[Rows, Indices]:
        asked = self._distinct.row_of[rows]
        here = self._distinct.rows_of(self._distinct.units_of(asked))
        return here, np.searchsorted(here, asked)

    def square(self, rows: Rows) -> Tile:
        return self._compare.square(self._units(rows))

    def pending(self, rows: Rows, packets: Sequence[Packet]) -> Iterator[tuple[Packet, Rows, Tile]]:
        units = self._units(rows)
        return self._compare.strips(packets, units, self._seen[units])

    def parts(self, rows: Indices) -> list[Indices]:
        return [np.arange(len(rows))]

    def packed(self, rows: Indices) -> Changed:
        return self._compare.changed(rows)

    def mark(self, rows: Rows, stamp: int) -> None:
        self._seen[self._units(rows)] = stamp

    def oldest(self) -> int:
        return int(self._seen.min(initial=0))

    def gram_row(self, row: int) -> int:
        return int(np.flatnonzero(self._distinct.row_of == row)[0])

    def _units(self, rows: Rows) -> Indices:
        return self._distinct.units_of(np.asarray(rows))


class TileRows:
    """Values from tiles that are kept; those of tiles left out are computed for changed structures only."""

    def __init__(self, gram: GramOperator, compare: Comparison | None) -> None:
        self._gram, self._layout, self._compare = gram, gram.layout.rows, compare
        self.n_rows = gram.shape[0]
        self._seen = np.zeros(self.n_rows, np.int64)  # by row

    def visit(self, rows: Rows) -> tuple[Rows, Indices]:
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return rows, np.arange(n_rows)

    def square(self, rows: Rows) -> Tile:
        if isinstance(rows, slice):
            block = int(np.searchsorted(self._layout.block_starts, rows.start, "right")) - 1
            if self._layout.rows(block) == rows:
                return np.ascontiguousarray(self._gram.tile(block, block))
            rows = np.arange(rows.start, rows.stop)
        return self._gram.select(rows, rows)

    def pending(self, rows: Rows, packets: Sequence[Packet]) -> Iterator[tuple[Packet, Rows, Tile]]:
        every = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        for block, places in by_block(self._layout.block_starts, every).items():
            target = every[places]
            newer: dict[int, list[Packet]] = {}
            received = int(self._seen[target].min())
            for packet in packets:
                if packet.stamp > received:
                    newer.setdefault(self._block(packet), []).append(packet)
            kept = [other for other in newer if self._compare is None or self._compare.keeps(other, block)]
            for other, tile in self._gram.column_blocks(block, kept):
                for packet in newer[other]:
                    changed = packet.rows - self._layout.rows(other).start
                    yield self._fresh(packet, target, _lines(tile, changed), self._layout.rows(block))
            if self._compare is not None:
                left_out = [packet for other, made in newer.items() if other not in kept for packet in made]
                left_out.sort(key=lambda packet: packet.stamp)
                units = self._compare.distinct.units_of(target)
                yield from self._compare.strips(left_out, units, self._seen[self._compare.distinct.starts[units]])

    def _block(self, packet: Packet) -> int:
        return int(np.searchsorted(self._layout.block_starts, packet.rows[0], "right")) - 1

    def _fresh(self, packet: Packet, target: Indices, values: Tile, block: slice) -> tuple[Packet, Rows, Tile]:
        """Restricted to rows of the visit that have not received the packet; `values` are those of a whole block."""
        target = target[self._seen[target] < packet.stamp]
        if len(target) == block.stop - block.start:
            return packet, block, values
        return packet, target, values[:, target - block.start]

    def parts(self, rows: Indices) -> list[Indices]:
        return list(by_block(self._layout.block_starts, rows).values())

    def packed(self, rows: Indices) -> Changed | None:
        return None if self._compare is None else self._compare.changed(rows)

    def mark(self, rows: Rows, stamp: int) -> None:
        self._seen[rows] = stamp

    def oldest(self) -> int:
        return int(self._seen.min(initial=0))

    def gram_row(self, row: int) -> int:
        return row


def _lines(tile: Tile, rows: Indices) -> Matrix:
    """tile[rows] as float64, gathered along the contiguous axis: a mirrored tile is a transposed view."""
    if tile.flags.c_contiguous:
        return tile[rows].astype(np.float64, copy=False)
    gathered = np.empty((tile.shape[1], len(rows)))
    gather_columns(tile.T, rows, gathered)
    return gathered.T
