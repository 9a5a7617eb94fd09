"""How long a build will take: a few sample tiles, computed and written by the executor that will run.

Every sample is a small store of its own beside the target: two blocks of the corpus and their tile. So the time has
everything in it that a tile of the build takes: reading, computing, and writing to that very place.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Packed
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.errors import RunError
from gramline.pipeline.events import TileReport
from gramline.pipeline.executors.base import Executor, Result
from gramline.pipeline.gram.alternatives import Speeds
from gramline.pipeline.gram.plan import Plan, TileTask
from gramline.pipeline.gram.product import TileProduct
from gramline.pipeline.gram.room import Room
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.store import TileStore, in_corpus
from gramline.pipeline.gram.task import compute_tile, planned_store
from gramline.pipeline.storage.places import is_in_memory, is_local, local_path
from gramline.pipeline.storage.writer import remove_group

SAMPLES = 3  # tiles, spread over the matrix; every thread computes some of them
ROUNDS = 3  # in which each of them is measured
MOST_SAMPLES = 64  # tiles that are computed before a pace is known, on however many threads


class Blocks(Protocol):
    """What samples are made of: a build that is planned."""

    kernel: Kernel
    layout: GramLayout
    spec: GramSpec

    @property
    def compression(self) -> str: ...

    def read_block(self, block: int, *, of_columns: bool = False) -> Packed: ...


@dataclass(frozen=True)
class Forecast:
    """A plan, where it shall go, and the seconds one kernel value takes a thread, reading and writing included."""

    plan: Plan
    shape: tuple[int, int]
    block_rows: int
    seconds_per_cell: float
    room: Room

    def to_dict(self, n_threads: int) -> dict[str, Any]:
        plan = self.plan
        return {
            "shape": list(self.shape),
            "block_rows": self.block_rows,
            "tiles": plan.n_tiles,
            "present": plan.n_present,
            "to_compute": len(plan.tasks),
            "tile_bytes": plan.tile_bytes,
            "stored_bytes": plan.stored_bytes,
            "new_bytes": plan.new_bytes,
            "free_bytes": self.room.free_bytes,
            "peak_bytes": plan.peak_bytes,
            "cells": plan.cells,
            "threads": n_threads,
            "seconds": plan.seconds(self.seconds_per_cell, n_threads),
        }


@dataclass
class Pace:
    """Seconds per kernel value of one thread, from the reports of tiles; the first of a process loads code, too."""

    seconds: float = 0.0
    cells: int = 0
    n_tiles: int = 0
    seen: set[str] = field(default_factory=set)

    def add(self, report: TileReport, cells: int) -> None:
        if report.worker in self.seen:
            self.seconds, self.cells, self.n_tiles = self.seconds + report.seconds, self.cells + cells, self.n_tiles + 1
        self.seen.add(report.worker)

    def is_known(self, n_threads: int) -> bool:
        """Whether every thread has computed a tile or two at the side of the others."""
        return self.n_tiles >= min(max(SAMPLES, n_threads), MOST_SAMPLES)

    @property
    def seconds_per_cell(self) -> float:
        return self.seconds / max(1, self.cells)


def measure_pace(build: Blocks, executor: Executor, place: str | None) -> float:
    """Seconds per kernel value of a thread of `executor`, all of them at work, writing beside `place`."""
    n_tasks = min(max(SAMPLES, executor.n_threads), MOST_SAMPLES)
    with sample_stores(build, place) as samples:
        tasks = list(samples)
        batch = [tasks[number % len(tasks)] for number in range(n_tasks)]
        try:
            first = _results(executor, compute_tile, batch)  # to start every process and load compiled code
            clocked = _results(executor, compute_tile, batch)
        except FailedSampleError as failed:
            raise _placed(failed, build.layout, samples[failed.task]) from None
    started = {report.worker for _, report in first}
    # A worker that came later is no measure, unless there are no others.
    steady = [one for one in clocked if one[1].worker in started] or clocked
    return sum(report.seconds for _, report in steady) / sum(task.cells for task, _ in steady)


@dataclass(frozen=True)
class Product:
    """What a tile is multiplied with from both sides: n_columns numbers a row, in a precision."""

    n_columns: int = 32
    precision: str = "float32"


def measure_speeds(build: Blocks, executor: Executor, place: str | None, product: Product) -> Speeds:
    """Seconds of a thread for a kernel value, a byte written or read beside `place`, and a product.

    Each is the best of some rounds: others may have the machine for the time of a tile, but not for that of a training.
    """
    with sample_stores(build, place) as samples:
        tasks = list(samples)
        try:
            # The first of each starts every process and loads compiled code.
            rounds = [_results(executor, compute_tile, tasks) for _ in range(1 + ROUNDS)][1:]
            multiply = partial(multiply_sample, product=product)
            reads = [_results(executor, multiply, tasks) for _ in range(1 + ROUNDS)][1:]
        except FailedSampleError as failed:
            raise _placed(failed, build.layout, samples[failed.task]) from None
    cells, written = sum(task.cells for task in tasks), sum(report.written_bytes for _, report in rounds[0])
    n_bytes, n_products = sum(one.n_bytes for _, one in reads[0]), sum(one.n_products for _, one in reads[0])
    return Speeds(
        compute=min(sum(one.read_seconds + one.compute_seconds for _, one in reports) for reports in rounds) / cells,
        write=min(sum(one.write_seconds for _, one in reports) for reports in rounds) / written,
        read=min(sum(one.seconds for _, one in tiles) for tiles in reads) / n_bytes,
        multiply=min(sum(one.product_seconds for _, one in tiles) for tiles in reads) / n_products,
    )


class SampleRead(NamedTuple):
    """One tile that was read and multiplied."""

    seconds: float  # of reading
    n_bytes: int
    product_seconds: float
    n_products: int  # of a value and a column


def multiply_sample(task: TileTask, product: Product) -> SampleRead:
    """Read the tile of a sample as a stream of tiles does, and multiply it as a product with G, from both sides."""
    store = planned_store(task.store, task.identity)
    size = store.tiles.buffer_bytes
    buffer = None if size is None else np.ones(size, np.uint8)  # a stream reads into memory that was used before
    one_side = TileProduct(store.layout, np.ones((store.layout.shape[1], product.n_columns), product.precision))
    with one_blas_thread():
        begin = perf_counter()
        tile = store.read_tile(0, 0, buffer)
        read = perf_counter()
        one_side.add(0, 0, tile)
        ended = perf_counter()
    return SampleRead(read - begin, store.tiles.tile_bytes, 2 * (ended - read), tile.size * product.n_columns)


class FailedSampleError(Exception):
    """The error of one sample."""

    def __init__(self, task: TileTask, error: BaseException) -> None:
        super().__init__(str(error))
        self.task, self.error = task, error


def _placed(failed: FailedSampleError, layout: GramLayout, tile: tuple[int, int]) -> BaseException:
    """The error with structures counted in the corpus instead of in its sample."""
    if isinstance(failed.error, KernelOverflowError):
        return in_corpus(failed.error, layout, *tile)
    return failed.error


def _results(
    executor: Executor, function: Callable[[TileTask], Result], tasks: list[TileTask]
) -> list[tuple[TileTask, Result]]:
    """What the function gave for each sample; one that failed is an error."""
    results = []
    with closing(executor.run(function, tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.result is None:
                error = outcome.error or RunError("a sample tile was not computed", advice="run the command again")
                raise FailedSampleError(outcome.task, error)
            results.append((outcome.task, outcome.result))
    return results


@contextmanager
def sample_stores(build: Blocks, place: str | None) -> Iterator[dict[TileTask, tuple[int, int]]]:
    """A few tiles and their tasks, each in a store of its own beside `place`, which is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="gramline-plan-") as folder:
        beside = f"{folder}/" if place is None else _beside(place)
        urls: list[str] = []
        try:
            tasks = {}
            for i, j in _spread(build.layout):
                urls.append(f"{beside}.gramline-plan-{uuid4().hex}.zarr")
                tasks[_sample(build, i, j, urls[-1])] = (i, j)
            yield tasks
        finally:
            for url in urls:
                remove_group(url)


