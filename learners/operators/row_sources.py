"""Where the rows of a Gram matrix come from while a dual learner trains: tiles that are kept, or the kernel itself.

Rows of the Gram that are equal are one row of a `ComputedRows`; those of a `TileRows` are the Gram's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.comparison import Comparison, ComputesValues
from gramline.learners.operators.gather_loops import gather_columns
from gramline.learners.operators.layout import by_block
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.packets import Changed, Delivery, Packet, Rows, Values

NEVER = 1 << 62  # later than every change


class RowSource(Protocol):
    """Rows and values of a Gram matrix as they are asked for, and who has received which changes."""

    @property
    def n_rows(self) -> int: ...

    @property
    def is_computed(self) -> bool:
        """Whether every value is computed when it is asked for."""

    def visit(self, rows: Rows) -> tuple[Rows, Indices]:
        """The source's rows for rows of the Gram, and for each of the latter which of the former it is."""

    def square(self, rows: Rows) -> Tile:
        """G between the rows of a visit, C-contiguous."""

    def pending(self, rows: Rows, packets: Sequence[Packet], seen: Indices) -> Iterator[Delivery]:
        """What visited rows have not received yet, each of which has received everything until its `seen`."""

    def parts(self, rows: Indices) -> list[Indices]:
        """Places in `rows`, changed ones, that make a packet each."""

    def changed(self, rows: Indices) -> Changed | None:
        """The structures of changed rows, where values are computed."""

    def seen(self, rows: Rows) -> Indices:
        """Until when each of these rows has received everything, shape (n_rows,)."""

    def mark(self, rows: Rows, stamp: int) -> None:
        """These rows have received everything until `stamp`."""

    def limit_to(self, visited: Sequence[Rows]) -> None:
        """No other rows will be visited: they need not receive anything."""

    def oldest(self) -> int:
        """Everybody has received what was changed until then."""

    def received(self) -> Indices:
        """Until when every row, or unit of rows, has received everything; a copy."""

    def resume(self, received: Indices) -> None:
        """Go on from there."""

    def gram_row(self, row: int) -> int:
        """A row of the Gram that is this row of the source."""


def source_of(gram: GramOperator) -> RowSource:
    """Computed where no tile is kept, otherwise from tiles, with what is left out of them computed."""
    if isinstance(gram, ComputesValues) and (how := gram.computing()) is not None:
        compare = Comparison(how, gram)
        return TileRows(gram, compare) if gram.keeps(0, 0) else ComputedRows(compare)
    return TileRows(gram, None)


class ComputedRows:
    """Every value is computed, for distinct rows only."""

    is_computed = True

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

    def pending(self, rows: Rows, packets: Sequence[Packet], seen: Indices) -> Iterator[Delivery]:
        units = self._units(rows)
        lengths = self._distinct.lengths[units]
        offsets = offsets_from_lengths(lengths)
        for whole, places, values in self._compare.strips(packets, units, seen[offsets[:-1]]):
            is_all = len(places) == len(units)
            yield [whole], slice(None) if is_all else indices_of_ranges(offsets[places], lengths[places]), values

    def parts(self, rows: Indices) -> list[Indices]:
        return [np.arange(len(rows))]

    def changed(self, rows: Indices) -> Changed:
        return self._compare.changed(rows)

    def seen(self, rows: Rows) -> Indices:
        units = self._units(rows)
        return np.repeat(self._seen[units], self._distinct.lengths[units])

    def mark(self, rows: Rows, stamp: int) -> None:
        self._seen[self._units(rows)] = stamp

    def limit_to(self, visited: Sequence[Rows]) -> None:
        left_out = np.ones(len(self._seen), np.bool_)
        for rows in visited:
            left_out[self._distinct.units_of(self._distinct.row_of[rows])] = False
        self._seen[left_out] = NEVER

    def oldest(self) -> int:
        return int(self._seen.min()) if len(self._seen) else 0

    def received(self) -> Indices:
        return self._seen.copy()

    def resume(self, received: Indices) -> None:
        self._seen = received.copy()

    def gram_row(self, row: int) -> int:
        return int(np.flatnonzero(self._distinct.row_of == row)[0])

    def _units(self, rows: Rows) -> Indices:
        return self._distinct.units_of(np.asarray(rows))


