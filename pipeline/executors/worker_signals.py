"""Loaded by every worker of a local cluster: a stop is for the command, which then ends its workers in good order.

A terminal sends Ctrl-C to the workers as well, and `timeout` and batch systems send SIGTERM to the whole group; they
would die in the middle of a tile.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

GRACE = 60  # seconds after SIGTERM in which the command ends its workers; Dask kills those that use too much memory


def dask_setup(_worker: Any) -> None:
    """Called by Dask in the main thread of the worker process, after Dask has set its own handler."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_later)


def _end_later(_number: int, _frame: FrameType | None) -> None:
    """Not ignored for good: whoever waits for this process after SIGTERM does not wait for ever."""
    signal.alarm(GRACE)
