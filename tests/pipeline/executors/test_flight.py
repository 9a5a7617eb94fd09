"""Where tasks are sent, which run twice and which together, on a cluster that does what the test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from gramline.pipeline.cost import Cost
from gramline.pipeline.executors import experience as module
from gramline.pipeline.executors.base import Measured, Refusal
from gramline.pipeline.executors.experience import Experience
from gramline.pipeline.executors.flight import FINEST, Flight

CREW = {"a": 1, "b": 1}


@dataclass(frozen=True)
class Part:
    """A task that may do what parts of a pass may."""

    number: int

    may_run_twice: ClassVar[bool] = True
    may_be_bundled: ClassVar[bool] = True

    @property
    def place(self) -> int:
        return self.number


class FakeFuture:
    def __init__(self, key: str) -> None:
        self.key = key
        self._tell: Callable[[Any], None] = lambda _future: None

    def add_done_callback(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell

    def release(self) -> None:
        pass

    def finish(self) -> FakeFuture:
        self._tell(self)
        return self


@dataclass
class FakeCluster:
    """Keeps what it is sent."""

    sent: list[tuple[tuple[Any, ...], list[str]]] = field(default_factory=list)
    futures: list[FakeFuture] = field(default_factory=list)
    dropped: list[Any] = field(default_factory=list)
    retries: int = 0

    def submit(self, bundles: Sequence[tuple[Any, ...]], workers: Sequence[str]) -> list[FakeFuture]:
        made = [FakeFuture(f"{len(self.futures) + n}") for n in range(len(bundles))]
        self.sent += [(bundle, list(workers)) for bundle in bundles]
        self.futures += made
        return made

    def others(self, futures: Sequence[Any]) -> list[str]:
        return ["b"] if futures else []

    def drop(self, future: Any) -> None:
        self.dropped.append(future.key)

    def tries_again(self, _task: Any, _error: BaseException, n_tries: int) -> bool:
        return n_tries <= self.retries


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time is what its last entry says."""
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[-1])
    monkeypatch.setattr("gramline.pipeline.executors.flight.monotonic", lambda: now[-1])
    return now


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def flight_on(cluster: FakeCluster, experience: Experience | None = None) -> Flight[Any]:
    return Flight(cluster, "part", experience or Experience())


def answer(value: Any, worker: str = "a", seconds: float = 1.0) -> list[Any]:
    return [Measured(value, Cost(), "elsewhere:1", worker, seconds)]


def test_a_place_goes_to_the_worker_that_had_it(cluster: FakeCluster) -> None:
    flight = flight_on(cluster)
    flight.refill(iter([Part(0), Part(1)]), 2, CREW)
    for future, worker in zip(list(cluster.futures), "ba", strict=True):
        flight.land(future.finish(), answer(0, worker), None)
    flight.refill(iter([Part(0), Part(1), Part(2)]), 3, CREW)
    assert cluster.sent[2:] == [((Part(0),), ["b"]), ((Part(1),), ["a"]), ((Part(2),), [])]
    later = flight_on(cluster, flight.experience)
    later.refill(iter([Part(0)]), 1, {"a": 1})  # b is gone
    assert cluster.sent[-1] == ((Part(0),), [])


def test_nobody_gets_more_than_its_share(cluster: FakeCluster) -> None:
    flight = flight_on(cluster)
    for number in range(8):
        flight.experience.remember(Part(number), "a")
    flight.refill(map(Part, range(8)), 8, CREW)
    assert sum(workers == ["a"] for _, workers in cluster.sent) == 1 + 8 // 2
    assert sum(workers == [] for _, workers in cluster.sent) == 8 - 5


def test_what_is_late_is_started_again_and_the_first_counts(cluster: FakeCluster, clock: list[float]) -> None:
    flight = flight_on(cluster)
    flight.refill(iter([Part(0), Part(1)]), 2, CREW)
    slow, quick = cluster.futures
    clock.append(1.0)
    assert [outcome.result for outcome in flight.land(quick.finish(), answer("quick"), None)] == ["quick"]
    flight.repeat_late(2)
    assert len(cluster.sent) == 2  # one second is as usual
    clock.append(1.0 + module.LATE_IDLE + 0.1)
    flight.repeat_late(2)
    flight.repeat_late(2)
    assert cluster.sent[2:] == [((Part(0),), ["b"])]  # once, by somebody else
    assert [outcome.result for outcome in flight.land(cluster.futures[2].finish(), answer("twin"), None)] == ["twin"]
    assert cluster.dropped == [slow.key]
    assert not flight.flown
    assert flight.land(slow.finish(), answer("slow"), None) == []


