"""Tasks on a Dask cluster. Only small task records and small results pass the scheduler.

What the future machinery does when something dies decides the shape of the loop below: a finished future is taken
and released at once (results a dead worker still holds would be computed again), and every future's status is looked
at (a lost scheduler shows as futures that are "cancelled", never as an exception). A task that failed is sent again
from here and not by the scheduler, so that whoever listens hears of it.
"""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from queue import Empty
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from distributed import CancelledError, Client, KilledWorker
from distributed.client import ClosedClientError

from gramline.pipeline.errors import ClusterError, RunError, named_line
from gramline.pipeline.events import Listener, TaskRetried, silent
from gramline.pipeline.executors.base import (
    FINAL,
    Outcome,
    Result,
    Task,
    WorkerMemory,
    call_name,
)
from gramline.pipeline.executors.connect import refuse_exposed_parts
from gramline.pipeline.executors.experience import Experience
from gramline.pipeline.executors.flight import Answers, Bundle, Flight, Future
from gramline.pipeline.executors.worker_loss import MEMORY, loss_reason
from gramline.pipeline.executors.worker_task import attempt_on_worker
from gramline.pipeline.executors.worker_watch import LOOK_EVERY, Questions, WorkerWatch

AHEAD = 4  # bundles of tasks in flight per worker thread: hides the scheduler's 2-3 ms per task
LOST = (CancelledError, ClosedClientError, OSError)  # what Dask raises once the scheduler is gone


