"""How long a build will take: sample tiles, computed and written by the executor that will run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gram_samples import KERNEL, WITH_PRIOR, ScriptedExecutor, corpus

from gramline.kernels import SequenceLabeling
from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelOverflowError
from gramline.pipeline import Corpus, build_gram
from gramline.pipeline.errors import RunError
from gramline.pipeline.events import BuildFinished, BuildPlanned, Event, TileReport
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import room
from gramline.pipeline.gram.build import GramBuild, StoreChoices
from gramline.pipeline.gram.forecast import SAMPLES, Pace, measure_pace, sample_stores
from gramline.pipeline.storage.groups import group_exists

CHOICES = StoreChoices("float32", 10)


@pytest.mark.parametrize("kernel", [KERNEL, WITH_PRIOR], ids=["uniform", "empirical"])
@pytest.mark.parametrize("other", [None, corpus(8, seed=3)], ids=["square", "wide"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_forecast_leaves_nothing_behind(tmp_path: Path, kernel: Kernel, other: Any, is_there: bool) -> None:
    target = tmp_path / "a.zarr"
    if is_there:
        GramBuild(kernel, corpus(), target, CHOICES, other=other).create()
    before = sorted(tmp_path.rglob("*"))
    forecast = GramBuild(kernel, corpus(), target, CHOICES, other=other).forecast(InlineExecutor(2))
    assert sorted(tmp_path.rglob("*")) == before
    assert 0 < forecast.seconds_per_cell < 1
    told = forecast.to_dict(2)
    assert told["seconds"] == pytest.approx(told["cells"] * forecast.seconds_per_cell / 2)
    assert told["new_bytes"] == told["to_compute"] * 400
    assert told["free_bytes"] > 0


def test_samples_are_written_where_the_store_shall_be(tmp_path: Path) -> None:
    build = GramBuild(KERNEL, corpus(), tmp_path / "far" / "a.zarr", CHOICES)
    with sample_stores(build, str(tmp_path / "far" / "a.zarr")) as tasks:
        assert len(tasks) == SAMPLES
        assert {str(Path(task.store).parent) for task in tasks} == {str(tmp_path)}
        assert all(Path(task.store).exists() for task in tasks)
    with sample_stores(build, "memory://forecast/a.zarr") as tasks:
        urls = [task.store for task in tasks]
        assert all(url.startswith("memory://forecast/a.zarr.gramline-plan-") and group_exists(url) for url in urls)
    assert not any(group_exists(url) for url in urls)
    with sample_stores(build, None) as tasks:
        assert not any(task.store.startswith(str(tmp_path / "far")) for task in tasks)


def test_every_thread_of_the_executor_is_at_work(tmp_path: Path, dask_client: Any) -> None:
    build = GramBuild(KERNEL, corpus(), tmp_path / "a.zarr", CHOICES)
    assert 0 < build.forecast(DaskExecutor(dask_client)).seconds_per_cell < 1
    executor = ScriptedExecutor()
    measure_pace(build, executor, str(tmp_path / "a.zarr"))
    assert len(executor.calls) == 2 * SAMPLES


def test_a_sample_that_fails_is_told_and_removed(tmp_path: Path) -> None:
    def fail(_number: int, _task: Any) -> None:
        raise RunError("no worker has memory")

    executor = ScriptedExecutor(fail)
    with pytest.raises(RunError, match="no worker has memory"):
        GramBuild(KERNEL, corpus(), tmp_path / "a.zarr", CHOICES).forecast(executor)
    assert list(tmp_path.iterdir()) == []


def test_an_overflow_names_the_structures_of_the_corpus(tmp_path: Path) -> None:
    X = [["a"], ["b"], ["c"], ["d"], ["x"] * 3, ["x"] * 3]
    build = GramBuild(
        SequenceLabeling(c=1e60), Corpus.from_sequences(X), tmp_path / "a.zarr", StoreChoices(block_rows=3)
    )
    with pytest.raises(KernelOverflowError) as caught:
        build.forecast()
    assert (caught.value.row, caught.value.column, caught.value.is_cross) == (4, 4, False)  # tile (2, 2) is a sample
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_measured_where_nothing_is_to_do_or_no_sample_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", dtype="float32", block_rows=10)
    executor = ScriptedExecutor()
    done = GramBuild(KERNEL, corpus(), tmp_path / "a.zarr", CHOICES).forecast(executor)
    monkeypatch.setattr(room, "free_bytes", lambda _place: 1000)
    full = GramBuild(KERNEL, corpus(), tmp_path / "b.zarr", CHOICES).forecast(executor)
    assert (done.seconds_per_cell, full.seconds_per_cell, executor.calls) == (0.0, 0.0, [])
    assert (done.room.fits, full.room.fits) == (True, False)


def report(worker: str, seconds: float) -> TileReport:
    return TileReport(0, 0, 0.0, seconds, 0.0, 8, worker)


def test_the_first_tile_of_a_process_is_no_measure() -> None:
    pace = Pace()
    for worker, seconds in (("a", 50.0), ("b", 70.0), ("a", 1.0), ("b", 3.0)):
        assert not pace.is_known(2)
        pace.add(report(worker, seconds), 10)
    assert not pace.is_known(2)
    pace.add(report("a", 2.0), 10)
    assert pace.is_known(2)
    assert not pace.is_known(4)
    assert pace.seconds_per_cell == pytest.approx(6.0 / 30)


def test_a_build_tells_once_how_long_it_will_take(tmp_path: Path) -> None:
    heard: list[Event] = []
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, progress=heard.append)
    (planned,) = (event for event in heard if isinstance(event, BuildPlanned))
    (finished,) = (event for event in heard if isinstance(event, BuildFinished))
    assert heard.index(planned) == 1 + 1 + SAMPLES  # started, one tile to load code, the measured ones
    assert 0 < planned.seconds < 100 * finished.seconds
    build_gram(KERNEL, corpus(2), tmp_path / "b.zarr", progress=heard.append)
    assert sum(isinstance(event, BuildPlanned) for event in heard) == 1  # one tile tells nothing of the others
