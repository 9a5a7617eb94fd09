"""Loaded by every worker of a local cluster: Ctrl-C is for the command, which then ends its workers in good order.

A terminal sends it to the workers as well, and they would die in the middle of a tile with a traceback each.
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(_worker: Any) -> None:
    """Called by Dask in the main thread of the worker process, after Dask has set its own handler."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
