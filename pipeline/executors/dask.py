"""Tasks on a Dask cluster, and how to reach one. Only small task records and small results pass the scheduler.

What the future machinery does when something dies decides the shape of the loop below: a finished future is taken
and released at once (results a dead worker still holds would be computed again), and every future's status is looked
at (a lost scheduler shows as futures that are "cancelled", never as an exception).
"""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing import current_process
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

import dask.config
from distributed import CancelledError, Client, KilledWorker, Security
from distributed.client import ClosedClientError
from distributed.comm.addressing import parse_host_port

from gramline.pipeline.errors import ClusterError, InputError, RunError
from gramline.pipeline.executors.addresses import refuse_exposed
from gramline.pipeline.executors.attempt import Refusal, attempt
from gramline.pipeline.executors.base import Outcome, Result, Task
from gramline.pipeline.executors.worker_settings import ONE_THREAD as ONE_THREAD
from gramline.pipeline.executors.worker_settings import SETTINGS

Future = Any  # distributed.Future, whose key and result types say nothing we could use

Completed = tuple[Future, Any, BaseException | None]

AHEAD = 4  # tasks in flight per worker thread: hides the scheduler's 2-3 ms per task
WORKERS_EVERY = 1.0  # seconds between two looks at who is there
GREETING_BYTES = 1 << 20  # more than any scheduler says at first, less than any text read as a number
LOST = (CancelledError, ClosedClientError, OSError)  # what Dask raises once the scheduler is gone


class DaskExecutor:
    """Runs tasks on the workers of a Dask client; workers may come and go meanwhile.

    `patience` is how long a cluster may have no worker at all before the run is given up, `grace` how long an
    abandoned run waits for the tasks that are computing (they finish what they are writing). A cluster that talks in
    plain text over a network is refused unless `insecure_plain_text`: whoever reaches its ports runs code as you.
    """

    def __init__(
        self, client: Client, *, patience: float = 60.0, grace: float = 5.0, insecure_plain_text: bool = False
    ) -> None:
        self._client = client
        self._address = str(client.scheduler.address) if client.scheduler else "an unknown address"
        self._patience = patience
        self._grace = grace
        if not insecure_plain_text:
            try:
                _refuse_exposed_parts(client)
            except LOST as error:
                raise self._lost() from error

    @property
    def client(self) -> Client:
        return self._client

    @property
    def n_threads(self) -> int:
        """Threads of all workers that are there now, at least 1."""
        return max(1, self._threads_now())

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Iterator[Outcome[Task, Result]]:
        """One outcome per task as they complete; see `Executor.run`. `function` must be importable on the workers."""
        remaining = iter(tasks)
        suspects: list[Task] = []  # were on a worker when it died, once too often; each gets a worker to itself at last
        alone = False
        in_flight: dict[str, Task] = {}
        futures: dict[str, Future] = {}
        done: SimpleQueue[Future] = SimpleQueue()
        call = partial(attempt, function)
        name = getattr(function, "__name__", "task")
        watch = _WorkerWatch(self._threads_now, self._patience, self._address)
        try:
            while True:
                threads = max(1, watch.threads())
                room = AHEAD * threads - len(in_flight)
                # A thread's worth at a time: one message to the scheduler instead of many.
                batch = [] if alone or room < threads else list(islice(remaining, room))
                if not batch and not in_flight:
                    if not suspects:
                        return
                    batch, alone = [suspects.pop(0)], True
                for future, task in zip(self._submit(call, batch, name, retries), batch, strict=True):
                    in_flight[future.key], futures[future.key] = task, future
                    future.add_done_callback(done.put)
                collected = self._collect(done, watch)
                for future, _, _ in collected:  # all of them before the caller sees one: who knows how long it takes
                    futures.pop(future.key).release()
                for future, result, error in collected:
                    task = in_flight.pop(future.key)
                    if isinstance(error, KilledWorker) and not alone:
                        suspects.append(task)
                    else:
                        yield Outcome(task, result, _explained(error))
        finally:
            if futures:
                self._abandon(list(futures.values()))

    def _submit(self, call: Callable[[Task], Any], batch: list[Task], name: str, retries: int) -> list[Future]:
        if not batch:
            return []
        try:
            futures: list[Future] = self._client.map(call, batch, key=name, pure=False, retries=retries)
        except LOST as error:
            raise self._lost() from error
        return futures

    def _collect(self, done: SimpleQueue[Future], watch: _WorkerWatch) -> list[Completed]:
        """Everything that completed, with its result or error; empty when nothing did for a while."""
        try:
            futures = [done.get(timeout=WORKERS_EVERY)]
        except Empty:
            if self._client.status != "running":
                raise self._lost() from None
            return []
        while not done.empty():
            futures.append(done.get())
        if any(future.status == "cancelled" for future in futures):
            raise self._lost()
        if all(future.status == "finished" for future in futures):
            try:
                return [_completed(*pair) for pair in zip(futures, self._gather(futures, watch), strict=True)]
            except ClusterError:
                raise
            except Exception:  # noqa: BLE001 - one of them was lost with its worker and then failed
                pass
        return [self._ask(future, watch) for future in futures]

    def _ask(self, future: Future, watch: _WorkerWatch) -> Completed:
        """One future that may have failed."""
        if future.status != "error":
            try:
                return _completed(future, self._gather([future], watch)[0])
            except ClusterError:
                raise
            except Exception as error:  # the task's own, or the news that the scheduler is gone
                if future.status != "error":
                    raise self._lost() from error
        return future, None, future.exception()

    def _gather(self, futures: list[Future], watch: _WorkerWatch) -> list[Any]:
        """Results of finished futures. One that died with its worker is computed again; that may take workers."""
        loop: Any = self._client.loop
        waiting = asyncio.run_coroutine_threadsafe(self._client.gather(futures, asynchronous=True), loop.asyncio_loop)
        while True:
            try:
                return list(waiting.result(timeout=WORKERS_EVERY))
            except TimeoutError:
                if waiting.done():
                    raise
                if self._client.status != "running":
                    raise self._lost() from None
                watch.threads()  # gives up when there has been no worker for too long

    def _abandon(self, futures: list[Future]) -> None:
        """Cancel what has not started; wait a moment for what is computing, so that nobody writes after we return."""
        if self._client.status != "running":
            return
        with suppress(*LOST):
            self._client.cancel(futures, force=True)
            deadline = monotonic() + self._grace
            while monotonic() < deadline and any(self._client.call_stack().values()):
                sleep(0.05)

    def _threads_now(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except LOST as error:
            raise self._lost() from error

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._address} was lost; what was finished is kept: "
            "start the cluster again and repeat the command, it goes on where it was"
        )