class DaskExecutor:
    """Runs tasks on the workers of a Dask client; workers may come and go meanwhile.

    `patience` is how long a cluster may have no worker at all before the run is given up, `grace` how long an
    abandoned run waits for the tasks that are computing (they finish what they are writing). A cluster that talks in
    plain text over a network is refused unless `insecure_plain_text`: whoever reaches its ports runs code as you.
    `listener` hears of tasks that are tried again and of workers that are lost.
    """

    def __init__(
        self,
        client: Client,
        *,
        patience: float = 60.0,
        grace: float = 5.0,
        insecure_plain_text: bool = False,
        listener: Listener = silent,
    ) -> None:
        self._client = client
        self._address = str(client.scheduler.address) if client.scheduler else "an unknown address"
        self._patience = patience
        self._grace = grace
        self._listener = listener
        self.n_sent = 0  # tasks that went to the scheduler so far
        self._experience = Experience()
        if not insecure_plain_text:
            try:
                refuse_exposed_parts(client)
            except LOST as error:
                raise self._lost() from error

    @property
    def client(self) -> Client:
        return self._client

    @property
    def dashboard_link(self) -> str:
        return str(self._client.dashboard_link or "")

    @property
    def n_threads(self) -> int:
        """Threads of all workers that are there now, at least 1."""
        return max(1, sum(self._workers_now().values()))

    def worker_memory(self) -> list[WorkerMemory]:
        """What every worker that is there may use, as the scheduler knows it; those without a limit are left out."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except LOST as error:
            raise self._lost() from error
        known = {address: (int(one["memory_limit"] or 0), int(one["nthreads"])) for address, one in workers.items()}
        return [WorkerMemory(address, limit, threads) for address, (limit, threads) in known.items() if limit]

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Generator[Outcome[Task, Result], None, None]:
        """One outcome per task as they complete; see `Executor.run`. `function` must be importable on the workers."""
        watch = self._watch()
        yield from self._outcomes(self._flight(function, retries), watch, iter(tasks))
        watch.look()

    def start(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2, is_urgent: bool = False
    ) -> Generator[Outcome[Task, Result], None, None]:
        """One outcome per task, all of which are on their way when this returns; see `StartsTasks.start`."""
        flight: Flight[Task] = self._flight(function, retries, int(is_urgent))
        every = list(tasks)
        watch = self._started_watch
        watch.threads()
        flight.refill(iter(every), len(every), watch.workers, whole=True)
        return self._outcomes(flight, watch, iter(()))

    def _watch(self) -> WorkerWatch:
        questions = Questions(self._workers_now, self._why_lost)
        return WorkerWatch(questions, self._patience, self._address, self._listener)

    @cached_property
    def _started_watch(self) -> WorkerWatch:
        """One for all tasks that were started: they are many small runs."""
        return self._watch()

    def _flight(self, function: Callable[[Task], Result], retries: int, priority: int = 0) -> Flight[Task]:
        name = str(getattr(function, "__name__", "task"))
        return Flight(_Cluster(self, function, retries, uuid4().hex, count(), priority), name, self._experience)

    def _outcomes(
        self, flight: Flight[Task], watch: WorkerWatch, tasks: Iterator[Task]
    ) -> Generator[Outcome[Task, Result], None, None]:
        suspects: list[Task] = []  # were on a worker when it died, once too often
        try:
            for outcome in self._complete(flight, watch, tasks, alone=False):
                if isinstance(outcome.error, KilledWorker):
                    suspects.append(outcome.task)
                else:
                    yield outcome
            for outcome in self._complete(flight, watch, iter(suspects), alone=True):
                yield _explained(outcome)
        finally:
            self._abandon(flight)

    def _complete(
        self, flight: Flight[Task], watch: WorkerWatch, tasks: Iterator[Task], *, alone: bool
    ) -> Iterator[Outcome[Task, Any]]:
        """The outcomes of tasks as they complete: a few per thread at a time, or one at a time on the whole cluster."""
        while True:
            threads = max(1, watch.threads())
            limit, step = (1, 1) if alone else (AHEAD * threads, threads)
            room = limit - flight.n_bundles
            if room >= step:  # a thread's worth at a time: one message to the scheduler instead of many
                flight.refill(tasks, room, watch.workers, whole=alone)
            if not flight.flown:
                return
            collected = self._collect(flight, watch)
            # All are released before the caller sees one: who knows how long it takes.
            outcomes = [outcome for completed in collected for outcome in flight.land(*completed)]
            if not alone:
                flight.repeat_late(threads)
            yield from outcomes

    def submit(
        self, function: Callable[[Task], Any], sent: Sequence[tuple[str, Bundle]], workers: Sequence[str], priority: int
    ) -> list[Future]:
        """Send bundles of tasks with their keys, preferably to these workers; others may take them from there."""
        try:
            call = partial(attempt_on_worker, function)
            keys, bundles = [key for key, _ in sent], [bundle for _, bundle in sent]
            places: dict[str, Any] = {"workers": list(workers), "allow_other_workers": True} if workers else {}
            futures = list(self._client.map(call, bundles, key=keys, pure=False, priority=priority, **places))
        except LOST as error:
            raise self._lost() from error
        self.n_sent += sum(map(len, bundles))
        return futures

    def others(self, futures: Sequence[Future]) -> list[str]:
        """The workers that have none of these."""
        keys = {future.key for future in futures}
        try:
            processing = self._client.processing()
        except LOST as error:
            raise self._lost() from error
        return [worker for worker, own in processing.items() if not keys & set(own)]

    def drop(self, future: Future) -> None:
        """Nobody waits for it: what has not started never does."""
        with suppress(*LOST):
            self._client.cancel([future], force=True)

    def tries_again(
        self, function: Callable[[Task], Any], retries: int, task: Task, error: BaseException, n_tries: int
    ) -> bool:
        """Whether a task that failed gets another try; whoever listens hears of it."""
        if n_tries > retries or isinstance(error, (KilledWorker, *FINAL)):
            return False
        self._listener(TaskRetried(call_name(function, task), named_line(error), n_tries))
        return True

    def _collect(self, flight: Flight[Task], watch: WorkerWatch) -> list[_Completed]:
        """Everything that completed, with its result or error; empty when nothing did for a while."""
        try:
            futures = [flight.done.get(timeout=min(LOOK_EVERY, flight.patience))]
        except Empty:
            if self._client.status != "running":
                raise self._lost() from None
            return []
        while not flight.done.empty():
            futures.append(flight.done.get())
        futures = [future for future in futures if future.key in flight.flown]  # others came second
        if any(future.status == "cancelled" for future in futures):
            raise self._lost()
        if all(future.status == "finished" for future in futures):
            try:
                results = self._gather(futures, watch)
                return [(future, result, None) for future, result in zip(futures, results, strict=True)]
            except ClusterError:
                raise
            except Exception:  # noqa: BLE001 - one of them was lost with its worker and then failed
                pass
        return [self._collect_one(future, watch) for future in futures]

    def _collect_one(self, future: Future, watch: WorkerWatch) -> _Completed:
        """One future that may have failed."""
        if future.status != "error":
            try:
                return future, self._gather([future], watch)[0], None
            except ClusterError:
                raise
            except Exception as error:  # the task's own, or the news that the scheduler is gone
                if future.status != "error":
                    raise self._lost() from error
        return future, None, future.exception()

    def _gather(self, futures: list[Future], watch: WorkerWatch) -> list[Any]:
        """Results of finished futures. One that died with its worker is computed again; that may take workers."""
        loop: Any = self._client.loop
        waiting = asyncio.run_coroutine_threadsafe(self._client.gather(futures, asynchronous=True), loop.asyncio_loop)
        while True:
            try:
                return list(waiting.result(timeout=LOOK_EVERY))
            except TimeoutError:
                if waiting.done():
                    raise
                if self._client.status != "running":
                    raise self._lost() from None
                watch.threads()  # gives up when there has been no worker for too long

    def _abandon(self, flight: Flight[Task]) -> None:
        """Cancel what has not started; wait a moment for what is computing, so that nobody writes after we return."""
        if not flight.flown or self._client.status != "running":
            return
        with suppress(*LOST):
            self._client.cancel(flight.futures, force=True)
            deadline = monotonic() + self._grace
            while monotonic() < deadline and any(self._client.call_stack().values()):
                sleep(0.05)

    def _workers_now(self) -> dict[str, int]:
        try:
            return dict(self._client.nthreads())
        except LOST as error:
            raise self._lost() from error

    def _why_lost(self, worker: str) -> str | None:
        try:
            return loss_reason(worker, self._client.get_events(worker), self._client.get_events(MEMORY))
        except LOST as error:
            raise self._lost() from error

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._address} was lost",
            advice="what was finished is kept: start the cluster again and repeat the command, it goes on where it was",
        )


_Completed = tuple[Future, Answers | None, BaseException | None]


@dataclass(frozen=True)
class _Cluster:
    """One function on the workers of an executor, for a flight."""

    executor: DaskExecutor
    function: Callable[[Any], Any]
    retries: int
    run: str
    numbers: Iterator[int]
    priority: int

    def submit(self, bundles: Sequence[Bundle], workers: Sequence[str]) -> list[Future]:
        name = partial(call_name, self.function)
        sent = [(f"{name(bundle[0])}-{self.run}-{next(self.numbers)}", bundle) for bundle in bundles]
        return self.executor.submit(self.function, sent, workers, self.priority)

    def others(self, futures: Sequence[Future]) -> list[str]:
        return self.executor.others(futures)

    def drop(self, future: Future) -> None:
        self.executor.drop(future)

    def tries_again(self, task: Any, error: BaseException, n_tries: int) -> bool:
        return self.executor.tries_again(self.function, self.retries, task, error, n_tries)


def _explained(outcome: Outcome[Task, Any]) -> Outcome[Task, Any]:
    """A task that took its workers along gets an error of ours instead of Dask's."""
    killed = outcome.error
    if not isinstance(killed, KilledWorker):
        return outcome
    deaths = killed.allowed_failures + 1
    error = RunError(
        f"{deaths} worker{'' if deaths == 1 else 's'} died while running it, most likely for want of memory",
        advice="use smaller blocks, fewer threads per worker or a higher memory limit",
    )
    error.__cause__ = killed
    return Outcome(outcome.task, None, error)
