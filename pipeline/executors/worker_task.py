"""One try of a task on a Dask worker: measured, and with memory given back before it becomes scarce.

Workers keep freed memory for the next tile (see `worker_settings`). One that came close to its limit would seem full
for ever: Dask gives it no further task, so that nothing would ever take the freed memory again.
"""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from distributed import get_worker

from gramline.pipeline.executors.base import Measured, Result, Task, attempt_measured
from gramline.pipeline.executors.worker_settings import GIVE_BACK

PAGES = Path("/proc/self/statm")  # of this process: all of its pages, then those in memory


def attempt_on_worker(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Measured[Result] | None]:
    """`attempt_measured` of every task; a worker that is nearly full then gives freed memory back to the system.

    The error of a single task is raised; of several, one that fails is None, to be tried alone.
    """
    try:
        if len(tasks) == 1:
            return [_placed(attempt_measured(function, tasks[0]))]
        return [_unless_it_fails(function, task) for task in tasks]
    finally:
        limit_bytes = worker_limit()
        if limit_bytes and resident_bytes() > GIVE_BACK * limit_bytes:
            give_back()


def _unless_it_fails(function: Callable[[Task], Result], task: Task) -> Measured[Result] | None:
    try:
        return _placed(attempt_measured(function, task))
    except Exception:  # noqa: BLE001 - tried alone, it is raised
        return None


def _placed(measured: Measured[Result]) -> Measured[Result]:
    """With the address of the worker that runs this task."""
    try:
        return replace(measured, worker=str(get_worker().address))
    except ValueError:  # not in a task
        return measured


def worker_limit() -> int:
    """The memory limit of the worker that runs this task, 0 where there is none."""
    try:
        return int(get_worker().memory_manager.memory_limit or 0)
    except ValueError:  # not in a task
        return 0


def resident_bytes() -> int:
    """Of this process; 0 where the system does not tell."""
    if not PAGES.is_file():
        return 0
    return int(PAGES.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Freed memory to the system, at once; where the C library is not glibc, it does so by itself."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