class TileRows:
    """Values from tiles that are kept; those of tiles left out are computed for changed structures only, equal ones
    once."""

    is_computed = False

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

    def pending(self, rows: Rows, packets: Sequence[Packet], seen: Indices) -> Iterator[Delivery]:
        every = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        for block, places in by_block(self._layout.block_starts, every).items():
            target, own = every[places], self._layout.rows(block)
            received = seen[places]
            newer: dict[int, list[Packet]] = {}
            for packet in packets:
                if packet.stamp > int(received.min()):
                    newer.setdefault(self._block(packet), []).append(packet)
            kept = [other for other in newer if self._compare is None or self._compare.keeps(other, block)]
            for other, tile in self._gram.column_blocks(block, kept):
                for packet in newer[other]:
                    fresh = received < packet.stamp
                    is_whole = len(target) == own.stop - own.start and bool(fresh.all())
                    lines = packet.rows - self._layout.rows(other).start
                    values = _lines(tile, lines, None if is_whole else target[fresh] - own.start)
                    yield [packet], places if is_whole else places[fresh], values
            if self._compare is not None:
                left_out = [packet for other, made in newer.items() if other not in kept for packet in made]
                for whole, some, values in _computed(self._compare, left_out, target, received):
                    yield [whole], places[some], values

    def _block(self, packet: Packet) -> int:
        return int(np.searchsorted(self._layout.block_starts, packet.rows[0], "right")) - 1

    def parts(self, rows: Indices) -> list[Indices]:
        return list(by_block(self._layout.block_starts, rows).values())

    def changed(self, rows: Indices) -> Changed | None:
        return None if self._compare is None else self._compare.changed(self._compare.distinct.row_of[rows])

    def seen(self, rows: Rows) -> Indices:
        return self._seen[rows]

    def mark(self, rows: Rows, stamp: int) -> None:
        self._seen[rows] = stamp

    def limit_to(self, visited: Sequence[Rows]) -> None:
        left_out = np.ones(self.n_rows, np.bool_)
        for rows in visited:
            left_out[rows] = False
        self._seen[left_out] = NEVER

    def oldest(self) -> int:
        return int(self._seen.min()) if len(self._seen) else 0

    def received(self) -> Indices:
        return self._seen.copy()

    def resume(self, received: Indices) -> None:
        self._seen = received.copy()

    def gram_row(self, row: int) -> int:
        return row


def _lines(tile: Tile, rows: Indices, cols: Indices | None) -> Values:
    """tile[rows], or tile[rows][:, cols]; a mirrored tile, a transposed view, is gathered along its contiguous axis."""
    if tile.flags.c_contiguous and (cols is None or 2 * len(cols) > tile.shape[1]):
        return Values(tile, rows, cols)
    if tile.strides[1] == tile.itemsize:
        return Values(tile[rows] if cols is None else tile[np.ix_(rows, cols)])
    lines = tile.T if cols is None else tile.T[cols]
    gathered = np.empty((len(lines), len(rows)))
    gather_columns(lines, rows, gathered)
    return Values(gathered.T)


def _computed(
    compare: Comparison, packets: Sequence[Packet], target: Indices, received: Indices
) -> Iterator[tuple[Packet, Indices, Values]]:
    """What rows of the Gram have not received, from values between distinct rows; places among `target`."""
    own = compare.distinct.row_of[target]
    rest = np.arange(len(target))
    while len(rest):  # once, unless equal rows have received different things
        units = compare.distinct.units_of(own[rest])
        unit_of = np.searchsorted(compare.distinct.starts[units], own[rest], "right") - 1
        seen = np.full(len(units), np.iinfo(np.int64).max)
        np.minimum.at(seen, unit_of, received[rest])
        is_here = received[rest] == seen[unit_of]
        here, unit_of = rest[is_here], unit_of[is_here]
        for whole, places, values in compare.strips(packets, units, seen):
            lengths = compare.distinct.lengths[units]
            firsts = np.full(len(units), -1)  # column of the first row of each unit
            firsts[places] = offsets_from_lengths(lengths[places])[:-1]
            columns = firsts[unit_of] + own[here] - compare.distinct.starts[units][unit_of]
            takes = firsts[unit_of] >= 0
            yield whole, here[takes], values._replace(columns=columns[takes])
        rest = rest[~is_here]
