"""The scheduler killed, or its clock jumping: what was finished is kept, the same build goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from chaos.dask_processes import DaskProcesses
from chaos.reliability import Ledger
from chaos.undisturbed import Calm, Disturber, tiles

from gramline.pipeline.errors import ClusterError
from gramline.pipeline.events import Event, TileDone
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import strays


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_killed_scheduler(long_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    store, struck = tmp_path / "a.zarr", [0.0]
    first: list[float] = []

    def heard(event: Event) -> None:
        if isinstance(event, TileDone) and not first:
            first.append(time.monotonic() - struck[0])

    with DaskProcesses(tmp_path / "dask") as cluster:

        def strike(_event: TileDone) -> bool:
            cluster.kill_scheduler()
            struck[0] = time.monotonic()
            return True

        with connect(cluster.address) as client:
            client.wait_for_workers(2, timeout=60)
            executor, disturber = DaskExecutor(client), Disturber({30}, strike)
            with pytest.raises(ClusterError, match="was lost; what was finished is kept"):
                long_calm.build(store, executor, disturber)
        assert 30 <= len(tiles(store)) < len(long_calm.tiles)
        cluster.stop()
        cluster.start()
        with connect(cluster.address) as client:
            client.wait_for_workers(2, timeout=60)
            long_calm.build(store, DaskExecutor(client), heard)
    long_calm.settle(store, ledger, "kill -9 of the scheduler, started again", seconds=first[0])
    assert first


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_clock_that_jumps(long_calm: Calm, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler's clock goes an hour ahead, then behind: every heartbeat looks old, then as if from the future."""
    told = tmp_path / "offset"
    monkeypatch.setenv("JUMPING_CLOCK", str(told))
    jumps = iter(("3600", "-3600", "0"))

    def jump(_event: TileDone) -> bool:
        told.write_text(next(jumps))
        return True

    disturber = Disturber({20, 60, 100}, jump)
    preload = Path(__file__).with_name("jumping_clock.py")
    settings = {"SCHEDULER__WORKER_TTL": "5s"}  # looked at every few seconds, so that a jump is seen
    with (
        DaskProcesses(tmp_path / "dask", settings=settings, preload=preload) as cluster,
        connect(cluster.address) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        long_calm.build(tmp_path / "a.zarr", DaskExecutor(client), disturber)
    what = "clock of the scheduler jumps by an hour"
    long_calm.settle(tmp_path / "a.zarr", ledger, what, times=disturber.times, seconds=disturber.slowest)
    assert disturber.times == 3


def test_a_sweep_with_a_clock_from_the_future(
    calm: Calm, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hours ahead, a temporary file in use looks abandoned; its writer writes the tile again."""
    store, now, replace = tmp_path / "a.zarr", time.time, Path.replace
    swept: list[int] = []
    monkeypatch.setattr(strays.time, "time", lambda: now() + 7200)

    def swept_away(self: Path, target: os.PathLike[str]) -> Path:
        if self.parents[3:4] == (store,) and len(swept) < 2:
            swept.append(strays.sweep_partial(str(store)))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", swept_away)
    calm.build(store)
    monkeypatch.undo()
    assert swept == [1, 1]
    calm.settle(store, ledger, "clock two hours ahead while strays are swept", times=2)