def test_busy_workers_are_given_the_time_for_what_was_ahead(cluster: FakeCluster, clock: list[float]) -> None:
    flight = flight_on(cluster)
    flight.experience.took("part", 1.0)
    flight.refill(map(Part, range(9)), 9, CREW)
    flight.land(cluster.futures[8].finish(), answer(8), None)
    clock.append(2.0)
    flight.repeat_late(2)
    assert len(cluster.sent) == 9
    clock.append(module.LATE_BUSY + 0.1)
    flight.repeat_late(2)
    assert [tasks for tasks, _ in cluster.sent[9:]] == [(Part(0),)]  # nothing was ahead of it


def test_an_error_of_one_of_two_is_no_news(cluster: FakeCluster, clock: list[float]) -> None:
    flight = flight_on(cluster)
    flight.experience.took("part", 1.0)
    flight.refill(iter([Part(0)]), 1, CREW)
    clock.append(9.0)
    flight.repeat_late(2)
    first, second = cluster.futures
    assert flight.land(second.finish(), None, RuntimeError("no")) == []
    (outcome,) = flight.land(first.finish(), answer(5), None)
    assert outcome.result == 5


def test_tasks_travel_together_where_there_are_many_workers(cluster: FakeCluster) -> None:
    flight = flight_on(cluster)
    many = {f"w{n}": 1 for n in range(100)}
    flight.experience.took("part", 0.1)
    size = flight.experience.bundle_size("part", 100)
    flight.refill(map(Part, range(3 * size)), 2, many)
    assert size == round(100 / (module.SENT_PER_SECOND * 0.1))
    assert [len(tasks) for tasks, _ in cluster.sent] == [size, size]
    first, second = cluster.futures
    answers = [None if n == 3 else answer(n)[0] for n in range(size)]
    landed = flight.land(first.finish(), answers, None)
    assert [outcome.result for outcome in landed] == [n for n in range(size) if n != 3]
    flight.land(second.finish(), [answer(n)[0] for n in range(size)], None)
    flight.refill(iter(()), 5, many)
    assert cluster.sent[-1] == ((Part(3),), [])  # alone, and it has not been tried yet
    assert next(iter(flight.flown.values())).n_tries == 1


def test_the_last_bundles_are_smaller(cluster: FakeCluster) -> None:
    flight = flight_on(cluster)
    many = {f"w{n}": 1 for n in range(100)}
    flight.experience.took("part", 0.02)
    size, n_tasks = flight.experience.bundle_size("part", 100), 4_000
    flight.refill(map(Part, range(n_tasks)), 400, many)
    sizes = [len(tasks) for tasks, _ in cluster.sent]
    assert [part.number for tasks, _ in cluster.sent for part in tasks] == list(range(n_tasks))
    assert 100 <= len(sizes) <= 2 * n_tasks / size * FINEST
    assert max(sizes[-100:]) <= size // FINEST < max(sizes[:100])


def test_a_run_of_larger_tasks_than_before_starts_none_twice_at_once(cluster: FakeCluster, clock: list[float]) -> None:
    flight = flight_on(cluster)
    flight.experience.took("part", 1.0)
    flight.refill(map(Part, range(2)), 2, CREW)
    clock.append(2 * module.LATE_BUSY + 0.1)
    flight.repeat_late(2)
    assert len(cluster.sent) == 2
    flight.land(cluster.futures[0].finish(), answer(0), None)
    clock.append(4 * module.LATE_BUSY)
    flight.repeat_late(2)
    assert len(cluster.sent) == 3


def test_what_fails_is_tried_again_alone(cluster: FakeCluster) -> None:
    cluster.retries = 1
    flight = flight_on(cluster)
    flight.refill(iter(["task"]), 1, CREW)
    assert flight.land(cluster.futures[0].finish(), None, RuntimeError("no")) == []
    flight.refill(iter(()), 1, CREW)
    (outcome,) = flight.land(cluster.futures[1].finish(), None, RuntimeError("still no"))
    assert str(outcome.error) == "still no"


def test_a_refusal_is_an_error(cluster: FakeCluster) -> None:
    flight = flight_on(cluster)
    flight.refill(iter(["task"]), 1, CREW)
    (outcome,) = flight.land(cluster.futures[0].finish(), answer(Refusal(ValueError("never"))), None)
    assert str(outcome.error) == "never"


def test_one_slow_answer_says_little() -> None:
    experience = Experience()
    experience.took("part", 1.0)
    experience.took("part", 100.0)
    assert experience.usual_seconds("part") == pytest.approx(1.2)


def test_places_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES_KEPT", 2)
    experience = Experience()
    for number in range(3):
        experience.remember(Part(number), "a")
    assert [experience.worker_of(Part(number), CREW) for number in range(3)] == [None, "a", "a"]
    experience.remember("a task without a place", "a")
    assert experience.worker_of("a task without a place", CREW) is None
