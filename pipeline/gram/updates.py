"""Scores of dual learners brought up to date by the workers of a cluster (math 2.2): see `learners.operators.orders`.

Changes, orders and sums travel as letters beside the store, never through the scheduler. An order is cut into parts by
the work they are, not by the number of workers: sums are added up in the same order on every cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar
from weakref import WeakKeyDictionary, finalize

import numpy as np

from gramline.learners.arrays import Indices
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.change_sums import add_changes
from gramline.learners.operators.orders import Answer, Order, Receive
from gramline.learners.operators.packets import Packet, Rows, Scores, combined
from gramline.learners.operators.row_sources import RowSource, source_of
from gramline.pipeline.executors.base import Outcome, StartsTasks
from gramline.pipeline.executors.worker_task import give_back
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.storage.letters import Arrays, Letters

PART_VALUES = 50_000_000  # kernel values that a part of an order compares: tens of milliseconds, or half a second
MOST_PARTS = 256  # of an order; its parts are larger rather than more
CHANGE_CACHE_BYTES = 64_000_000  # of changes that a worker remembers
SOURCES_KEPT = 2


@dataclass(frozen=True)
class UpdateTask:
    """One part of an order: some of its changes for all of its rows."""

    store: str
    identity: str
    letters: str
    order: int
    part: int
    first_row: int  # of those that are visited
    packets: tuple[int, ...]
    is_urgent: bool
    with_square: bool

    may_run_twice: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, int, int] | None:
        """What is urgent goes to whoever is free first."""
        return None if self.is_urgent else (self.identity, self.first_row, self.part)


class UpdateSpreader:
    """The workers of an executor that brings rows of a stored Gram matrix up to date."""

    def __init__(
        self, store: TileStore, executor: StartsTasks, n_columns: Sequence[int], count_reads: Callable[[int], None]
    ) -> None:
        """`count_reads` is told how many stored tiles the workers read."""
        self._store, self._executor, self._n_columns, self._count_reads = store, executor, n_columns, count_reads
        self._letters = Letters.beside(store.url, "training")
        self._numbers: WeakKeyDictionary[Packet, int] = WeakKeyDictionary()
        self._n_packets = self._n_orders = 0
        finalize(self, _end, self._letters)
        give_back()  # what making corpus and store has left of itself: the training is long

    def start(self, order: Order) -> Receive:
        number, self._n_orders = self._n_orders, self._n_orders + 1
        numbers = [self._published(packet) for packet in order.packets]
        rows, widths = _listed(order.rows), np.array(self._n_columns, np.int64)
        self._letters.write(_order(number), {"rows": rows, "since": order.since, "widths": widths})
        store = self._store
        parts = [
            UpdateTask(
                store=store.url,
                identity=store.identity,
                letters=self._letters.url,
                order=number,
                part=part,
                first_row=int(rows[0]),
                packets=tuple(numbers[low:high]),
                is_urgent=order.is_urgent,
                with_square=order.with_square and part == 0,
            )
            for part, (low, high) in enumerate(pairwise(_cuts(order)))
        ]
        outcomes = self._executor.start(update_rows, parts, is_urgent=order.is_urgent)
        return lambda: self._received(number, parts, outcomes)

    def _published(self, packet: Packet) -> int:
        if packet not in self._numbers:
            _write_change(self._letters, self._n_packets, packet)
            self._numbers[packet], self._n_packets = self._n_packets, self._n_packets + 1
        return self._numbers[packet]

    def _received(
        self, number: int, parts: Sequence[UpdateTask], outcomes: Generator[Outcome[UpdateTask, int], None, None]
    ) -> Answer:
        with closing(outcomes):
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
                self._count_reads(outcome.result or 0)
        total: dict[int, Scores] = {}
        for part in range(len(parts)):
            for problem, scores in _from_answer(self._letters.read(_answer(number, part))).items():
                own = total.setdefault(problem, scores)
                if own is not scores:
                    own.sums[:] += scores.sums
                    own.magnitudes[:] += scores.magnitudes
            self._letters.remove(_answer(number, part))
        square = None
        if parts[0].with_square:
            square = self._letters.read(_square(number))["tile"]
            self._letters.remove(_square(number))
        self._letters.remove(_order(number))
        return Answer(total, square)


def _end(letters: Letters) -> None:
    letters.remove_all()
    give_back()


def update_rows(task: UpdateTask) -> int:
    """On a worker: the sums of one part, left as a letter; how many stored tiles were read."""
    letters = Letters(task.letters)
    if not letters.has(_order(task.order)):
        return 0  # it is over: somebody else was sooner
    order = letters.read(_order(task.order))
    source, gram = _sources.get((task.store, task.identity), lambda: _open(planned_store(task.store, task.identity)))
    packets = [_packets.get((task.letters, n), partial(_read_change, letters, n, source)) for n in task.packets]
    rows, widths = order["rows"], order["widths"].tolist()
    touched = {problem for packet in packets for problem in packet.touched}
    scores = {k: Scores(np.zeros((widths[k], len(rows))), np.zeros(len(rows))) for k in sorted(touched)}
    before = gram.tile_reads
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # refused by the learner, with the row
        for batch, target, values in source.pending(rows, packets, order["since"]):
            add_changes(combined(batch), scores, target, values)
        square = source.square(rows) if task.with_square else None
    if letters.has(_order(task.order)):  # a training that has ended takes no answers, and has removed its letters
        if square is not None:
            letters.write(_square(task.order), {"tile": square})
        letters.write(_answer(task.order, task.part), _to_answer(scores))
    return gram.tile_reads - before


def _open(store: TileStore) -> tuple[RowSource, StoredGram]:
    gram = StoredGram(store)
    return source_of(gram), gram


def _read_change(letters: Letters, number: int, source: RowSource) -> Packet:
    arrays = letters.read(_change(number))
    columns = np.split(arrays["columns"], np.cumsum(arrays["n_columns"])[:-1])
    return Packet(
        int(arrays["stamp"]),
        arrays["rows"],
        arrays["steps"],
        arrays["sizes"],
        dict(zip(arrays["problems"].tolist(), columns, strict=True)),
        source.changed(arrays["rows"]),
        int(arrays["begin"]),
    )


def _write_change(letters: Letters, number: int, packet: Packet) -> None:
    touched = list(packet.touched.values())
    letters.write(
        _change(number),
        {
            "stamp": np.array(packet.stamp),
            "begin": np.array(packet.begin),
            "rows": packet.rows,
            "steps": packet.steps,
            "sizes": packet.sizes,
            "problems": np.array(list(packet.touched), np.int64),
            "n_columns": np.array([len(columns) for columns in touched], np.int64),
            "columns": np.concatenate(touched),
        },
    )


def _to_answer(scores: Mapping[int, Scores]) -> Arrays:
    """Every problem's sums and magnitudes, by its number."""
    answer: Arrays = {}
    for problem, (sums, magnitudes) in scores.items():
        answer |= {f"{problem}-sums": sums, f"{problem}-magnitudes": magnitudes}
    return answer


