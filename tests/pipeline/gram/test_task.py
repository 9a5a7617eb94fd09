"""One tile on a worker: caches, errors in corpus numbers, BLAS held to one thread."""

from __future__ import annotations

import pickle
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from gram_samples import KERNEL, corpus
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from gramline.kernels import SequenceLabeling
from gramline.kernels.errors import KernelOverflowError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline import Corpus
from gramline.pipeline.errors import StoreError
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.missing import plan_store
from gramline.pipeline.gram.packed_blocks import PackedBlocks
from gramline.pipeline.gram.task import Cache, compute_tile


def test_a_task_computes_writes_and_reports(tmp_path: Path) -> None:
    store = create_or_open(KERNEL, corpus(), tmp_path / "a.zarr", StoreChoices(block_rows=10))
    plan = plan_store(store)
    task = pickle.loads(pickle.dumps(plan.tasks[0]))
    assert len(pickle.dumps(task)) < 600
    report = compute_tile(task)
    assert (report.i, report.j, report.written_bytes) == (task.i, task.j, plan.tile_bytes)
    assert min(report.read_seconds, report.compute_seconds, report.write_seconds) > 0
    assert store.present() == {(task.i, task.j)}
    expected = KERNEL.gram(corpus())[store.layout.rows.rows(task.i), store.layout.cols.rows(task.j)]
    np.testing.assert_array_equal(store.read_tile(task.i, task.j), expected)


def test_padding_is_zero_whatever_the_tile_before_left_there(tmp_path: Path) -> None:
    store = create_or_open(
        SequenceLabeling(),
        Corpus.from_sequences([["a"] * 9, ["a"] * 4]),
        tmp_path / "a.zarr",
        StoreChoices(block_rows=10),
    )
    sizes = np.diff(store.layout.rows.block_starts)
    assert sizes.tolist() == [9, 4]
    for task in sorted(plan_store(store).tasks, key=lambda task: -task.cells):
        compute_tile(task)
        chunk = store.tiles.read(task.i, task.j)
        inside = np.zeros((10, 10), bool)
        inside[: sizes[task.i], : sizes[task.j]] = True
        assert chunk[inside].all()
        assert not chunk[~inside].any()


def test_blocks_are_read_once_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create_or_open(KERNEL, corpus(8, seed=9), tmp_path / "a.zarr", StoreChoices(block_rows=10))
    assert store.layout.rows.n_blocks <= 4
    reads = []
    read = PackedBlocks.read
    monkeypatch.setattr(
        PackedBlocks, "read", lambda self, block, words: reads.append(block) or read(self, block, words)
    )
    for task in plan_store(store).tasks:
        compute_tile(task)
    assert sorted(reads) == list(range(store.layout.rows.n_blocks))


def test_overflow_names_structures_of_the_corpus(tmp_path: Path) -> None:
    many = Corpus.from_sequences([["b"], ["c"], ["a", "d"], ["a"] * 6])
    store = create_or_open(SequenceLabeling(c=1e40), many, tmp_path / "a.zarr", StoreChoices(block_rows=6))
    task = next(task for task in plan_store(store).tasks if (task.i, task.j) == (1, 1))
    with pytest.raises(KernelOverflowError) as caught:
        compute_tile(task)
    assert (caught.value.row, caught.value.column, caught.value.is_cross) == (3, 3, False)
    rectangular = create_or_open(
        SequenceLabeling(c=1e40), many, tmp_path / "b.zarr", StoreChoices(block_rows=6), other=many
    )
    task = next(task for task in plan_store(rectangular).tasks if (task.i, task.j) == (1, 1))
    with pytest.raises(KernelOverflowError) as caught:
        compute_tile(task)
    assert (caught.value.row, caught.value.column, caught.value.is_cross) == (3, 3, True)
    assert "between structure 3 and structure (second corpus) 3 does not fit float64; lower c" in str(caught.value)


def test_a_store_replaced_since_planning_is_refused(tmp_path: Path) -> None:
    import shutil

    task = plan_store(create_or_open(KERNEL, corpus(), tmp_path / "a.zarr", StoreChoices(block_rows=10))).tasks[0]
    shutil.rmtree(tmp_path / "a.zarr")
    create_or_open(KERNEL, corpus(seed=3), tmp_path / "a.zarr", StoreChoices(block_rows=10))
    with pytest.raises(StoreError, match="was replaced meanwhile; run the command again"):
        compute_tile(task)


def test_the_cache_keeps_the_latest_and_makes_each_once() -> None:
    cache: Cache[int] = Cache(2)
    made: list[int] = []

    def get(key: int) -> int:
        return cache.get(key, lambda: made.append(key) or key * 10)

    assert [get(1), get(2), get(1), get(3), get(1), get(2)] == [10, 20, 10, 30, 10, 20]
    assert made == [1, 2, 3, 2]


def test_blas_is_held_as_long_as_the_driver_holds_it() -> None:
    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    seen: list[set[int]] = []

    def work() -> None:
        with one_blas_thread():
            seen.append(threads())

    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            worker = Thread(target=work)
            worker.start()
            worker.join()
            seen.append(threads())
        seen.append(threads())
    assert seen == [{1}, {1}, {2}]
