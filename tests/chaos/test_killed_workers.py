"""Workers killed, stopped and asked to leave in the middle of a build: the matrix is the same, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from chaos.dask_processes import DaskProcesses
from chaos.reliability import Ledger
from chaos.undisturbed import Calm, Disturber, worker_process

from gramline.pipeline.events import Event, TileDone
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram.verify import verify_gram


def send(number: signal.Signals) -> Callable[[TileDone], bool]:
    """The fault of sending a signal to the worker that has just finished a tile."""

    def fault(event: TileDone) -> bool:
        with suppress(ProcessLookupError):
            os.kill(worker_process(event), number)
            return True
        return False

    return fault


def build_under_fire(calm: Calm, folder: Path, ledger: Ledger, n_faults: int, number: signal.Signals) -> None:
    at = set(random.Random(int(number)).sample(range(1, len(calm.tiles) - 4), n_faults))
    disturber = Disturber(at, send(number))
    with connect(workers=2) as client:
        calm.build(folder / "a.zarr", DaskExecutor(client), disturber)
    report = verify_gram(folder / "a.zarr", repair=True)
    assert (report.bad, report.is_good) == ((), True)
    what = "kill -9 of a worker" if number == signal.SIGKILL else "SIGTERM to a worker"
    calm.settle(folder / "a.zarr", ledger, what, times=disturber.times, seconds=disturber.slowest)


def test_a_build_survives_killed_workers(calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    build_under_fire(calm, tmp_path, ledger, 1, signal.SIGKILL)
    assert ledger.rows["kill -9 of a worker"].times >= 1


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_many_signals_to_workers(long_calm: Calm, tmp_path: Path, ledger: Ledger, number: signal.Signals) -> None:
    build_under_fire(long_calm, tmp_path, ledger, 8, number)
    assert ledger.rows


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_worker_killed_every_second(long_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    """By the clock, not by the tile: also while it starts, reads, or has nothing to do."""
    draw, done = random.Random(5), threading.Event()
    killed: list[int] = []
    ticks = [time.monotonic()]

    def heard(event: Event) -> None:
        if isinstance(event, TileDone):
            ticks.append(time.monotonic())

    def fire() -> None:
        while not done.wait(1.0) and len(killed) < 25:
            with suppress(Exception):
                chosen = draw.choice(list(client.run(os.getpid, on_error="ignore").values()))
                os.kill(chosen, signal.SIGKILL)
                killed.append(chosen)

    with connect(workers=3) as client:
        thread = threading.Thread(target=fire)
        thread.start()
        try:
            long_calm.build(tmp_path / "a.zarr", DaskExecutor(client), heard)
        finally:
            done.set()
            thread.join()
    slowest = max(after - before for before, after in pairwise(ticks[1:]))
    what = "kill -9 of a random worker every second"
    long_calm.settle(tmp_path / "a.zarr", ledger, what, times=len(killed), seconds=slowest)
    assert killed


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_worker_stopped_for_longer_than_it_may_be_silent(long_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    """SIGSTOP: the system still answers for it, only the heartbeat tells. Its nanny replaces it."""
    disturber = Disturber({20}, send(signal.SIGSTOP))
    with (
        DaskProcesses(tmp_path / "dask", settings={"SCHEDULER__WORKER_TTL": "6s"}) as cluster,
        connect(cluster.address) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        begin = time.monotonic()
        long_calm.build(tmp_path / "a.zarr", DaskExecutor(client), disturber)
        seconds = time.monotonic() - begin
    what = "worker stopped (SIGSTOP) for longer than its heartbeat: whole build"
    long_calm.settle(tmp_path / "a.zarr", ledger, what, times=disturber.times, seconds=seconds)
    assert disturber.times == 1
