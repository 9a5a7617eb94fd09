"""Workers that go are told of once, with the reason; a cluster without any is given up."""

from __future__ import annotations

import pytest

from gramline.pipeline.errors import ClusterError
from gramline.pipeline.events import Event, WorkerLost
from gramline.pipeline.executors import worker_watch
from gramline.pipeline.executors.worker_watch import Questions, WorkerWatch


@pytest.fixture(autouse=True)
def every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_watch, "LOOK_EVERY", 0.0)


def test_a_worker_that_went_is_told_with_its_reason() -> None:
    looks = iter([{"a": 2, "b": 1, "c": 1}, {"b": 1, "d": 1}, {"b": 1, "d": 1}])
    reasons = {"a": "it used too much", "c": None}  # c was asked to go
    told: list[Event] = []
    watch = WorkerWatch(Questions(lambda: next(looks), reasons.__getitem__), 60.0, "here", told.append)
    assert [watch.threads() for _ in range(3)] == [4, 2, 2]
    assert told == [WorkerLost("a", "it used too much", n_workers=2)]


def test_a_cluster_without_workers_is_given_up() -> None:
    watch = WorkerWatch(Questions(dict, lambda _: None), -1.0, "here", lambda _: None)
    with pytest.raises(ClusterError, match="scheduler at here has had no workers"):
        watch.threads()
