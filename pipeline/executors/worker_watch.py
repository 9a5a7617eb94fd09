"""Who is there: how many threads a cluster has, which workers went and why, and when to give up on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from gramline.pipeline.errors import ClusterError
from gramline.pipeline.events import Listener, WorkerLost

LOOK_EVERY = 1.0  # seconds between two looks at who is there
NOT_LOOKING = 10.0  # seconds without a look: whoever is gone may have gone just now


@dataclass(frozen=True)
class Questions:
    """What a watch asks the scheduler."""

    workers: Callable[[], dict[str, int]]  # threads by address
    why_lost: Callable[[str], str | None]  # of an address; None: it was asked to go


class WorkerWatch:
    """Asks at most once a second; tells `listener` of workers that went, gives up when there are none for too long."""

    def __init__(self, questions: Questions, patience: float, address: str, listener: Listener) -> None:
        self._questions, self._patience, self._address, self._listener = questions, patience, address, listener
        self._workers: dict[str, int] = {}
        self._asked = -LOOK_EVERY
        self._seen = monotonic()

    @property
    def workers(self) -> dict[str, int]:
        """Threads of each worker that was there at the last look."""
        return self._workers

    def look(self) -> None:
        """Ask now: who went since the last look is told of."""
        self._asked = monotonic() - LOOK_EVERY
        self.threads()

    def threads(self) -> int:
        """Threads of all workers that were there at the last look."""
        now = monotonic()
        if now - self._asked >= LOOK_EVERY:
            if now - self._asked > NOT_LOOKING:
                self._seen = now  # nobody asked meanwhile
            workers, self._asked = self._questions.workers(), now
            gone, self._workers = sorted(self._workers.keys() - workers.keys()), workers
            for worker in gone:
                self._tell(worker)
            if workers:
                self._seen = now
            elif now - self._seen > self._patience:
                raise ClusterError(
                    f"the Dask scheduler at {self._address} has had no workers for {self._patience:.0f} s",
                    advice="start workers and repeat the command",
                )
        return sum(self._workers.values())

    def _tell(self, worker: str) -> None:
        reason = self._questions.why_lost(worker)
        if reason is not None:
            self._listener(WorkerLost(worker, reason, len(self._workers)))