def _beside(place: str) -> str:
    """How urls begin that lie in the same folder or bucket as `place`; of folders, in the nearest one that exists."""
    if not is_local(place):
        bucket, _, key = place.rstrip("/").partition("://")[2].partition("/")
        return place if key or not bucket or is_in_memory(place) else f"{place.rstrip('/')}/"
    folder = local_path(place).absolute().parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return f"{folder}/"


def _spread(layout: GramLayout) -> list[tuple[int, int]]:
    """Up to SAMPLES tiles of the upper triangle, from its diagonal to its corner."""
    n_rows, n_cols = layout.rows.n_blocks, layout.cols.n_blocks
    return sorted(
        {(k * (n_rows - 1) // SAMPLES, n_cols - 1 - k * (n_cols - 1) // (2 * SAMPLES)) for k in range(SAMPLES)}
    )


def _sample(build: Blocks, i: int, j: int, url: str) -> TileTask:
    """A store of one tile, that of row block i and column block j."""
    rows, cols = build.read_block(i), build.read_block(j, of_columns=True)
    blocks = [
        BlockLayout.of(build.kernel.row_lengths(packed), side.block_rows)
        for packed, side in ((rows, build.layout.rows), (cols, build.layout.cols))
    ]
    layout = GramLayout.rectangular(blocks[0], blocks[1])
    spec = replace(build.spec, cols=build.spec.rows[0])
    TileStore.write(url, spec, (rows, cols), layout, build.compression)
    store = TileStore(url)
    return TileTask(url, store.identity, 0, 0, layout.shape[0] * layout.shape[1], 0)
