"""The plan: plain arithmetic over layouts."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.errors import PlanError
from gramline.pipeline.executors.base import InlineExecutor, WorkerMemory
from gramline.pipeline.gram.plan import (
    SIZE_CLASSES,
    STORED_TILES,
    WORK_TILES,
    Plan,
    ThreadLimit,
    plan_gram,
    thread_limit,
    tile_limit,
)

LENGTHS = [3, 2, 5, 4, 1]  # blocks of 5 rows: [3 2] [5] [4 1] -> 5, 5, 5; of 6: [3 2] [5] [4 1]


def plan(layout: GramLayout, present: set[tuple[int, int]] = frozenset(), itemsize: int = 8) -> Plan:  # type: ignore[assignment]
    sizes = np.arange(layout.rows.n_blocks) * 1000
    cols = np.arange(layout.cols.n_blocks) * 10
    return plan_gram(layout, present, itemsize, (sizes, cols))


def test_tiles_to_do_are_all_minus_present() -> None:
    layout = GramLayout.symmetric(BlockLayout.of(LENGTHS, 5))
    made = plan(layout, {(0, 1), (2, 2)})
    assert {(task.i, task.j) for task in made.tasks} == {(0, 0), (0, 2), (1, 1), (1, 2)}
    assert (made.n_tiles, made.n_present, made.tile_bytes) == (6, 2, 200)
    assert made.stored_bytes == 1200
    assert made.cells == 4 * 25
    assert plan(layout, set(layout.tiles())).tasks == ()
    placed = made.at("a.zarr", "x")
    assert {(task.store, task.identity) for task in placed.tasks} == {("a.zarr", "x")}
    assert [(task.i, task.j, task.peak_bytes) for task in placed.tasks] == [
        (task.i, task.j, task.peak_bytes) for task in made.tasks
    ]


def test_biggest_first_and_memory_at_worst() -> None:
    layout = GramLayout.rectangular(BlockLayout.of([1, 4, 4], 5), BlockLayout.of([2, 3, 5, 1], 5))
    made = plan(layout, itemsize=4)
    sizes = [SIZE_CLASSES * task.cells // 25 for task in made.tasks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == SIZE_CLASSES
    assert sizes[-1] < SIZE_CLASSES
    worst = made.worst
    assert worst is not None
    assert made.peak_bytes == max(task.peak_bytes for task in made.tasks)
    first = next(task for task in made.tasks if (task.i, task.j) == (0, 1))
    assert first.peak_bytes == WORK_TILES * 8 * 25 + STORED_TILES * 4 * 25 + 10


def test_a_plan_that_does_not_fit_is_refused_by_its_worst_tile() -> None:
    made = plan(GramLayout.symmetric(BlockLayout.of(LENGTHS, 5)))
    made.check_memory(made.peak_bytes)
    with pytest.raises(PlanError, match=r"tile \(2, 2\) needs 0 MB, more than the 0 MB .* use smaller blocks"):
        made.check_memory(made.peak_bytes - 1)


def test_nothing_to_do_needs_nothing() -> None:
    layout = GramLayout.symmetric(BlockLayout.of([2], 2))
    made = plan(layout, {(0, 0)})
    made.check_memory(0)
    assert (made.peak_bytes, made.cells, made.seconds(1.0, 1)) == (0, 0, 0.0)


def test_time_counts_cells_and_threads() -> None:
    made = plan(GramLayout.symmetric(BlockLayout.of(LENGTHS, 5)))
    assert made.seconds(2.0, 3) == pytest.approx(2.0 * 150 / 3)
    assert made.new_bytes == made.stored_bytes == 6 * 200
    assert plan(GramLayout.symmetric(BlockLayout.of(LENGTHS, 5)), {(0, 1)}).new_bytes == 5 * 200


class KnownWorkers(InlineExecutor):
    """An executor that knows the memory of its workers."""

    def __init__(self, *workers: WorkerMemory) -> None:
        super().__init__()
        self._workers = list(workers)

    def worker_memory(self) -> list[WorkerMemory]:
        return self._workers


def test_the_smallest_worker_decides_and_is_named() -> None:
    large, small = WorkerMemory("tls://a:1", 8 * 10**9, 1), WorkerMemory("tls://b:1", 4 * 10**9, 4)
    limit = thread_limit(None, KnownWorkers(large, small))
    assert limit is not None
    assert limit.n_bytes == tile_limit(4 * 10**9, 4)
    assert limit.whose == "a thread of the worker tls://b:1 (memory limit 4,000 MB, 4 threads)"
    with pytest.raises(PlanError, match=r"a thread of the worker tls://b:1 .* may use"):
        plan(GramLayout.symmetric(BlockLayout.of(LENGTHS, 5))).check_memory(10, limit.whose)


def test_what_is_given_counts_where_it_is_less() -> None:
    worker = WorkerMemory("tls://a:1", 8 * 10**9, 1)
    assert thread_limit(1000, KnownWorkers(worker)) == ThreadLimit(1000)
    assert thread_limit(10**12, KnownWorkers(worker)) == ThreadLimit.of(worker)
    assert thread_limit(None, KnownWorkers()) is None
    assert thread_limit(None, InlineExecutor()) is None
