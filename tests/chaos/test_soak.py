"""Twenty thousand tiles through one scheduler while workers die and return: nothing grows that should not."""

from __future__ import annotations

import gc
import operator
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from chaos.dask_processes import DaskProcesses
from distributed import Scheduler
from distributed.batched import BatchedSend
from measured_page import conditions, tell

from gramline.kernels import SequenceLabeling
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.events import Event, TileDone
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.executors.worker_settings import SETTINGS
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.verify import verify_gram

BLOCKS = 200  # 200 * 201 / 2 = 20,100 tiles
KILL_EVERY = 6.0
# Of the scheduler from a quarter of the way to the end. Dask remembers the names of its last 100,000 tasks (0.2 kB
# each) and that there was a submission (0.3 kB for every three tiles here): 2 % on this way.
GROWTH = 1.05


def blocks(n_blocks: int) -> Corpus:
    """Every structure fills a block of four rows."""
    draw = random.Random(1)
    return Corpus.from_sequences([draw.choices("abcd", k=4) for _ in range(n_blocks)])


class Measures:
    """Memory, files and threads of a process, at every so many tiles."""

    def __init__(self, process: psutil.Process, every: int) -> None:
        self._process, self._every = process, every
        self.rows: list[tuple[int, float, int, int, int]] = []  # tiles, MB, open files, threads of both

    def __call__(self, event: Event) -> None:
        if isinstance(event, TileDone) and event.n_done % self._every == 0:
            memory = self._process.memory_info().rss / 1e6
            files, threads = self._process.num_fds(), self._process.num_threads()
            self.rows.append((event.n_done, memory, files, threads, threading.active_count()))

    def lines(self) -> Iterator[str]:
        yield f"{'tiles':>7} {'scheduler MB':>13} {'open files':>11} {'threads':>8} {'threads of the client':>22}"
        for tiles, memory, files, threads, here in self.rows:
            yield f"{tiles:>7,} {memory:>13.0f} {files:>11} {threads:>8} {here:>22}"


def soak(folder: Path, n_blocks: int, kill_every: float) -> tuple[Measures, int, float]:
    """Build and churn; (what the scheduler took, kills, seconds)."""
    store, draw, done = folder / "a.zarr", random.Random(3), threading.Event()
    n_tiles = n_blocks * (n_blocks + 1) // 2
    killed: list[int] = []
    with DaskProcesses(folder / "dask") as cluster, connect(cluster.address) as client:
        client.wait_for_workers(2, timeout=120)
        assert cluster.scheduler is not None
        measures = Measures(psutil.Process(cluster.scheduler.pid), max(1, n_tiles // 8))

        def churn() -> None:
            while not done.wait(kill_every):
                with suppress(Exception):
                    chosen = draw.choice(list(client.run(os.getpid, on_error="ignore").values()))
                    os.kill(chosen, signal.SIGKILL)
                    killed.append(chosen)

        churning = threading.Thread(target=churn)
        churning.start()
        begin = time.monotonic()
        try:
            build_gram(
                SequenceLabeling(c=0.5),
                blocks(n_blocks),
                store,
                block_rows=4,
                executor=DaskExecutor(client),
                progress=measures,
            )
        finally:
            done.set()
            churning.join()
        seconds = time.monotonic() - begin
        leaked = [path for path in store.rglob("*.partial") if path.stat().st_mtime < time.time() - 60]
        assert leaked == [] or len(leaked) <= len(killed)  # at most the file that each killed one was writing
    assert sum(path.is_file() and path.suffix != ".partial" for path in (store / "tiles" / "c").rglob("*")) == n_tiles
    return measures, len(killed), seconds


def test_a_short_soak(tmp_path: Path) -> None:
    measures, _, _ = soak(tmp_path, n_blocks=12, kill_every=600.0)
    assert len(measures.rows) >= 8
    assert measures.rows[-1][4] <= measures.rows[3][4] + 8
    assert verify_gram(tmp_path / "a.zarr").is_good


def streams(dask_scheduler: Scheduler) -> tuple[int, int, int]:
    """Message streams in the scheduler's memory, the most messages one has kept, streams to those who are there."""
    gc.collect()
    kept = [len(one.recent_message_log) for one in gc.get_objects() if isinstance(one, BatchedSend)]
    return len(kept), max(kept), len(dask_scheduler.stream_comms) + len(dask_scheduler.client_comms)


def test_the_scheduler_forgets_a_dead_worker(tmp_path: Path) -> None:
    with DaskProcesses(tmp_path / "dask", workers=1) as cluster, connect(cluster.address) as client:
        client.wait_for_workers(1, timeout=120)
        [(address, process)] = client.run(os.getpid).items()
        assert all(outcome.error is None for outcome in DaskExecutor(client).run(operator.neg, range(200)))
        os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 120
        while address in client.nthreads() or len(client.nthreads()) == 0:
            assert time.monotonic() < deadline, "no new worker in place of the dead one"
            time.sleep(0.1)
        n_kept, longest, n_there = client.run_on_scheduler(streams)
        while n_kept > n_there:
            assert time.monotonic() < deadline, "a dead worker's messages are still there"
            time.sleep(0.1)
            n_kept, longest, n_there = client.run_on_scheduler(streams)
    assert longest <= SETTINGS["distributed"]["admin"]["low-level-log-length"]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_thousand_tiles(tmp_path: Path) -> None:
    machine = conditions()
    measures, n_killed, seconds = soak(tmp_path, BLOCKS, KILL_EVERY)
    n_tiles = BLOCKS * (BLOCKS + 1) // 2
    early, late = measures.rows[1], measures.rows[-1]
    outcome = f"{n_tiles:,} tiles in {seconds:.0f} s, {n_killed} workers killed on the way"
    written = (
        f"{outcome}; the scheduler's memory {early[1]:.0f} MB after {early[0]:,} tiles and {late[1]:.0f} MB at the "
        f"end, its open files {early[2]} and {late[2]}, its threads {early[3]} and {late[3]}.\n\n{machine}"
    )
    tell("soak", "\n".join([*measures.lines(), outcome]), written)
    assert n_killed >= 3
    assert late[1] <= GROWTH * early[1], "the scheduler's memory grows with the tiles"
    assert late[2] <= early[2] + 20, "the scheduler leaks open files"
    assert late[3] <= early[3] + 4, "the scheduler leaks threads"
    assert late[4] <= early[4] + 4, "the client leaks threads"