def _from_answer(answer: Arrays) -> dict[int, Scores]:
    problems = sorted({int(name.partition("-")[0]) for name in answer})
    return {k: Scores(answer[f"{k}-sums"], answer[f"{k}-magnitudes"]) for k in problems}


def _order(number: int) -> str:
    return f"order-{number}"


def _change(number: int) -> str:
    return f"change-{number}"


def _answer(order: int, part: int) -> str:
    return f"answer-{order}-{part}"


def _square(order: int) -> str:
    return f"square-{order}"


def _listed(rows: Rows) -> Indices:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _cuts(order: Order) -> list[int]:
    """Bounds of runs of packets that compare about PART_VALUES values each."""
    n_rows = len(order.since)
    sizes = [n_rows if packet.changed is None else packet.changed.n_positions for packet in order.packets]
    ends = np.cumsum(sizes) * n_rows
    n_parts = max(1, min(len(sizes), MOST_PARTS, -(-int(ends[-1]) // PART_VALUES)))
    inner = np.searchsorted(ends, ends[-1] * np.arange(1, n_parts) / n_parts) + 1
    return sorted({0, *inner.tolist(), len(sizes)})


def _packet_bytes(packet: Packet) -> int:
    own = packet.steps.nbytes + packet.sizes.nbytes + packet.rows.nbytes
    return own + (0 if packet.changed is None else packet.changed.units.nbytes + packet.changed.rows.nbytes)


_sources: Cache[tuple[RowSource, StoredGram]] = Cache(SOURCES_KEPT)
_packets: Cache[Packet] = Cache(CHANGE_CACHE_BYTES, _packet_bytes)
