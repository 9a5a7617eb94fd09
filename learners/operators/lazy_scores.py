"""Scores S = G W of a dual learner, brought up to date where it looks, when it looks (math 2.2).

A learner visits some rows at a time and changes weights of these rows only. Before a visit its rows receive every
change that was made since they were last visited: S[I] += G[I, c] d of each visit that changed the rows c by d. Inside
the visit the learner applies its own changes at once. So every decision sees what the literal loop would see, whatever
the size of the blocks, and whether tiles are read or computed. Where they are computed, only structures with a change
are compared. Most of it may be brought by other processes (`orders`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.checkpoints import State, named, part_of
from gramline.learners.errors import LearnerError
from gramline.learners.operators.change_sums import add_changes
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.orders import Orders, SpreadsUpdates
from gramline.learners.operators.packets import Packet, Rows, Scores, combined
from gramline.learners.operators.row_sources import RowSource, source_of


class Change(NamedTuple):
    """What one visit changed of one problem's weights."""

    rows: Indices  # of the visit, in order, shape (n,)
    steps: Matrix  # the changes of their weights, shape (n, n_columns)
    sizes: Matrix  # how large these were, shape (n,)


class Visit(NamedTuple):
    """The rows that a learner looks at, up to date. It changes `scores` and hands the visit back."""

    rows: Rows  # of the source
    local: Indices  # for each row asked for the row of this visit, shape (n,)
    tile: Tile  # G between the rows of the visit, shape (n_rows, n_rows), C-contiguous
    problems: Sequence[int]
    scores: list[Scores]  # of these problems; copies


