"""What an executor learns of its cluster from pass to pass: how long tasks take, and which worker had what.

Plain numbers and names; nothing here talks to a cluster. Safe from the threads in which futures report.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

PLACES_KEPT = 100_000
MEMORY = 0.8  # of the mean time of a task that stays when the next one is told
SENT_PER_SECOND = 120.0  # messages with work that a scheduler gets at most: it needs some milliseconds for each
LARGEST_BUNDLE = 64
LEAST_BUNDLE = 0.1  # seconds of work in a message, of which everybody together spends some milliseconds on the way
LATE_IDLE = 1.5  # times the usual time without any news, while a worker is idle: somebody holds up all others
LATE_BUSY = 2.5  # times what a task usually takes with all that was ahead of it
LEAST_LATE = 0.2  # seconds


@dataclass(frozen=True)
class Sent:
    """A task as it was sent."""

    since: float
    ahead: int  # tasks that had been sent and were not done


class Experience:
    """Of one executor, by the names of functions."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seconds: dict[str, float] = {}
        self._workers: OrderedDict[Hashable, str] = OrderedDict()
        self._n_sent = 0  # that are not done
        self._last_news = monotonic()

    # ---- which worker had what

    def worker_of(self, task: object, threads: Mapping[str, int]) -> str | None:
        """Who ran the last task of the same place, where that worker is still there."""
        worker = self._workers.get(place_of(task))
        return worker if worker in threads else None

    def remember(self, task: object, worker: str) -> None:
        if (place := place_of(task)) is None:
            return
        with self._lock:
            self._workers[place] = worker
            self._workers.move_to_end(place)
            if len(self._workers) > PLACES_KEPT:
                self._workers.popitem(last=False)

    # ---- how long things take

    def took(self, name: str, seconds: float) -> None:
        """One task of this function took so long, on its worker."""
        with self._lock:
            before = self._seconds.get(name, seconds)
            # One slow worker says little of what is usual.
            self._seconds[name] = MEMORY * before + (1 - MEMORY) * min(seconds, 2 * before)

    def usual_seconds(self, name: str) -> float | None:
        return self._seconds.get(name)

    def bundle_size(self, name: str, n_threads: int) -> int:
        """Tasks to send together, so that the scheduler keeps pace with so many threads, and messages are worth it."""
        usual = self._seconds.get(name)
        if usual is None:
            return 1
        seconds = max(LEAST_BUNDLE, n_threads / SENT_PER_SECOND)
        return max(1, min(LARGEST_BUNDLE, round(seconds / max(usual, 1e-3))))

    # ---- what is under way, in all passes together

    def sent(self) -> Sent:
        """One more."""
        with self._lock:
            ahead, self._n_sent = self._n_sent, self._n_sent + 1
        return Sent(monotonic(), ahead)

    def done(self) -> None:
        with self._lock:
            self._n_sent = max(0, self._n_sent - 1)
            self._last_news = monotonic()

    def is_late(self, name: str, sent: Sent, n_tasks: int, n_threads: int, now: float) -> bool:
        """Whether a bundle of so many tasks should have been done by now.

        Either a thread is idle and nobody has been done for longer than it takes, or what was ahead of it is long done.
        """
        if (usual := self._seconds.get(name)) is None:
            return False
        usual = max(usual * n_tasks, LEAST_LATE)
        is_idle = self._n_sent < n_threads
        if is_idle and now - max(sent.since, self._last_news) > LATE_IDLE * usual:
            return True
        return now - sent.since > LATE_BUSY * usual * (1 + sent.ahead / max(1, n_threads))


def place_of(task: object) -> Any:
    """What a task works on, where it says so: the next one with the same place had better run on the same worker."""
    return getattr(task, "place", None)


def may_run_twice(task: object) -> bool:
    """A short task that does no harm if two workers do it."""
    return bool(getattr(task, "may_run_twice", False))


def may_be_bundled(task: object) -> bool:
    """A short task, one of many, that may travel with others."""
    return bool(getattr(task, "may_be_bundled", False))
