"""A cluster that is kept until a signal ends it: opened, announced, watched, closed in good order."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from gramline.pipeline.cluster.places import is_alive, opened
from gramline.pipeline.cluster.settings import ClusterSettings, Slurm, Ssh
from gramline.pipeline.errors import ClusterError
from gramline.pipeline.executors.connect import quiet
from gramline.pipeline.files import write_whole

LOOK_EVERY = 2.0  # seconds between two looks whether the scheduler still answers

Report = Callable[[str, int, int], None]  # address, workers that are there, workers that were asked for


def serve(
    settings: ClusterSettings, *, wait: float, insecure_plain_text: bool, address_file: str | None, report: Report
) -> None:
    """Keep the cluster until SIGINT, SIGTERM or SIGHUP; ClusterError when its scheduler ends before.

    `report` is called once, when all workers came or `wait` seconds are over; a queue may take longer than that.
    """
    quiet()
    with signals_as_interrupts(), opened(settings, insecure_plain_text=insecure_plain_text) as cluster:
        address, wanted = str(cluster.scheduler_address), n_wanted(settings)
        with _announced(address_file, address):
            try:
                deadline = time.monotonic() + wait
                while len(cluster.scheduler_info["workers"]) < wanted and time.monotonic() < deadline:
                    time.sleep(0.1)
                report(address, len(cluster.scheduler_info["workers"]), wanted)
                while is_alive(cluster):
                    time.sleep(LOOK_EVERY)
            except KeyboardInterrupt:
                return
        raise ClusterError(
            f"the scheduler at {address} ended by itself, perhaps after {settings.scheduler.idle_timeout} without work "
            "(idle_timeout)",
            advice="start it again",
        )


def n_wanted(settings: ClusterSettings) -> int:
    """Worker processes that the settings ask for at least."""
    place, processes = settings.place, settings.workers.processes
    if isinstance(place, Ssh):
        return processes * len(place.hosts)
    if isinstance(place, Slurm):
        return processes * (place.jobs if place.minimum_jobs is None else place.minimum_jobs)
    return processes


@contextmanager
def _announced(path: str | None, address: str) -> Iterator[None]:
    """The address in a file that appears whole, for as long as the block runs."""
    if path is None:
        yield
        return
    target = Path(path)
    write_whole(target, f"{address}\n")
    try:
        yield
    finally:
        with suppress(OSError):
            target.unlink()


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, so that the cluster is closed in good order."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # Once is enough; only an impatient Ctrl-C may cut the closing short.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