def _completed(future: Future, result: Any) -> Completed:
    return (future, None, result.error) if isinstance(result, Refusal) else (future, result, None)


def _explained(error: BaseException | None) -> BaseException | None:
    """Dask's word for a task that takes its workers along, in ours."""
    if not isinstance(error, KilledWorker):
        return error
    deaths = error.allowed_failures + 1
    explained = RunError(
        f"{deaths} worker{'' if deaths == 1 else 's'} died while running it, most likely for want of memory; "
        "use smaller blocks, fewer threads per worker or a higher memory limit"
    )
    explained.__cause__ = error
    return explained


class _WorkerWatch:
    """How many threads there are, asked at most once a second; gives up when there are none for too long."""

    def __init__(self, ask: Callable[[], int], patience: float, address: str) -> None:
        self._ask, self._patience, self._address = ask, patience, address
        self._count = 0
        self._asked = -WORKERS_EVERY
        self._seen = monotonic()

    def threads(self) -> int:
        now = monotonic()
        if now - self._asked >= WORKERS_EVERY:
            self._count, self._asked = self._ask(), now
            if self._count:
                self._seen = now
            elif now - self._seen > self._patience:
                raise ClusterError(
                    f"the Dask scheduler at {self._address} has had no workers for {self._patience:.0f} s; "
                    "start workers and repeat the command"
                )
        return self._count


GUARD = 'in a script, put what it runs below `if __name__ == "__main__":`'