class LazyScores:
    """Scores of several problems that share one Gram matrix; each changes weights of its own."""

    def __init__(self, gram: GramOperator, n_columns: Sequence[int]) -> None:
        """`n_columns` of each problem: its labels, or 1."""
        self._source: RowSource = source_of(gram)
        n_rows = self._source.n_rows
        self._scores = [Scores(np.zeros((n, n_rows)), np.zeros(n_rows)) for n in n_columns]
        self._packets: list[Packet] = []  # changes that some row has not received, oldest first
        self._clock = self._n_changed = 0
        self._is_released = False
        spreader = gram.spreader(n_columns) if isinstance(gram, SpreadsUpdates) else None
        self._orders = None if spreader is None else Orders(spreader, self._source)

    def limit_to(self, visited: Sequence[Rows]) -> None:
        """Say before the first visit that no other rows will be visited: no change is kept for them."""
        self._source.limit_to(visited)

    def enter(self, rows: Rows, problems: Sequence[int] | None = None, coming: Sequence[Rows] = ()) -> Visit:
        """Bring some rows of the Gram up to date, for all problems or for those that still train.

        A problem that is left out does not receive what was changed before, and never will: leave out only those that
        have ended. `coming` are the rows of the next visits, in order, where the learner knows them.
        """
        self._order(coming, with_squares=True)
        here, local = self._source.visit(rows)
        is_ordered = self._orders is not None and self._orders.brings_square(rows)
        square = None if is_ordered else self._source.square(here)  # others work on what was ordered meanwhile
        ordered, own = self._brought(rows, here, problems)
        tile = ordered if square is None else square
        assert tile is not None
        return Visit(here, local, tile, list(own), list(own.values()))

    def refresh(
        self, rows: Rows, problems: Sequence[int] | None = None, coming: Sequence[Rows] = ()
    ) -> tuple[Indices, list[Scores]]:
        """Bring some rows up to date without a visit, which would need the tile between them.

        For each row asked for its column of the scores, shape (n,), and the scores of these problems; copies. What
        the rows receive here they do not receive again, so a look at all rows between two passes costs no tile.
        """
        self._order(coming, with_squares=False)
        here, local = self._source.visit(rows)
        _, own = self._brought(rows, here, problems)
        self._keep(here, own, self._clock)
        return local, list(own.values())

    def leave(self, visit: Visit, changes: Sequence[Change | None]) -> None:
        """Take the scores of a visit, and keep what it changed of each of its problems for all other rows."""
        made = {problem: change for problem, change in zip(visit.problems, changes, strict=True) if change is not None}
        self._clock += 1
        if made:
            self._packets += self._made(visit.rows, made)
        self._keep(visit.rows, dict(zip(visit.problems, visit.scores, strict=True)), self._clock)

    def _order(self, coming: Sequence[Rows], *, with_squares: bool) -> None:
        """Have changes brought to coming visits, before anything is waited for; most are like the present one."""
        if self._orders is not None:
            self._orders.place(coming, self._packets, with_squares=with_squares)

    def _brought(self, rows: Rows, here: Rows, problems: Sequence[int] | None) -> tuple[Tile | None, dict[int, Scores]]:
        """Scores of rows of the Gram, `here` of the source, with all changes, ordered ones first; the ordered tile."""
        square = None if self._orders is None else self._orders.deliver(rows, self._scores)
        return square, self._received(here, problems)

    def _received(self, here: Rows, problems: Sequence[int] | None) -> dict[int, Scores]:
        """The scores of some rows of the source by problem, with all that these have not received; copies."""
        own = {
            problem: Scores(
                np.ascontiguousarray(self._scores[problem].sums[:, here]), self._scores[problem].magnitudes[here].copy()
            )
            for problem in (range(len(self._scores)) if problems is None else problems)
        }
        with np.errstate(over="ignore", invalid="ignore"):  # refused at the end of a round, with the row
            for packets, target, values in self._source.pending(here, self._packets, self._source.seen(here)):
                add_changes(combined(packets), own, target, values)
        return own

    def _keep(self, here: Rows, own: dict[int, Scores], stamp: int) -> None:
        """Take scores that hold all changes until `stamp`; changes that everybody has received are dropped."""
        for problem, scores in own.items():
            self._scores[problem].sums[:, here] = scores.sums
            self._scores[problem].magnitudes[here] = scores.magnitudes
        self._source.mark(here, stamp)
        oldest = self._source.oldest()
        self._packets = [packet for packet in self._packets if packet.stamp > oldest]

    def check(self) -> None:
        """Refuse scores beyond the range of float64."""
        for scores in self._scores:
            is_finite = np.isfinite(scores.magnitudes)
            if not is_finite.all():
                row = self._source.gram_row(int(np.flatnonzero(~is_finite)[0]))
                raise LearnerError(f"the scores of row {row} leave the range of float64; lower c of the kernel")

    def release(self) -> None:
        """No row is visited any more: give back the memory; there is no state to go on from."""
        self._scores.clear()
        self._packets.clear()
        self._orders = None
        del self._source
        self._is_released = True

    def state(self) -> State:
        """All that decides what comes next, in arrays that nobody changes any more; nothing once it is released."""
        if self._is_released:
            return {}
        arrays: dict[str, NDArray[Any]] = {"clock": np.array(self._clock), "received": self._source.received()}
        for number, scores in enumerate(self._scores):
            arrays |= {f"{number}.sums": scores.sums.copy(), f"{number}.magnitudes": scores.magnitudes.copy()}
        for number, packet in enumerate(self._packets):
            arrays |= named(f"packet.{number}", packet.to_arrays())
        return arrays | {"n_packets": np.array(len(self._packets)), "n_changed": np.array(self._n_changed)}

    def resume(self, state: State) -> None:
        """Go on where `state` was; the structures of changed rows are looked up again."""
        self._clock = int(state["clock"])
        self._source.resume(state["received"])
        for number, scores in enumerate(self._scores):
            scores.sums[:], scores.magnitudes[:] = state[f"{number}.sums"], state[f"{number}.magnitudes"]
        by_packet: list[dict[str, NDArray[Any]]] = [{} for _ in range(int(state["n_packets"]))]
        for name, array in part_of(state, "packet").items():
            number_text, _, field = name.partition(".")
            by_packet[int(number_text)][field] = array
        self._packets = [Packet.from_arrays(arrays, self._source.changed(arrays["rows"])) for arrays in by_packet]
        self._n_changed = int(state.get("n_changed", np.array(0)))

    def _made(self, here: Rows, changes: dict[int, Change]) -> Iterator[Packet]:
        """The changes of all problems, one below the other: one matrix product per tile brings them all."""
        every = [change.rows for change in changes.values()]
        rows = every[0] if len(every) == 1 else np.unique(np.concatenate(every))
        touched = {problem: np.flatnonzero(change.steps.any(axis=0)) for problem, change in changes.items()}
        steps = np.zeros((sum(map(len, touched.values())), len(rows)))
        sizes = np.zeros((len(changes), len(rows)))
        end = 0
        for number, (problem, change) in enumerate(changes.items()):
            place = np.searchsorted(rows, change.rows)
            columns = touched[problem]
            steps[end : end + len(columns), place] = change.steps[:, columns].T
            sizes[number, place] = change.sizes
            end += len(columns)
        changed = np.arange(here.start, here.stop)[rows] if isinstance(here, slice) else here[rows]
        for part in self._source.parts(changed):
            units = self._source.changed(changed[part])
            yield Packet(self._clock, changed[part], steps[:, part], sizes[:, part], touched, units, self._n_changed)
            self._n_changed += 0 if units is None else units.n_rows
