"""The tasks of one run that are on a cluster: where they are sent, which are sent twice, and what becomes of them.

A task with a `place` goes to the worker that had this place before, unless that one has more than its share already;
others are free to take it from there. A task that `may_run_twice` and is late is started once more: the first result
counts, and the other one is told to nobody. Tasks that `may_be_bundled` travel together where there are many workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, Protocol

from gramline.pipeline.cost import meter
from gramline.pipeline.executors.base import Measured, Outcome, Refusal, Task
from gramline.pipeline.executors.experience import Experience, Sent, may_be_bundled, may_run_twice

LEAST_LOOK = 0.05  # seconds
FINEST = 8  # parts of a usual bundle that travel alone at the end of a run
NOTHING_YET = 4  # times as long a run waits before its very first task counts as late

Future = Any  # distributed.Future, whose key and result types say nothing we could use
Bundle = tuple[Any, ...]  # of tasks
Answers = Sequence["Measured[Any] | None"]  # of a bundle; None: this one has to be tried alone


class Cluster(Protocol):
    """What a flight asks of its executor."""

    def submit(self, bundles: Sequence[Bundle], workers: Sequence[str]) -> list[Future]:
        """Send them, preferably to these workers, where any are named."""

    def others(self, futures: Sequence[Future]) -> list[str]:
        """The workers that have none of these."""

    def drop(self, future: Future) -> None:
        """Nobody waits for it any more."""

    def tries_again(self, task: Any, error: BaseException, n_tries: int) -> bool:
        """Whether a task that failed so often gets another try."""


@dataclass(eq=False)
class Flown:
    """A bundle of tasks on the cluster, once or twice."""

    tasks: Bundle
    n_tries: int  # this one included
    sent: Sent
    worker: str | None  # where it was wanted
    futures: dict[str, Future] = field(default_factory=dict)

    @property
    def may_run_twice(self) -> bool:
        return len(self.futures) == 1 and may_run_twice(self.tasks[0])


@dataclass
class Flight(Generic[Task]):
    """The tasks that are on the cluster, those that failed and go again, and the queue of those that are done."""

    cluster: Cluster
    name: str  # of the function
    experience: Experience
    flown: dict[str, Flown] = field(default_factory=dict)  # by the keys of their futures
    again: list[tuple[Task, int]] = field(default_factory=list)  # with the number of tries that failed
    done: SimpleQueue[Future] = field(default_factory=SimpleQueue)
    wanted: Counter[str] = field(default_factory=Counter)  # bundles sent to each worker that are not done
    has_answers: bool = False

    @property
    def n_bundles(self) -> int:
        return len({id(one) for one in self.flown.values()})

    def refill(self, tasks: Iterator[Task], room: int, threads: Mapping[str, int], *, whole: bool = False) -> None:
        """Send up to `room` bundles, those that failed before first, or all tasks as they are (`whole`)."""
        again, self.again = self.again[:room], self.again[room:]
        n_threads, last = max(1, sum(threads.values())), list[Bundle]()
        size = 1 if whole else self.experience.bundle_size(self.name, n_threads)
        while len(again) + len(last) < room and (bundle := _next_bundle(tasks, size)):
            last.append(bundle)
        if size > 1 and len(again) + len(last) < room:  # there are no more
            last = _smaller_to_the_end(last, size, n_threads)
        self._send([*(((task,), n_failed) for task, n_failed in again), *((bundle, 0) for bundle in last)], threads)

    def _send(self, bundles: Sequence[tuple[Bundle, int]], threads: Mapping[str, int]) -> None:
        """To the workers that had them, others to whoever is free."""
        share = 1 + -(-len(bundles) // max(1, sum(threads.values())))  # of a thread
        by_worker: dict[str | None, list[tuple[Bundle, int]]] = {}
        for bundle, n_failed in bundles:
            worker = self.experience.worker_of(bundle[0], threads)
            if worker is not None and self.wanted[worker] >= share * threads[worker]:
                worker = None
            if worker is not None:
                self.wanted[worker] += 1
            by_worker.setdefault(worker, []).append((bundle, n_failed))
        for worker, own in by_worker.items():
            futures = self.cluster.submit([bundle for bundle, _ in own], [] if worker is None else [worker])
            for future, (bundle, n_failed) in zip(futures, own, strict=True):
                self._launch(Flown(bundle, n_failed + 1, self.experience.sent(), worker), future)

    def _launch(self, flown: Flown, future: Future) -> None:
        flown.futures[future.key] = future
        self.flown[future.key] = flown
        future.add_done_callback(self._arrived)

    def _arrived(self, future: Future) -> None:
        self.experience.done()
        self.done.put(future)

    def repeat_late(self, n_threads: int) -> None:
        """Start once more what holds up the end of this run."""
        now = monotonic()
        # What tasks of this name took in another run, of other sizes, is worth little before the first one is done.
        times = 1 if self.has_answers or len(self.flown) == 1 else NOTHING_YET
        late = [
            one
            for one in list(self.flown.values())
            if one.may_run_twice
            and self.experience.is_late(self.name, one.sent, times * len(one.tasks), n_threads, now)
        ]
        if late:
            free = self.cluster.others([future for one in late for future in one.futures.values()])
            for one, future in zip(late, self.cluster.submit([one.tasks for one in late], free), strict=True):
                self.experience.sent()
                self._launch(one, future)

    @property
    def patience(self) -> float:
        """Seconds after which it is time to look whether something is late."""
        usual = self.experience.usual_seconds(self.name)
        may = usual is not None and any(one.may_run_twice for one in self.flown.values())
        return max(LEAST_LOOK, usual / 2) if may and usual is not None else inf

    def land(self, future: Future, answers: Answers | None, error: BaseException | None) -> list[Outcome[Task, Any]]:
        """What became of the tasks of a bundle; nothing of those that are tried again, or that somebody else did."""
        flown = self.flown.pop(future.key, None)
        future.release()
        if flown is None:
            return []
        del flown.futures[future.key]
        if error is not None and flown.futures:
            return []  # the other one may do it yet
        for key, twin in flown.futures.items():
            del self.flown[key]
            self.cluster.drop(twin)
        if flown.worker is not None:
            self.wanted[flown.worker] -= 1
        if answers is None:
            assert error is not None
            return [outcome for task in flown.tasks for outcome in self._failed(task, error, flown)]
        return list(chain.from_iterable(map(self._answered, flown.tasks, answers, [flown] * len(answers))))

    def _answered(self, task: Task, answer: Measured[Any] | None, flown: Flown) -> Iterator[Outcome[Task, Any]]:
        if answer is None:
            self.again.append((task, flown.n_tries - 1))
            return
        self.has_answers = True
        meter.add_share(answer.cost, answer.process)
        self.experience.took(self.name, answer.seconds)
        self.experience.remember(task, answer.worker)
        result = answer.result
        yield Outcome(task, None, result.error) if isinstance(result, Refusal) else Outcome(task, result)

    def _failed(self, task: Task, error: BaseException, flown: Flown) -> Iterator[Outcome[Task, Any]]:
        if self.cluster.tries_again(task, error, flown.n_tries):
            self.again.append((task, flown.n_tries))
            return
        yield Outcome(task, None, error)

    @property
    def futures(self) -> list[Future]:
        """All that are on the cluster."""
        return [one.futures[key] for key, one in self.flown.items()]


def _smaller_to_the_end(bundles: Sequence[Bundle], size: int, n_threads: int) -> list[Bundle]:
    """The last bundles of a run in smaller ones, so that no thread has much to do when all others are done."""
    pieces, n_left = [], sum(map(len, bundles))
    for bundle in bundles:
        begin = 0
        while begin < len(bundle):
            n_tasks = max(1, size // FINEST, n_left // (2 * n_threads))
            pieces.append(bundle[begin : begin + n_tasks])
            begin += n_tasks
            n_left -= len(pieces[-1])
    return pieces


def _next_bundle(tasks: Iterator[Any], size: int) -> Bundle:
    """The next task, with those after it where it may travel with others."""
    first = tuple(islice(tasks, 1))
    return first + tuple(islice(tasks, size - 1)) if first and may_be_bundled(first[0]) else first
