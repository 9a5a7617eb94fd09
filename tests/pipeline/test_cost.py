"""Costs: sums, the same counts on every executor, every share of a worker once, and where they are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, corpus
from scripted_tasks import Script, act, burn

from gramline.learners import LabelingPerceptron
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline import KernelLabeler, build_gram
from gramline.pipeline import cost as module
from gramline.pipeline.cost import Cost, Shares, measured, meter, peak_bytes, this_process
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.base import Executor, InlineExecutor, attempt_measured
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import spread_product
from gramline.pipeline.gram.build import plan_store
from gramline.pipeline.models.model import Model

SOME = Cost(1.0, 2.0, 30, 4, 3, 5, 600, 700, 8000)


@pytest.fixture(params=["inline", "threads", "dask"])
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param == "dask":
        return DaskExecutor(request.getfixturevalue("dask_client"))
    return InlineExecutor(1 if request.param == "inline" else 2)


def counts(cost: Cost) -> Cost:
    """Without what differs from run to run."""
    return replace(cost, wall_seconds=0.0, processor_seconds=0.0, peak_bytes=0)


def test_costs_add_up_and_the_higher_peak_counts() -> None:
    both = SOME + Cost(1.0, 1.0, 1, 1, 1, 1, 1, 1, 9000)
    assert both == Cost(2.0, 3.0, 31, 5, 4, 6, 601, 701, 9000)
    assert both.since(SOME) == Cost(1.0, 1.0, 1, 1, 1, 1, 1, 1, 9000)
    assert SOME.tiles_not_kept == 1
    assert SOME.money(9.0) == 2.0 / 3600 * 9.0


def test_a_cost_is_kept_as_numbers() -> None:
    assert Cost.from_dict(SOME.to_dict()) == SOME
    assert Cost.from_dict({"tiles_read": 3, "of_a_later_version": "x"}) == Cost(tiles_read=3)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"wall_seconds": -1.0}, "wall_seconds must be"),
        ({"tiles_read": 1.5}, "tiles_read must be"),
        ({"peak_bytes": "much"}, "peak_bytes must be"),
        ([1, 2], "a table of numbers"),
    ],
)
def test_what_is_no_cost_is_refused(numbers: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Cost.from_dict(numbers)


def test_a_measurement_tells_so_far_and_then_stays() -> None:
    with measured() as spent:
        meter.add(tiles_read=1)
        assert spent.cost.tiles_read == 1
        meter.add(tiles_read=1, bytes_read=80)
    meter.add(tiles_read=1)
    assert (spent.cost.tiles_read, spent.cost.bytes_read) == (2, 80)
    assert spent.cost == spent.cost
    assert spent.cost.wall_seconds > 0


def test_the_peak_is_that_of_the_process() -> None:
    script = """
import numpy
from gramline.pipeline.cost import measured, peak_bytes
before = peak_bytes()
with measured() as spent:
    numpy.ones(10_000_000)
print(before, spent.cost.peak_bytes)
"""
    job = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = map(int, job.stdout.split())
    assert 70_000_000 < after - before < 120_000_000


def test_a_system_that_tells_no_peak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "STATUS", tmp_path / "nothing")
    assert peak_bytes() > 1_000_000
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_bytes() == 0


# ---- executors


def test_every_executor_counts_the_same_build(executor: Executor, tmp_path: Path) -> None:
    with measured() as spent:
        gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=8, executor=executor)
    plan = plan_store(gram.store, present=())
    assert plan.n_tiles > 3
    written = plan.n_tiles * gram.store.tiles.tile_bytes
    expected = Cost(kernel_values=plan.cells, tiles_computed=plan.n_tiles, tiles_kept=plan.n_tiles)
    assert counts(spent.cost) == replace(expected, bytes_written=written)
    assert spent.cost.peak_bytes > 1_000_000
    with measured() as again:
        build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=8, executor=executor)
    assert counts(again.cost) == Cost()


def test_every_executor_counts_the_same_product(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles are read by a thread of their own, on workers too."""
    monkeypatch.setattr(spread_product, "SPREAD_BYTES", 0)
    gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=8)
    gram.executor = executor
    with measured() as spent:
        gram.matmul(np.ones((gram.shape[0], 2)))
    n_tiles = gram.layout.n_tiles
    assert counts(spent.cost) == Cost(tiles_read=n_tiles, bytes_read=n_tiles * gram.store.tiles.tile_bytes)


