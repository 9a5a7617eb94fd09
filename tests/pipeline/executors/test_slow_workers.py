"""A worker at a tenth of the speed: a pass goes on without it, and takes hardly longer than without it."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from distributed import Client
from slow_workers import SlowPart, slowly

from gramline.pipeline.executors.dask import DaskExecutor


def test_a_straggler_is_overtaken() -> None:
    with Client(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        slow = min(client.nthreads())
        executor = DaskExecutor(client)
        parts = [SlowPart(number, 0.02, slow, 50) for number in range(24)]
        begin = perf_counter()
        outcomes = list(executor.run(slowly, parts))
        seconds = perf_counter() - begin
    assert sorted(outcome.result for outcome in outcomes if outcome.result is not None) == list(range(len(parts)))
    assert executor.n_sent > len(parts)  # something ran twice
    assert seconds < 0.9  # and nobody waited a second for the slow one


def test_started_tasks_are_repeated_too() -> None:
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        slow = min(client.nthreads())
        executor = DaskExecutor(client)
        everything: list[Any] = [
            executor.start(slowly, [SlowPart(number, 0.02, slow, 50) for number in range(4)]) for _ in range(3)
        ]
        begin = perf_counter()
        found = [sorted(outcome.result for outcome in outcomes) for outcomes in everything]
        assert found == [list(range(4))] * 3
        assert perf_counter() - begin < 1.5
