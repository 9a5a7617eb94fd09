"""Signals that end a cluster: heard later while it starts, raised as interrupts while it runs.

A Dask cluster that is interrupted in the middle of its start cannot be closed in good order: workers stay behind, and
closing it raises. So a start is finished first, if that takes no longer than `GRACE`, and closed then.
"""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from types import FrameType

from distributed import SpecCluster, Status

GRACE = 10.0  # seconds that a start which was told to stop has left; a host that never answers takes minutes
CLOSING = 3.0  # seconds for closing a cluster that did not start
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise what their handlers before raised, or KeyboardInterrupt.

    Then the cluster is closed in good order.
    """
    before = {number: signal.getsignal(number) for number in ENDS}

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Once is enough; only an impatient Ctrl-C may cut the closing short.
        for later in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(later, signal.SIG_IGN)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        raise KeyboardInterrupt

    for number in ENDS:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def finished_first(grace: float = GRACE) -> Iterator[None]:
    """A signal inside the block is raised at its end, after `grace` seconds, or when another one comes."""
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in (*ENDS, signal.SIGALRM)}

    def restore() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            heard.append(number)
        if len(heard) == 1 and number != signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, grace)
        elif heard[-1] == signal.SIGINT or number == signal.SIGALRM:
            restore()
            signal.raise_signal(heard.pop(0))

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """When the block raises, whatever it started and did not close is ended: clusters, and processes of this one."""
    clusters, children = set(SpecCluster._instances), set(active_children())
    try:
        yield
    except BaseException:
        # Dask keeps no other record of a cluster whose constructor was cut short, and would close it at exit.
        unclosed = [one for one in set(SpecCluster._instances) - clusters if one.status != Status.closed]
        for cluster in unclosed:
            with suppress(Exception):  # Dask asserts, and cancels, in the middle of things
                cluster.close(timeout=CLOSING)
            cluster.shutdown_on_close = False
        for child in set(active_children()) - children if unclosed else ():
            child.kill()  # workers defer SIGTERM
            child.join(CLOSING)
        for cluster in unclosed:
            with suppress(Exception):  # its thread gives semaphores back, unless the program ends first
                cluster._loop_runner.stop(timeout=CLOSING)
        raise