class _TidyClient(Client):
    """A client that is closed when it cannot start, and by one at a time.

    Otherwise the collector closes it, in whatever thread and at whatever moment: as the next client starts its loop,
    that waits for a lock which this very start holds, for ever. And a client that loses its scheduler closes itself
    while its user closes it: the second of the two meets connections that are being cancelled, which raises.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._one_at_a_time = asyncio.Lock()
        super().__init__(*args, **kwargs)

    def start(self, **kwargs: Any) -> None:
        try:
            super().start(**kwargs)
        except BaseException:
            self.close()
            raise

    async def _close(self, fast: bool = False) -> None:
        async with self._one_at_a_time:
            await super()._close(fast=fast)


def connect(
    address: str | None = None,
    *,
    workers: int | None = None,
    threads: int = 1,
    memory_limit: str | int | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    timeout: float = 10.0,
    dashboard: bool = False,
    insecure_plain_text: bool = False,
) -> Client:
    """A Dask client: of the scheduler at `address`, or of a local cluster of processes that ends with the client.

    Local: `workers` processes (one per core by default) of `threads` threads and `memory_limit` each ("2GiB"; a fair
    share by default), all on loopback. Every worker imports the script that starts it, so a script calls this below
    `if __name__ == "__main__":`. Raises ClusterError within seconds when nobody answers at `address`, and
    InputError for a cluster that talks in plain text over a network unless `insecure_plain_text` (whoever reaches
    its ports runs code as you).
    """
    if address is not None:
        return _connect_to(address, security_for(address, tls_ca, tls_cert, tls_key), timeout, insecure_plain_text)
    if getattr(current_process(), "_inheriting", False):  # what multiprocessing itself looks at
        raise ClusterError(f"a worker has imported the script that starts it; {GUARD}")
    use_worker_settings()
    n_workers = workers or max(1, len(os.sched_getaffinity(0)) // threads)
    try:
        return _TidyClient(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
            # The HTTP server cannot be switched off; port 0 of loopback keeps it out of everybody's way.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": dashboard},
            silence_logs=logging.CRITICAL,
            env=ONE_THREAD,
            preload=["gramline.pipeline.executors.worker_signals"],
            **({} if memory_limit is None else {"memory_limit": memory_limit}),
        )
    except RuntimeError as error:
        if "failed to start" not in str(error):
            raise
        cause: BaseException = error
        while (deeper := cause.__cause__ or cause.__context__) is not None:
            cause = deeper
        raise ClusterError(f"a worker process did not start ({cause or type(cause).__name__}); {GUARD}") from None


def _connect_to(address: str, security: Security | None, timeout: float, insecure_plain_text: bool) -> Client:
    advice = "check the address and that `dask scheduler` runs there, or leave the address out for a local cluster"
    try:
        host, port = parse_host_port(address.partition("://")[2] or address, 8786)
        socket.getaddrinfo(host, port)  # a name that means nothing is told as such
        refuse_exposed(address, insecure_plain_text=insecure_plain_text)
        # Dask would try for the whole timeout where one look tells that the door is shut.
        with socket.create_connection((host, port), timeout=min(timeout, 3.0)) as door:
            greets = address.startswith("tls://") or _greets(door, min(timeout, 5.0))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address} ({error}); {advice}") from None
    if not greets:
        raise ClusterError(
            f"what answers at {address} is no Dask scheduler without TLS; check the port (the dashboard has another) "
            "and the protocol (tcp:// or tls://)"
        )
    try:
        client = _TidyClient(address, security=security, timeout=timeout)
    except (OSError, TypeError, ValueError, AssertionError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(
            f"the Dask scheduler at {address} refused the connection ({text}); "
            "check the protocol (tcp:// or tls://) and the certificates"
        ) from error
    try:
        if not insecure_plain_text:
            _refuse_exposed_parts(client)
    except BaseException:
        client.close()
        raise
    return client


def _refuse_exposed_parts(client: Client) -> None:
    """Where scheduler and workers really listen: one that was reached on loopback may listen to the world as well."""
    refuse_exposed(str(client.scheduler_info()["address"]), insecure_plain_text=False)
    for address in client.nthreads():
        refuse_exposed(str(address), insecure_plain_text=False, what="the Dask worker")


def _greets(door: socket.socket, timeout: float) -> bool:
    """True when the other side speaks first, and begins with the size of a small message: Dask's greeting.

    A client of Dask would wait for it for ever, and allocate whatever the first eight bytes of another protocol mean.
    """
    door.settimeout(timeout)
    size = b""
    with suppress(TimeoutError, ConnectionError):
        while len(size) < 8 and (more := door.recv(8 - len(size))):
            size += more
    return len(size) == 8 and int.from_bytes(size, "little") < GREETING_BYTES


def security_for(address: str, ca: str | None, cert: str | None, key: str | None) -> Security | None:
    given = [value for value in (ca, cert, key) if value]
    if not given:
        return None  # Dask's own configuration decides
    if len(given) < 3 or not address.startswith("tls://"):
        raise InputError(f"a TLS connection takes a tls:// address, a CA, a certificate and a key; address {address}")
    for path in given:
        if not os.access(path, os.R_OK):
            raise InputError(f"the TLS file {path} cannot be read; check the path and its permissions")
    return Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)


def wait_for_workers(client: Client, count: int, seconds: float) -> None:
    """Return as soon as `count` workers are there; ClusterError when they do not come."""
    try:
        client.wait_for_workers(count, timeout=seconds)
    except TimeoutError:
        raise ClusterError(
            f"{len(client.nthreads())} of {count} workers came within {seconds:.0f} s; look at what the others wrote "
            "to their logs"
        ) from None


def use_worker_settings() -> None:
    """Our defaults in place of Dask's; what the user has set in Dask's own configuration stays."""
    if SETTINGS not in dask.config.defaults:
        dask.config.update_defaults(SETTINGS)


def quiet() -> None:
    """Keep Dask's log lines off the terminal of a command line, which says itself what went wrong."""
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
