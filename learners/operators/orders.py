"""Changes that other processes bring to the rows of coming visits, while the learner is at the present one.

A visit is ordered twice: a few visits ahead for everything that was changed so far, which is nearly all of it, and
once more during the visit before it for what was changed since. Only the very last change is left to the learner's own
process. The first order also brings the tile of the visit where that is computed. What comes back counts for rows that
have received nothing meanwhile; the others are brought up to date as without an order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.packets import Packet, Rows, Scores
from gramline.learners.operators.row_sources import RowSource

AHEAD = 4  # visits between the first order and the visit


class Order(NamedTuple):
    """Rows of a source, until when each of them will have received everything, and the changes they shall receive."""

    rows: Rows
    since: Indices
    packets: Sequence[Packet]
    is_urgent: bool = False  # the learner waits for it next
    with_square: bool = False  # the tile between the rows as well


class Answer(NamedTuple):
    """What an order asked for."""

    scores: Mapping[int, Scores]  # by problem
    square: Tile | None


Receive = Callable[[], Answer]  # waits for it


class Spreader(Protocol):
    """Other processes that compute what orders ask for."""

    def start(self, order: Order) -> Receive:
        """Have it computed; the answer is asked for later."""


@runtime_checkable
class SpreadsUpdates(Protocol):
    """An operator that may have such processes."""

    def spreader(self, n_columns: Sequence[int]) -> Spreader | None:
        """For problems with so many columns each; None where this process had better do it alone."""


class _Placed(NamedTuple):
    rows: Rows
    since: Indices
    stamp: int  # of the last change
    receive: Receive
    with_square: bool


class Orders:
    """The orders of coming visits, by the rows they visit."""

    def __init__(self, spreader: Spreader, source: RowSource) -> None:
        self._spreader, self._source = spreader, source
        self._placed: dict[bytes, list[_Placed]] = {}

    def place(self, coming: Sequence[Rows], packets: Sequence[Packet], *, with_squares: bool) -> None:
        """Order for the next visit and for the one AHEAD; `coming` are the rows of the next visits, of the Gram."""
        for distance, rows in enumerate(coming[:AHEAD], 1):
            if distance not in (1, AHEAD):
                continue
            here, _ = self._source.visit(rows)
            before = self._placed.setdefault(_key(rows), [])
            since = np.full(_n_rows(here), before[-1].stamp) if before else self._source.seen(here).copy()
            newer = [packet for packet in packets if packet.stamp > int(since.min(initial=0))]
            if newer:
                is_urgent, with_square = distance == 1, with_squares and distance == AHEAD and self._source.is_computed
                order = Order(here, since, newer, is_urgent, with_square)
                stamp = max(packet.stamp for packet in newer)
                before.append(_Placed(here, since, stamp, self._spreader.start(order), order.with_square))

    def brings_square(self, rows: Rows) -> bool:
        """Whether the tile between these rows of the Gram comes with what was ordered for them."""
        return any(placed.with_square for placed in self._placed.get(_key(rows), ()))

    def deliver(self, rows: Rows, scores: Sequence[Scores]) -> Tile | None:
        """Add what was ordered for these rows of the Gram to the scores of all problems; the tile between them."""
        square = None
        for placed in self._placed.pop(_key(rows), ()):
            received, tile = placed.receive()
            square = square if tile is None else tile
            is_valid = self._source.seen(placed.rows) == placed.since
            every = np.arange(placed.rows.start, placed.rows.stop) if isinstance(placed.rows, slice) else placed.rows
            valid = every[is_valid]
            for problem, more in received.items():
                scores[problem].sums[:, valid] += more.sums[:, is_valid]
                scores[problem].magnitudes[valid] += more.magnitudes[is_valid]
            self._source.mark(valid, placed.stamp)
        return square


def _key(rows: Rows) -> bytes:
    return f"{rows.start}:{rows.stop}".encode() if isinstance(rows, slice) else rows.tobytes()


def _n_rows(rows: Rows) -> int:
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)
