"""How to reach a Dask cluster: the scheduler at an address, or a local cluster of processes. Refuses exposed ones."""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import current_process
from typing import Any

import dask.config
from distributed import Client, Security
from distributed.comm.addressing import parse_host_port
from distributed.comm.core import connect as open_comm

from gramline.pipeline.errors import ClusterError, InputError, first_line
from gramline.pipeline.executors.addresses import refuse_exposed
from gramline.pipeline.executors.worker_settings import ONE_THREAD, SETTINGS
from gramline.pipeline.files import available_cores

NO_CONNECTION = (OSError, TypeError, ValueError, AssertionError)  # what Dask raises when it finds no way in
CONNECT_SECONDS = 3.0  # for a scheduler to be there at all
GREETING_BYTES = 1 << 20  # more than any scheduler says at first, less than any text read as a number
GUARD = 'in a script, put what it runs below `if __name__ == "__main__":`'


class TidyClient(Client):
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

    Every worker imports the script that starts it, so a script calls this below `if __name__ == "__main__":`.

    Parameters
    ----------
    address : tls://host:8786 or tcp://host:8786; None starts a cluster on loopback
    workers, threads : local processes (one per core by default) and threads of each
    memory_limit : of each process ("2GiB"); a fair share by default
    tls_ca, tls_cert, tls_key : files of a tls:// address
    timeout : seconds; ClusterError when nobody answers within them
    dashboard : show the dashboard of Dask, which needs bokeh
    insecure_plain_text : allow a cluster without TLS on a network: whoever reaches its ports runs code as you

    Returns
    -------
    distributed.Client, a context manager

    A build on a local cluster is `with connect(workers=4) as client: build_gram(kernel, corpus, path, client=client)`.

    >>> from gramline.pipeline import connect
    >>> connect("tcp://192.0.2.1:8786")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gramline.pipeline.errors.InputError: the Dask scheduler at tcp://192.0.2.1:8786 is not encrypted ...
    """
    if address is not None:
        return _connect_to(address, security_for(address, tls_ca, tls_cert, tls_key), timeout, insecure_plain_text)
    if getattr(current_process(), "_inheriting", False):  # what multiprocessing itself looks at
        raise ClusterError("a worker has imported the script that starts it", advice=GUARD)
    use_worker_settings()
    n_workers = workers or max(1, available_cores() // threads)
    try:
        return TidyClient(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
            # The HTTP server cannot be switched off; port 0 of loopback keeps it out of everybody's way.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": dashboard},
            silence_logs=logging.CRITICAL,
            env=ONE_THREAD,
            preload=["gramline.pipeline.executors.worker_settings"],
            **({} if memory_limit is None else {"memory_limit": memory_limit}),
        )
    except RuntimeError as error:
        cause = start_cause(error)
        if cause is error:
            raise
        raise ClusterError(f"a worker process did not start ({first_line(cause)})", advice=GUARD) from None


def start_cause(error: BaseException) -> BaseException:
    """Why something did not start: the error below Dask's, which only its message tells from others; or `error`."""
    cause = error
    while "failed to start" in str(cause) and (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    return cause


def _connect_to(address: str, security: Security | None, timeout: float, insecure_plain_text: bool) -> Client:
    advice = "check the address and that `dask scheduler` runs there, or leave the address out for a local cluster"
    try:
        host, port = parse_host_port(address.partition("://")[2] or address, 8786)
        socket.getaddrinfo(host, port)  # a name that means nothing is refused as such
        refuse_exposed(address, insecure_plain_text=insecure_plain_text)
        if address.startswith("tls://"):
            _require_tls(address, security, min(timeout, CONNECT_SECONDS))
        else:
            # Dask would try for the whole timeout where one attempt shows that the port is closed.
            with socket.create_connection((host, port), timeout=min(timeout, CONNECT_SECONDS)) as door:
                greets = _greets(door, min(timeout, 5.0))
            if not greets:
                raise ClusterError(
                    f"what answers at {address} is no Dask scheduler without TLS",
                    advice="check the port (the dashboard has another) and the protocol (tcp:// or tls://)",
                )
    except (InputError, ClusterError):
        raise
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address} ({first_line(error)})", advice=advice) from None
    try:
        client = TidyClient(address, security=security, timeout=timeout)
    except NO_CONNECTION as error:
        raise _refused(address, error) from error
    try:
        if not insecure_plain_text:
            refuse_exposed_parts(client)
    except BaseException:
        client.close()
        raise
    return client


