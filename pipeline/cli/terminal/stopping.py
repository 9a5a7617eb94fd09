"""How a command is stopped: SIGTERM is raised like Ctrl-C, so that all that is open is closed in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType

KEPT = "finished work is kept, the same command goes on where it was"
BEGINS_AGAIN = "nothing half-written is left, the same command begins again"
AGAIN = 10.0  # seconds after which another SIGTERM is a new one; `timeout` and groups send several for one stop


class Terminated(KeyboardInterrupt):
    """SIGTERM: what schedulers, containers and service managers send before they kill."""


def install_sigterm_handler() -> None:
    """From now on SIGTERM is raised in the main thread; where it was ignored before, it stays ignored."""
    last: list[float] = []

    def terminate(_number: int, _frame: FrameType | None) -> None:
        # Not ignored from now on: processes that are just being started would inherit that.
        if not last or monotonic() - last[-1] > AGAIN:
            last.append(monotonic())
            raise Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)


@contextmanager
def defer_signals() -> Iterator[None]:
    """SIGINT and SIGTERM inside the block are raised at its end: only what has started can be closed in good order."""
    if current_thread() is not main_thread():
        yield  # no other thread hears signals
        return
    heard: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _frame: heard.append(number)) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def when_stopped(left: str) -> Iterator[None]:
    """`left` tells what a stop inside the block leaves behind and how to go on, unless somebody inside knows better."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.args = stop.args or (left,)
        raise
