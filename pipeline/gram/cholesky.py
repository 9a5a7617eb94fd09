"""Cholesky factors that do not fit into memory: tiles of L in a scratch group beside the store, made by tasks.

One task makes one tile from tiles of the store and earlier tiles of L, a block column after another. A tile that is
there is done, so a factorisation that was interrupted goes on where it was; the group goes with its factor. Two
processes that factor the same matrix at the same time have a group each.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramline.learners.arrays import Matrix
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.tiled_cholesky import ScaledTiles, TiledFactor, factor_tile
from gramline.learners.operators.layout import Key, select_rows
from gramline.pipeline.cost import meter
from gramline.pipeline.errors import ClusterError, RunError
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.locks import FileLock
from gramline.pipeline.storage.groups import NewArray, group_exists, open_group, read_array, write_arrays
from gramline.pipeline.storage.places import is_local, local_path, storage_errors
from gramline.pipeline.storage.tile_array import ChunkError, TileArray
from gramline.pipeline.storage.writer import GroupWriter, remove_group

FACTOR = "factor"  # name of the array that holds the tiles of L
FACTOR_LIMIT = 2 << 30  # bytes
TILED_SHARE = 0.5  # of LAPACK's pace, measured
TILES_AT_ONCE = 4  # of one task: two of L, the one that is made, and what the store gave for it
SCRATCHES_KEPT = 4  # open per process
Result = TypeVar("Result")

_living: weakref.WeakValueDictionary[str, StoredFactor] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class FactorPlan:
    """What one factorisation of n rows takes; `seconds` tells the time at a measured pace."""

    is_tiled: bool
    peak_bytes: int  # of this process, or of one worker thread when tiled
    scratch_bytes: int  # on disk
    n_tiles: int  # of L
    operations: float  # n^3 / 3

    def seconds(self, rate: float, n_threads: int = 1) -> float:
        """Time at so many floating-point operations per second of one core; tiles reach a part of them."""
        return self.operations / (rate * (TILED_SHARE * n_threads if self.is_tiled else 1.0))


def plan_factor(store: TileStore, n_rows: int, limit: int = FACTOR_LIMIT) -> FactorPlan:
    """Whether a factor of so many rows fits into `limit` bytes, and what it takes either way."""
    operations = n_rows**3 / 3
    whole = n_rows * n_rows * (8 + store.tiles.dtype.itemsize)
    if whole <= limit:
        return FactorPlan(False, whole, 0, 0, operations)
    block = store.layout.rows.block_rows
    n_blocks = -(-n_rows // block)
    n_tiles = n_blocks * (n_blocks + 1) // 2
    # The inverse's diagonal needs one block column of it.
    peak = 8 * block * max(TILES_AT_ONCE * block, n_rows + 2 * block)
    return FactorPlan(True, peak, 8 * block * block * n_tiles, n_tiles, operations)


@dataclass(frozen=True)
class Claim:
    """A scratch group that nobody else uses until `release`."""

    scratch: str
    lock: FileLock | None = None

    def release(self, *, remove: bool) -> None:
        """Let others have it; `remove` what it holds first."""
        if remove:
            remove_group(self.scratch)
        if self.lock is not None:
            self.lock.release(remove=True)


def claim_scratch(store: str, digest: str) -> Claim:
    """The first group of that digest beside the store that is free.

    In an object store nobody can be asked: there every claim gets a group of its own.
    """
    if not is_local(store):
        return Claim(f"{store}.factor-{digest}-{uuid4().hex[:8]}")
    for number in count():
        name = f"{digest}-{number}" if number else digest
        lock = FileLock.acquire(Path(f"{local_path(store)}.claim-{name}"), wait=False)
        if lock is not None:
            return Claim(f"{store}.factor-{name}", lock)
    raise AssertionError  # there is always a next number


@dataclass(frozen=True)
class FactorTask:
    """Tile (i, j) of the factor in `scratch`, of rows of a store."""

    store: str
    identity: str
    scratch: str
    i: int
    j: int

    may_run_twice: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, int]:
        return self.scratch, self.i

    def at(self, i: int, j: int) -> FactorTask:
        return replace(self, i=i, j=j)


class FactorTiles:
    """The tiles of L in a scratch group, and what B is made of: rows, scale and shift."""

    def __init__(self, url: str, tiles: TileArray, rows: NDArray[np.int64], scale: Matrix, shift: Matrix) -> None:
        self.rows, self.scale, self.shift = rows, scale, shift
        self._url = url
        self._tiles = tiles
        block = tiles.chunks[0]
        self.starts = np.array([*range(0, len(rows), block), len(rows)], np.int64)

    @classmethod
    def open(cls, url: str) -> FactorTiles:
        group = open_group(url)
        rows, scale, shift = (read_array(group, name, url) for name in ("rows", "scale", "shift"))
        return cls(url, TileArray(url, FACTOR), rows, scale, shift)

    def get(self, i: int, j: int) -> Matrix:
        try:
            tile = self._tiles.read(i, j)
        except ChunkError as error:
            raise RunError(
                f"tile ({i}, {j}) of the factor {self._url} cannot be read: {error.problem}",
                advice="remove that folder and run again",
            ) from None
        meter.add(bytes_read=self._tiles.tile_bytes)
        return tile[: self._size(i), : self._size(j)]

    def put(self, i: int, j: int, tile: Matrix) -> None:
        if not group_exists(self._url):
            return  # it is over: somebody else was sooner
        self._tiles.write(i, j, tile)
        meter.add(bytes_written=self._tiles.tile_bytes)

    def present(self) -> set[tuple[int, int]]:
        return self._tiles.present()

    def _size(self, block: int) -> int:
        return int(self.starts[block + 1] - self.starts[block])


class _ChosenTiles:
    """Lower tiles of G[rows, rows], cut at the blocks of the factor."""

    def __init__(self, store: TileStore, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
        self._store, self._rows, self._starts = store, rows, starts

    def get(self, i: int, j: int) -> NDArray[Any]:
        left, right = (self._rows[self._starts[k] : self._starts[k + 1]] for k in (i, j))
        return select_rows(self._store.layout, self._read, left, right, self._store.tiles.dtype)

    def _read(self, keys: list[Key]) -> Iterator[tuple[Key, NDArray[Any]]]:
        for key in keys:
            yield key, self._store.read_tile(*key)


_scratches: Cache[FactorTiles] = Cache(SCRATCHES_KEPT)


def compute_factor_tile(task: FactorTask) -> bool:
    """Make one tile of L and write it as one whole chunk."""
    store = planned_store(task.store, task.identity)
    tiles = _opened(task)
    source = ScaledTiles(_ChosenTiles(store, tiles.rows, tiles.starts), tiles.starts, tiles.scale, tiles.shift)
    with one_blas_thread():
        factor_tile(task.i, task.j, source, tiles, int(tiles.starts[task.j]))
    return True


def inverse_block(task: FactorTask) -> Matrix:
    """diag(B^-1) of block j: the squares of one block column of L^-1."""
    tiles = _opened(task)
    with one_blas_thread():
        return TiledFactor(tiles, tiles.starts).inverse_block(task.j)


def _opened(task: FactorTask) -> FactorTiles:
    return _scratches.get((task.scratch,), lambda: FactorTiles.open(task.scratch))


class StoredFactor(TiledFactor):
    """A finished L on disk; removes its tiles when nobody holds it any more."""

    def __init__(self, task: FactorTask, tiles: FactorTiles, executor: Executor, claim: Claim) -> None:
        super().__init__(tiles, tiles.starts)
        self._task = task
        self._executor = executor
        weakref.finalize(self, claim.release, remove=True)

    def inverse_diagonal(self) -> Matrix:
        """Every block column of L^-1 is a task of its own."""
        diagonal = np.empty(int(self._starts[-1]))
        for task, squares in _run(self._executor, inverse_block, [self._task.at(j, j) for j in range(self.n_blocks)]):
            diagonal[self._starts[task.j] : self._starts[task.j + 1]] = squares
        return diagonal


def stored_cholesky(
    store: TileStore, rows: NDArray[np.int64], scale: ArrayLike, shift: ArrayLike, executor: Executor
) -> StoredFactor:
    """The factor of diag(shift) + diag(scale) G[rows, rows] diag(scale).

    The scratch group is named after a digest of all of that: the same factorisation finds what an earlier run left.
    """
    arrays = {
        "rows": np.ascontiguousarray(rows, np.int64),
        "scale": np.array(np.broadcast_to(np.asarray(scale, float), rows.shape)),
        "shift": np.array(np.broadcast_to(np.asarray(shift, float), rows.shape)),
    }
    digest = _digest(store, arrays)
    known = f"{store.identity}:{digest}"
    if known in _living:
        return _living[known]
    claim = claim_scratch(store.url, digest)
    task = FactorTask(store.url, store.identity, claim.scratch, 0, 0)
    try:
        if not group_exists(claim.scratch):
            _create(claim.scratch, store, arrays)
        tiles = FactorTiles.open(claim.scratch)
        _factor(task, tiles, executor)
    except BaseException as error:
        # Another try would end like this one; anything else may go on from here.
        claim.release(remove=isinstance(error, LearnerError))
        raise
    factor = StoredFactor(task, tiles, executor, claim)
    _living[known] = factor
    return factor


def _factor(task: FactorTask, tiles: FactorTiles, executor: Executor) -> None:
    """A block column after another: first its diagonal tile, then all below it side by side."""
    done = tiles.present()
    n_blocks = len(tiles.starts) - 1
    for j in range(n_blocks):
        for batch in ([j], range(j + 1, n_blocks)):
            tasks = [task.at(i, j) for i in batch if (i, j) not in done]
            for _ in _run(executor, compute_factor_tile, tasks):
                pass


def _run(
    executor: Executor, function: Callable[[FactorTask], Result], tasks: Iterable[FactorTask]
) -> Iterator[tuple[FactorTask, Result]]:
    with one_blas_thread(), closing(executor.run(function, tasks)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, (LearnerError, ClusterError)):
                raise outcome.error
            if outcome.error is not None or outcome.result is None:
                raise RunError(
                    f"tile ({outcome.task.i}, {outcome.task.j}) of the factor {outcome.task.scratch} failed: "
                    f"{outcome.error}",
                    advice="what was finished is kept, run it again to go on",
                ) from outcome.error
            yield outcome.task, outcome.result


def _create(scratch: str, store: TileStore, arrays: dict[str, NDArray[Any]]) -> None:
    block = store.layout.rows.block_rows
    n_blocks = -(-len(arrays["rows"]) // block)
    with storage_errors(scratch), GroupWriter(scratch) as writer:
        write_arrays(writer.group, arrays)
        NewArray((n_blocks * block,) * 2, (block, block), np.float64, np.nan).create(writer.group, FACTOR)
        writer.commit({"gramline": "factor"})


def _digest(store: TileStore, arrays: dict[str, NDArray[Any]]) -> str:
    state = hashlib.blake2b(store.identity.encode(), digest_size=12)
    for array in arrays.values():
        state.update(array.data)
    return state.hexdigest()