def _refused(address: str, error: BaseException) -> ClusterError:
    return ClusterError(
        f"the Dask scheduler at {address} refused the connection ({first_line(error)})",
        advice="check the protocol (tcp:// or tls://) and the certificates",
    )


def _require_tls(address: str, security: Security | None, timeout: float) -> None:
    """One whole connection of Dask's own: a bare one would be a failed TLS handshake in the log of the scheduler.

    Raises the system's error where nobody answers, and ClusterError where somebody does but refuses.
    """
    try:
        arguments = (security or Security()).get_connection_args("client")
    except OSError as error:  # a key that does not belong to its certificate, a file that holds something else
        advice = "check that they are of one `gramline cluster certs`"
        raise ClusterError(f"the certificates for {address} do not fit ({first_line(error)})", advice=advice) from error
    if arguments["ssl_context"] is None:
        raise ClusterError(
            f"{address} needs certificates, and none are given",
            advice="give --tls-ca, --tls-cert and --tls-key (`gramline cluster certs` makes the files), or name the "
            "files in distributed.comm.tls of Dask's configuration",
        )

    async def try_once() -> None:
        async with asyncio.timeout(2 * timeout):  # Dask sets no limit to the greetings after the TLS handshake
            comm = await open_comm(address, timeout=timeout, **arguments)
            await comm.close()

    # In a thread of its own: whoever calls, in a notebook for example, may have a running loop.
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(asyncio.run, try_once()).result()
        except NO_CONNECTION as error:
            if (reason := _why_nobody_answers(address, error)) is not None:
                raise OSError(reason) from None
            raise _refused(address, error) from error


def _why_nobody_answers(address: str, error: BaseException) -> str | None:
    """Why there is no connection; None where somebody was there and refused.

    Dask gives up with an error about its patience; why the last try failed is the cause of that.
    """
    tried = error.__cause__
    if isinstance(error, TimeoutError) or isinstance(tried, TimeoutError):
        return _closed_port(address) or "no answer in time"
    system = None if tried is None else tried.__cause__
    said_no = ssl.SSLError | ConnectionResetError | BrokenPipeError
    return first_line(system) if isinstance(system, OSError) and not isinstance(system, said_no) else None


def _closed_port(address: str) -> str | None:
    """What the system says of a port where nobody listens; Dask's last try may have had no time to hear it."""
    try:
        socket.create_connection(parse_host_port(address.partition("://")[2], 8786), timeout=1.0).close()
    except TimeoutError:
        return None
    except OSError as error:
        return first_line(error)
    return None


def refuse_exposed_parts(client: Client) -> None:
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
    """The certificates of a connection; None when none are given, then Dask's own configuration decides."""
    given = [value for value in (ca, cert, key) if value]
    if not given:
        return None
    if len(given) < 3 or not address.startswith("tls://"):
        raise InputError(f"a TLS connection to {address} takes a tls:// address, a CA, a certificate and a key")
    for path in given:
        if not os.access(path, os.R_OK):
            raise InputError(f"the TLS file {path} cannot be read", advice="check the path and its permissions")
    return Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)


def wait_for_workers(client: Client, count: int, seconds: float) -> None:
    """Return as soon as `count` workers are there; ClusterError when they do not come."""
    try:
        client.wait_for_workers(count, timeout=seconds)
    except TimeoutError:
        raise ClusterError(
            f"{len(client.nthreads())} of {count} workers came within {seconds:.0f} s",
            advice="look at what the others wrote to their logs",
        ) from None


def use_worker_settings() -> None:
    """Our defaults in place of Dask's; what the user has set in Dask's own configuration stays."""
    if SETTINGS not in dask.config.defaults:
        dask.config.update_defaults(SETTINGS)


def quiet() -> None:
    """Keep Dask's log lines off the terminal of a command line, which says itself what went wrong."""
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