def test_processor_seconds_of_tasks_are_counted_once(executor: Executor) -> None:
    with measured() as spent:
        assert [outcome.result for outcome in executor.run(burn, [0.25] * 4)] == [0.25] * 4
    assert 1.0 <= spent.cost.processor_seconds < 1.9


def test_a_task_that_fails_stops_no_count(executor: Executor, tmp_path: Path) -> None:
    scripts = [Script(n, str(tmp_path / "journal"), failures=99 if n == 1 else 0) for n in range(4)]
    with measured() as spent:
        outcomes = list(executor.run(act, scripts, retries=0))
    assert [outcome.task.number for outcome in outcomes if outcome.error is not None] == [1]
    assert spent.cost.processor_seconds > 0


def test_a_worker_in_this_process_is_not_counted_twice() -> None:
    with measured() as spent:
        told = attempt_measured(lambda n: meter.add(tiles_read=n), 3)
        meter.add_share(told.cost, told.process)
    assert (told.process, told.cost.tiles_read, told.cost.wall_seconds) == (this_process(), 3, 0.0)
    assert spent.cost.tiles_read == 3
    with measured() as spent:
        meter.add_share(told.cost, "elsewhere:1")
    assert spent.cost.tiles_read == 3


def test_tasks_side_by_side_tell_everything_once() -> None:
    shares, together = Shares(), Barrier(3)
    told: list[Cost] = []

    def count(n: int) -> None:
        together.wait()
        meter.add(tiles_read=n)
        together.wait()

    threads = [Thread(target=lambda n=n: told.append(shares.run(lambda: count(n))[1])) for n in (1, 10, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cost.tiles_read for cost in told) == [0, 0, 111]


def test_what_happens_between_tasks_is_not_theirs() -> None:
    shares = Shares()
    assert shares.run(lambda: meter.add(tiles_read=1))[1].tiles_read == 1
    meter.add(tiles_read=5)
    assert shares.run(lambda: meter.add(tiles_read=2))[1].tiles_read == 2
    with pytest.raises(ZeroDivisionError):
        shares.run(lambda: 1 / 0)
    assert shares.run(lambda: meter.add(tiles_read=3))[1].tiles_read == 3


# ---- operators in memory, and models


def test_tiles_that_nobody_keeps_are_counted_too() -> None:
    rows = KERNEL.prepare(corpus().packed())
    with measured() as spent:
        gram = ComputedGram(KERNEL, rows, block_rows=8)
        gram.matmul(np.ones((gram.shape[0], 1)))
    assert spent.cost.kernel_values == gram.values_computed
    assert 0 < gram.values_computed <= gram.shape[0] ** 2
    assert spent.cost.tiles_not_kept > 1
    with measured() as spent:
        DenseGram.of(KERNEL, corpus())
    assert counts(spent.cost) == Cost(kernel_values=gram.shape[0] ** 2, tiles_computed=1)


def stored(labeler: KernelLabeler, path: Path) -> KernelLabeler:
    labeler.store = path
    return labeler


@pytest.mark.parametrize("place", [lambda labeler, _: labeler, stored], ids=["memory", "store"])
def test_a_model_keeps_what_its_training_cost(place: Callable[..., KernelLabeler], tmp_path: Path) -> None:
    sample = corpus()
    labeler = place(KernelLabeler(KERNEL, LabelingPerceptron(rounds=2)), tmp_path / "a.zarr")
    labeler.fit(sample).save(tmp_path / "model.zarr")
    cost = Model.load(tmp_path / "model.zarr").cost
    assert cost is not None
    assert cost == labeler.model_.cost
    assert cost.kernel_values == sample.n_positions**2
    assert cost.processor_seconds > 0
    replace(labeler.model_, cost=None).save(tmp_path / "old.zarr")
    assert Model.load(tmp_path / "old.zarr").cost is None
