"""A hundred workers that sleep the measured times: does the schedule keep them busy, and who holds them up?

Small versions run by default; `pytest -m benchmark -s tests/benchmarks/test_many_workers.py` measures.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import pytest
from distributed import Client
from sleeping_parts import Nap, SingleNap, order_nap, square_nap, tile_nap
from slow_workers import SlowPart, slowly

from gramline.learners.operators.orders import AHEAD
from gramline.pipeline.cost import peak_bytes
from gramline.pipeline.executors.base import Outcome
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.experiments.scale_size import own_processes

WORKERS = 100
BUSY = 0.85
SLOWER = 10
# Seconds as measured on one core (docs/scale.md): four tiles of 2048 x 2048 values, a square of 64 tiles times 20
# columns, a part of an order of 50 million values, and what the client has to do for one visit. Four tiles, because
# one interpreter has all workers here: a third of a millisecond for each of 2,900 tiles a second is all it can do.
TILES, SQUARE, ORDER_PART, VISIT = 0.14, 1.6, 0.5, 0.06


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def done(outcomes: Iterable[Outcome[Any, int]]) -> int:
    """How many tasks came to their end."""
    every = list(outcomes)
    assert [outcome.error for outcome in every if outcome.error is not None] == []
    return len(every)


def build(executor: DaskExecutor, n_naps: int) -> float:
    """Tiles of a matrix, four in a nap, drawn one after the other; seconds of work."""
    assert done(executor.run(tile_nap, (Nap(number, TILES) for number in range(n_naps)))) == n_naps
    return n_naps * TILES


def product(executor: DaskExecutor, n_squares: int) -> float:
    """One product with a matrix, square by square."""
    parts = [SingleNap(number, SQUARE, number) for number in range(n_squares)]
    assert done(executor.run(square_nap, parts)) == n_squares
    return n_squares * SQUARE


def training(executor: DaskExecutor, n_visits: int, n_parts: int) -> float:
    """Visits one after the other, whose orders are placed some visits ahead."""
    coming: deque[Any] = deque()
    for visit in range(n_visits):
        parts = [SingleNap(number, ORDER_PART, (visit, number)) for number in range(n_parts)]
        coming.append(executor.start(order_nap, parts))
        if len(coming) > AHEAD:
            assert done(coming.popleft()) == n_parts
            sleep(VISIT)
    while coming:
        assert done(coming.popleft()) == n_parts
    return n_visits * n_parts * ORDER_PART


def busy(n_workers: int, work: Callable[[], float]) -> tuple[float, float]:
    """The part of their time that the workers had work, and the seconds it took."""
    begin = perf_counter()
    seconds = work()
    taken = perf_counter() - begin
    return seconds / (n_workers * taken), taken


@contextmanager
def own_processes_that_know(tests: Path, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[DaskExecutor]:
    """A scheduler that can import the tasks: it looks at what it passes on."""
    patch.setenv("PYTHONPATH", str(tests))
    with own_processes(folder, 1, 10**9) as alone:
        yield alone


@contextmanager
def hundred_workers(folder: Path) -> Iterator[DaskExecutor]:
    """A scheduler in a process of its own, and all workers in another."""
    tests = Path(__file__).parents[1]
    with pytest.MonkeyPatch.context() as patch, own_processes_that_know(tests, folder, patch) as alone:
        address = str(alone.client.scheduler.address)  # type: ignore[union-attr]
        process = subprocess.Popen(
            [sys.executable, str(tests / "sleeping_parts.py"), address, str(WORKERS), str(folder)],
            env=os.environ | {"PYTHONPATH": str(tests)},
        )
        try:
            with connect(address) as client:
                client.wait_for_workers(WORKERS + 1, timeout=120)
                client.retire_workers(list(alone.client.nthreads())[:1], close_workers=True, remove=True)
                yield DaskExecutor(client)
        finally:
            process.terminate()
            process.wait()


def test_small_versions_of_what_is_measured() -> None:
    with Client(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        executor = DaskExecutor(client)
        assert build(executor, 8) == 8 * TILES
        assert training(executor, 2, 2) == 4 * ORDER_PART


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
def test_a_hundred_workers_are_kept_busy(tmp_path: Path) -> None:
    works: dict[str, Callable[[DaskExecutor], float]] = {
        f"build, {20_000:,} times four tiles of {TILES} s together": lambda executor: build(executor, 20_000),
        f"product, 1,891 squares of {SQUARE} s": lambda executor: product(executor, 1_891),
        f"training, 60 visits of 100 parts of {ORDER_PART} s": lambda executor: training(executor, 60, 100),
    }
    shares = {}
    with hundred_workers(tmp_path) as executor:
        client: Any = executor.client
        build(executor, 500)  # how long a tile takes is known now
        for name, work in works.items():
            before, n_before = process_time(), executor.n_sent
            shares[name], taken = busy(WORKERS, lambda work=work: work(executor))
            say(
                f"{name}: {taken:.1f} s, {WORKERS} workers busy {shares[name]:.0%} of their time (at least {BUSY:.0%}),"
                f" client {(process_time() - before) / taken:.0%} of a core, {executor.n_sent - n_before:,} tasks sent"
            )
        scheduler, own = int(client.run_on_scheduler(peak_bytes)), peak_bytes()
    say(
        f"peak of the scheduler {scheduler / 1e6:.0f} MB (at most 500), of the client {own / 1e6:.0f} MB (at most 1000)"
    )
    assert scheduler < 500e6
    assert own < 1e9
    assert min(shares.values()) >= BUSY


@pytest.mark.benchmark
def test_a_worker_at_a_tenth_of_the_speed() -> None:
    """What it costs at most, beside as many workers as there is speed."""
    results: dict[str, float] = {}
    with Client(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        for name, slow in (("even", ""), ("one slow", min(client.nthreads()))):
            parts = [SlowPart(number, 0.25, slow, SLOWER) for number in range(48)]
            executor, seconds = DaskExecutor(client), []
            for _ in range(3):
                begin = perf_counter()
                assert done(executor.run(slowly, parts)) == len(parts)
                seconds.append(perf_counter() - begin)
            results[name] = max(seconds)
    without = results["even"] * 4 / (3 + 1 / SLOWER)
    say(
        f"48 parts of 0.25 s on 4 workers: {results['even']:.2f} s; with one at a tenth of the speed "
        f"{results['one slow']:.2f} s, {results['one slow'] / without:.2f} of what 3.1 workers need (at most 1.25)"
    )
    assert results["one slow"] <= 1.25 * without
