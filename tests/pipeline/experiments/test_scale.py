"""The scale runs: small versions of every size, what is kept of them, and the model that is extrapolated."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.experiments import kept_parts, record, scale_computed_size
from gramline.pipeline.experiments import scale_computed as module
from gramline.pipeline.experiments.base import Experiment, Run
from gramline.pipeline.experiments.scale import power
from gramline.pipeline.experiments.scale_computed_size import ComputedSize, run_computed_size
from gramline.pipeline.experiments.scale_model import PARALLEL_LIMIT, Growth, ScaleModel
from gramline.pipeline.experiments.scale_size import SizeSettings, Stopwatch
from gramline.pipeline.gram import stored


def size_of(n_positions: int) -> ComputedSize:
    """A size whose every measure grows as it should."""
    square, parts = n_positions**2 / 1e10, {"worker": 3e8, "scheduler": 2e8, "client": 4e8}
    return ComputedSize(
        n_positions=n_positions,
        n_held_out=20_000,
        n_blocks=n_positions // 2000,
        n_tasks=n_positions // 100,
        values=int(1e10 * square),
        mistakes=[30, 10, 3],
        seconds={"training": 50 * square, "prediction": 3.0},
        busy={"training": 100 * square + n_positions / 1e4, "prediction": 6.0},
        client_seconds=n_positions / 1e4,
        peaks={name: int(size + 100 * n_positions) for name, size in parts.items()},
        at_rest={name: int(size) for name, size in parts.items()},
        accuracy=0.9,
    )


def test_one_size_trains_and_predicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dask_client: Any) -> None:
    monkeypatch.setattr(stored, "SPREAD_ROWS", 0)
    monkeypatch.setattr(scale_computed_size, "own_processes", lambda *_: nullcontext(DaskExecutor(dask_client)))
    said: list[str] = []
    result = run_computed_size(SizeSettings(1500, str(tmp_path), block_rows=256), 200, said.append)
    assert 1400 < result.n_positions <= 1500
    assert result.n_held_out > 150
    assert len(result.mistakes) == module.ROUNDS
    assert result.n_tasks > result.n_blocks
    assert result.values > 0
    assert result.accuracy > 0.5
    assert 0 < result.client_seconds < result.busy["training"]
    assert set(result.peaks) == {"worker", "scheduler", "client"}
    assert any("training" in line for line in said)
    assert json.loads(json.dumps(asdict(result)))["n_positions"] == result.n_positions


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes that were measured, by a machine that is always the same."""
    found: list[int] = []

    def measured_by(_module: str, settings: dict[str, Any], _say: Any) -> dict[str, Any]:
        found.append(settings["n_positions"])
        return asdict(size_of(settings["n_positions"]))

    monkeypatch.setattr(module, "measured_by", measured_by)
    monkeypatch.setattr(module, "quiet_load", lambda _say: 0.1 * len(found))
    return found


def test_sizes_that_are_there_are_not_measured_again(
    measures: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(module.CHOSEN, "250_000,100000")
    run = Run(Path(), scratch=tmp_path)
    table, growth, _ = module.scale_computed(run)
    assert measures == [100_000, 250_000]
    assert table.columns == ("measure", "100,000", "250,000")
    assert growth.picture is not None
    assert "power of N" in growth.columns
    monkeypatch.setenv(module.CHOSEN, "500000")
    assert module.scale_computed(run)[0].columns == ("measure", "100,000", "250,000", "500,000")
    assert measures[2:] == [500_000]
    other = Run(Path(), seed=1, scratch=tmp_path)
    assert module.scale_computed(other)[0].columns == ("measure", "500,000")
    monkeypatch.setattr(kept_parts, "version", lambda _name: "another")
    assert module.scale_computed(run)[0].columns == ("measure", "500,000")


def test_a_page_judges_by_the_load_before_each_size(
    measures: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(module.CHOSEN, "100000,250000,500000")
    experiment = Experiment("scale-computed", "At scale", f"{module.__name__}:scale_computed")
    monkeypatch.setattr(record, "load", lambda: 2.0)  # its own work, a minute ago
    made = record.record_experiment(experiment, Run(Path(), scratch=tmp_path), None, strict=True)
    assert made.machine["load"] == "0.2 before and 2.0 at the end"
    assert made.was_alone
    made = record.record_experiment(experiment, Run(Path(), scratch=tmp_path), None, strict=True)
    assert made.was_alone
    assert len(measures) == 3
    quick = record.record_experiment(experiment, Run(Path(), quick=True, scratch=tmp_path), None, strict=True)
    assert not quick.was_alone


def test_a_size_waits_until_the_machine_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = [2.0, 1.0, 0.3]
    slept: list[float] = []
    monkeypatch.setattr(record, "load", lambda: loads.pop(0))
    monkeypatch.setattr(record, "sleep", slept.append)
    said: list[str] = []
    assert record.quiet_load(said.append) == 0.3
    assert len(slept) == 2
    assert "load is 2.0" in said[0]
    monkeypatch.setattr(record, "load", lambda: 3.0)
    monkeypatch.setattr(record, "PATIENCE", 0.0)
    assert record.quiet_load(said.append) == 3.0


def test_a_quick_run_keeps_nothing(measures: list[int], tmp_path: Path) -> None:
    tables = module.scale_computed(Run(Path(), quick=True, scratch=tmp_path))
    assert tuple(measures) == module.QUICK_SIZES
    assert len(tables) == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["many", "0", "-5", "100,x"])
def test_sizes_are_numbers(text: str) -> None:
    with pytest.raises(InputError, match="must list numbers of positions"):
        module.chosen_sizes(text)
    assert module.chosen_sizes(None) == module.SIZES


def test_a_power_of_the_positions() -> None:
    assert power([10, 100], [5.0, 500.0]) == pytest.approx(2.0)
    assert Growth.of([10, 100], [5.0, 500.0], 1.0).at(1000) == pytest.approx(50_000)
    assert Growth.of([10], [5.0], 2.0).at(100) == pytest.approx(500)


def test_what_breaks_first() -> None:
    model = ScaleModel.of([size_of(100_000), size_of(1_000_000)])
    told = model.at(10_000_000, 100)
    assert told.core_hours == pytest.approx(100 * 1e4 / 3600, rel=0.01)
    assert told.hours == pytest.approx(told.core_hours / 100)
    assert told.client_gigabytes == pytest.approx(1.4)
    assert told.breaks_first.startswith("nothing")
    assert model.at(100_000_000, 100).breaks_first == "memory of the client"
    assert model.at(1_000_000, 10 * PARALLEL_LIMIT).breaks_first == "time of the client"
    slow = [replace(size_of(n), client_seconds=1e-9) for n in (100_000, 1_000_000)]
    assert "client" not in ScaleModel.of(slow).at(10_000_000, 1_000).breaks_first


def test_a_stage_that_lost_a_worker_gives_no_figures() -> None:
    class Processes:
        seconds: ClassVar[dict[str, float]] = {"a": 2.0, "b": 1.0}

        def run(self, _function: Any) -> dict[str, float]:
            return dict(self.seconds)

    processes = Processes()
    watch = Stopwatch(lambda _line: None)
    watch.executor = SimpleNamespace(client=processes)  # type: ignore[assignment]
    watch.time("one", lambda: processes.seconds.update(a=5.0))
    assert watch.busy["one"] == pytest.approx(3.0, abs=0.5)
    with pytest.raises(RunError, match="a worker was lost during two"):
        watch.time("two", lambda: processes.seconds.update(c=processes.seconds.pop("b")))
    assert "two" not in watch.busy
