"""A worker that is nearly full gives freed memory back after a task."""

from __future__ import annotations

import pytest

from gramline.pipeline.executors import worker_task
from gramline.pipeline.executors.base import Refusal
from gramline.pipeline.executors.worker_task import attempt_on_worker, give_back, resident_bytes, worker_limit


@pytest.mark.parametrize(("limit", "given_back"), [(0, 0), (1000, 0), (990, 1)])
def test_only_one_that_is_nearly_full_gives_back(monkeypatch: pytest.MonkeyPatch, limit: int, given_back: int) -> None:
    calls: list[int] = []
    monkeypatch.setattr(worker_task, "worker_limit", lambda: limit)
    monkeypatch.setattr(worker_task, "resident_bytes", lambda: 800)
    monkeypatch.setattr(worker_task, "give_back", lambda: calls.append(1))
    (measured,) = attempt_on_worker(abs, [-3])
    assert measured is not None
    assert not isinstance(measured.result, Refusal)
    assert (measured.result, len(calls)) == (3, given_back)
    with pytest.raises(ZeroDivisionError):
        attempt_on_worker(lambda number: 1 // number, [0])
    assert len(calls) == 2 * given_back


def test_of_several_tasks_the_one_that_fails_is_left_out() -> None:
    answers = attempt_on_worker(lambda number: 1 // number, [1, 0, 2])
    assert [None if one is None else one.result for one in answers] == [1, None, 0]


def test_outside_of_a_worker_nothing_happens() -> None:
    assert worker_limit() == 0
    assert resident_bytes() > 10_000_000
    give_back()
