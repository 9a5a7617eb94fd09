"""A cluster whose every part is a process of its own, so that the memory of each can be told apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from gramline.pipeline.errors import ClusterError
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.executors.worker_settings import ONE_THREAD

PATIENCE = 120.0  # seconds for all processes to start, on a busy machine
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")


@contextmanager
def own_processes(folder: Path, workers: int, memory_limit: int) -> Iterator[DaskExecutor]:
    """Scheduler and workers of one thread on loopback, on free ports; they end with the block."""
    address_file = folder / "scheduler.json"
    processes = [_started(folder, "scheduler", "--port", "0", "--scheduler-file", str(address_file))]
    try:
        address = _address(address_file, processes[0])
        limits = ("--nworkers", str(workers), "--nthreads", "1", "--memory-limit", str(memory_limit))
        processes.append(_started(folder, "worker", address, *limits, "--local-directory", str(folder)))
        with connect(address) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
            yield DaskExecutor(client)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _started(folder: Path, part: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, *LOOPBACK]
    with (folder / f"{part}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | ONE_THREAD)


def _address(path: Path, scheduler: subprocess.Popen[bytes]) -> str:
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline and scheduler.poll() is None:
        try:
            return str(json.loads(path.read_text("utf-8"))["address"])
        except (OSError, ValueError):
            sleep(0.1)
    raise ClusterError(f"the Dask scheduler did not start; {path.with_name('scheduler.log')} says why")
