"""The plan of a build: which tiles, what each costs and holds at its worst. Plain arithmetic, no files, no cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gramline.learners.operators.layout import GramLayout
from gramline.pipeline.errors import PlanError
from gramline.pipeline.executors.base import Executor, KnowsMemory, WorkerMemory
from gramline.pipeline.gram.keep import EVERYTHING, Keep

WORK_TILES = 2.0  # float64 tiles a kernel holds at most while it computes one
STORED_TILES = 2.0  # stored tiles held at most while one is padded, compressed and written
PROGRAM_BYTES = 300_000_000  # what a worker process takes before it holds any tile, measured
DASK_SHARE = 0.8  # a worker takes no task above 85 % of its limit, and memory that a tile took stays with it
SIZE_CLASSES = 8  # how finely "biggest first" is meant
A_THREAD = "a worker thread"  # whose memory a limit is, where nobody is named


@dataclass(frozen=True)
class TileTask:
    """One tile to compute and write: a key to the data, never the data."""

    store: str  # url of the store
    identity: str  # of the store as it was planned; a worker refuses another one
    i: int
    j: int
    cells: int  # what the tile costs
    peak_bytes: int  # memory at its worst

    may_be_bundled: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"{self.i}-{self.j}"


@dataclass(frozen=True)
class Plan:
    """Tiles to do, biggest first, and the totals of the whole matrix."""

    tasks: tuple[TileTask, ...]
    n_tiles: int  # stored tiles of the whole matrix, once they are all done
    n_present: int  # of them done already
    tile_bytes: int  # on disk, uncompressed
    n_left_out: int = 0  # tiles that are computed when they are asked for, and never stored
    left_out_bytes: int = 0  # memory that computing one of these takes at worst, with a cache of them

    def at(self, store: str, identity: str) -> Plan:
        """The same plan with tasks for the store at that url."""
        return replace(self, tasks=tuple(replace(task, store=store, identity=identity) for task in self.tasks))

    @property
    def stored_bytes(self) -> int:
        """Of the whole matrix on disk, uncompressed."""
        return self.n_tiles * self.tile_bytes

    @property
    def new_bytes(self) -> int:
        """Of the tiles still to write, uncompressed."""
        return len(self.tasks) * self.tile_bytes

    @cached_property
    def cells(self) -> int:
        """Kernel values still to compute."""
        return sum(task.cells for task in self.tasks)

    @cached_property
    def worst(self) -> TileTask | None:
        """The task that needs the most memory."""
        return max(self.tasks, key=lambda task: task.peak_bytes, default=None)

    @property
    def peak_bytes(self) -> int:
        """Memory that one worker thread needs for tiles and blocks, besides the program itself."""
        return max(self.worst.peak_bytes if self.worst else 0, self.left_out_bytes)

    def worker_bytes(self, threads: int) -> int:
        """What a worker process with so many threads needs at worst."""
        return threads * self.peak_bytes + PROGRAM_BYTES

    def check_memory(self, limit_bytes: int, whose: str = A_THREAD) -> None:
        """Refuse a plan that needs more than the `limit_bytes` that `whose` may use."""
        if self.left_out_bytes > limit_bytes:
            raise PlanError(
                f"tiles that are computed when they are asked for, and their cache, need "
                f"{megabytes(self.left_out_bytes)}, more than the {megabytes(limit_bytes)} {whose} may use",
                advice="give a smaller tile_cache, smaller blocks or workers with more memory",
            )
        if self.worst and self.worst.peak_bytes > limit_bytes:
            raise PlanError(
                f"tile ({self.worst.i}, {self.worst.j}) needs {megabytes(self.worst.peak_bytes)}, more than the "
                f"{megabytes(limit_bytes)} {whose} may use",
                advice="use smaller blocks, fewer threads per worker or workers with more memory",
            )

    def seconds(self, seconds_per_cell: float, n_threads: int) -> float:
        """How long the tasks will take, where a thread takes so long for a value, writing included."""
        return self.cells * seconds_per_cell / n_threads


def plan_gram(
    layout: GramLayout,
    present: Collection[tuple[int, int]],
    itemsize: int,
    block_bytes: tuple[NDArray[np.int64], NDArray[np.int64]],
    keep: Keep = EVERYTHING,
) -> Plan:
    """The tiles of `layout` that are not `present` and shall be kept, for any store of them.

    `itemsize` is that of a stored value; `block_bytes` are the sizes of the corpus blocks, of rows and of columns.
    """
    done = set(present)
    row_bytes, col_bytes = block_bytes
    tile_bytes = itemsize * layout.rows.block_rows * layout.cols.block_rows
    heights, widths = np.diff(layout.rows.block_starts), np.diff(layout.cols.block_starts)
    tasks = []
    left_out_bytes = 0
    for i, j in layout.tiles():
        if (i, j) in done:
            continue
        cells = int(heights[i] * widths[j])
        peak = int(WORK_TILES * 8 * cells + STORED_TILES * tile_bytes + row_bytes[i] + col_bytes[j])
        if not keep.keeps(layout, tile_bytes, i, j):
            left_out_bytes = max(left_out_bytes, peak + keep.cache_bytes)
            continue
        tasks.append(TileTask("", "", i, j, cells, peak))
    largest = max((task.cells for task in tasks), default=1)
    # Tiles of about the same size stay in row order, so that workers find their blocks in the cache.
    tasks.sort(key=lambda task: -(SIZE_CLASSES * task.cells // largest))
    n_kept = keep.n_tiles(layout, tile_bytes)
    return Plan(tuple(tasks), n_kept, n_kept - len(tasks), tile_bytes, layout.n_tiles - n_kept, left_out_bytes)


def tile_limit(memory_limit: int, threads: int) -> int:
    """Bytes that one thread of a worker may use for tiles."""
    return max(1, int(DASK_SHARE * memory_limit - PROGRAM_BYTES) // threads)


@dataclass(frozen=True)
class ThreadLimit:
    """What one thread may use for tiles, and whose it is."""

    n_bytes: int
    whose: str = A_THREAD

    @classmethod
    def of(cls, memory: WorkerMemory) -> ThreadLimit:
        threads = "1 thread" if memory.threads == 1 else f"{memory.threads} threads"
        whose = f"a thread of the worker {memory.worker} (memory limit {megabytes(memory.limit_bytes)}, {threads})"
        return cls(tile_limit(memory.limit_bytes, memory.threads), whose)


def thread_limit(given: int | None, executor: Executor | None) -> ThreadLimit | None:
    """The least that a thread may use: as it is `given`, or as the scheduler knows its workers; None: nobody says."""
    limits = [] if given is None else [ThreadLimit(given)]
    if isinstance(executor, KnowsMemory):
        limits += map(ThreadLimit.of, executor.worker_memory())
    return min(limits, key=lambda limit: limit.n_bytes, default=None)


def megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"
