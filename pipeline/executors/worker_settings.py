"""Dask settings that suit tiles, for every cluster that gramline starts; deploy/local/dask.yaml is the same as a file.

A tile lives in the memory of its task and goes straight to the store; what Dask keeps is a few hundred bytes per task.
So there is next to nothing to spill, and a worker that is nearly full helps itself by taking no further task.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

PAUSE = 0.85  # of the memory limit: no new task until a tile is written and its memory free
TERMINATE = 0.95  # the nanny starts the worker anew before the machine has to swap
GIVE_BACK = 0.80  # of the limit after a task: freed memory goes back to the system, before the worker seems full

# Dask owns the cores: one thread per task in every library that would start its own.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)

# glibc keeps freed memory for the next tile instead of giving every page back to the system and faulting it in again:
# Dask's own 64 KiB cost 1.6 times the processor time. It reads this as the process starts: only a nanny, or whoever
# starts the worker, can set it.
KEPT_BYTES = 1 << 30
ALLOCATOR = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), KEPT_BYTES)

SETTINGS: dict[str, Any] = {
    "distributed": {
        "worker": {
            "memory": {
                "target": 0.60,  # results that a lazy array keeps go to disk from here on
                "spill": False,  # by process memory: that is the tile being computed, and cannot be spilled
                "max-spill": "10GiB",  # a scratch disk has other users
                "pause": PAUSE,
                "terminate": TERMINATE,
            },
            "profile": {
                "interval": "100ms"
            },  # between samples of what runs, for the dashboard; Dask takes ten times as many
        },
        "nanny": {"pre-spawn-environ": dict.fromkeys(ONE_THREAD, 1) | ALLOCATOR},
        "scheduler": {"worker-ttl": "2 minutes"},  # kernels release the GIL, so a silent worker is a lost one
        # So long has a killed worker process to come back, numerical libraries and all, before a cluster writes it off
        # for good; Dask's 15 s are too short for a busy machine.
        "deploy": {"lost-worker-timeout": "5 minutes"},
        # The last messages to every worker, tasks and all, are kept for developers. A dead worker's stay with the
        # scheduler until Python's next full garbage collection, tens of thousands of tiles away: 1 MB each with Dask's
        # 1000.
        "admin": {"low-level-log-length": 20},
    }
}
GRACE = 60  # seconds after SIGTERM in which the command ends its workers; Dask kills those that use too much memory


def dask_setup(_worker: Any) -> None:
    """A stop is for the command, which then ends its workers in good order.

    A terminal sends Ctrl-C to the workers of a local cluster as well, and `timeout` and batch systems send SIGTERM to
    the whole group; they would die in the middle of a tile. Called by Dask in the main thread of the worker process,
    which preloads this module, after Dask has set its own handler.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_later)


def _end_later(_number: int, _frame: FrameType | None) -> None:
    """Not ignored for good: whoever waits for this process after SIGTERM does not wait for ever."""
    signal.alarm(GRACE)
