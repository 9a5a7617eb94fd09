"""Every executor keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from scripted_tasks import Script, act, calls

from gramline.kernels.errors import KernelOverflowError
from gramline.pipeline.executors.base import Executor, InlineExecutor

EXECUTORS = ("inline", "threads", "dask")


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param == "dask":
        from gramline.pipeline.executors.dask import DaskExecutor

        return DaskExecutor(request.getfixturevalue("dask_client"))
    return InlineExecutor(1 if request.param == "inline" else 2)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def script(journal: Path) -> Callable[..., Script]:
    return partial(Script, journal=str(journal))


def test_every_task_has_one_outcome(executor: Executor, script: Callable[..., Script], journal: Path) -> None:
    outcomes = list(executor.run(act, [script(n) for n in range(40)]))
    assert sorted((outcome.task.number, outcome.result) for outcome in outcomes) == [(n, n * n) for n in range(40)]
    assert all(outcome.error is None for outcome in outcomes)
    assert sorted(calls(journal)) == list(range(40))


def test_no_tasks_no_outcomes(executor: Executor) -> None:
    assert list(executor.run(act, [])) == []


def test_a_task_that_fails_twice_is_tried_three_times(
    executor: Executor, script: Callable[..., Script], journal: Path
) -> None:
    outcomes = list(executor.run(act, [script(n, failures=2 if n == 3 else 0) for n in range(8)], retries=2))
    assert {outcome.task.number: outcome.result for outcome in outcomes} == {n: n * n for n in range(8)}
    assert calls(journal).count(3) == 3
    assert len(calls(journal)) == 8 + 2


def test_a_task_that_always_fails_yields_its_error_and_stops_no_other(
    executor: Executor, script: Callable[..., Script], journal: Path
) -> None:
    outcomes = list(executor.run(act, [script(n, failures=99 if n == 1 else 0) for n in range(6)], retries=1))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [outcome.task.number for outcome in failed] == [1]
    assert failed[0].result is None
    assert isinstance(failed[0].error, RuntimeError)
    assert str(failed[0].error) == "task 1 fails"
    assert sorted(outcome.task.number for outcome in outcomes) == list(range(6))
    assert calls(journal).count(1) == 2


def test_a_refused_task_is_not_tried_again(executor: Executor, script: Callable[..., Script], journal: Path) -> None:
    (outcome,) = executor.run(act, [script(5, refuses=True)], retries=3)
    assert isinstance(outcome.error, KernelOverflowError)
    assert (outcome.error.row, outcome.error.column, outcome.error.dtype) == (1, 2, "float64")
    assert calls(journal) == [5]


def test_no_retries_means_one_try(executor: Executor, script: Callable[..., Script], journal: Path) -> None:
    (outcome,) = executor.run(act, [script(0, failures=1)], retries=0)
    assert isinstance(outcome.error, RuntimeError)
    assert calls(journal) == [0]


def test_tasks_are_drawn_a_few_ahead(executor: Executor, script: Callable[..., Script]) -> None:
    drawn = 0

    def scripts() -> Iterator[Script]:
        nonlocal drawn
        for n in range(500):
            drawn += 1
            yield script(n)

    most = 0
    for finished, _ in enumerate(executor.run(act, scripts()), 1):
        most = max(most, drawn - finished)
    assert drawn == finished == 500
    assert most <= 4 * executor.n_threads


def test_tasks_start_in_the_order_given(executor: Executor, script: Callable[..., Script], journal: Path) -> None:
    for _ in executor.run(act, [script(n, seconds=0.01) for n in range(30)]):
        pass
    order = calls(journal)
    assert max(abs(position - number) for position, number in enumerate(order)) <= 4 * executor.n_threads


def test_closing_early_abandons_what_has_not_started(
    executor: Executor, script: Callable[..., Script], journal: Path
) -> None:
    outcomes = executor.run(act, [script(n, seconds=0.05) for n in range(200)])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    stopped = len(calls(journal))
    assert stopped <= 6 * executor.n_threads
    assert [outcome.result for outcome in executor.run(act, [script(1000)])] == [1_000_000]
    assert len(calls(journal)) == stopped + 1


def test_an_error_of_the_consumer_abandons_the_rest(
    executor: Executor, script: Callable[..., Script], journal: Path
) -> None:
    def interrupted() -> None:
        for _ in executor.run(act, [script(n, seconds=0.05) for n in range(200)]):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(calls(journal)) <= 6 * executor.n_threads
