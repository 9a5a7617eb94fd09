"""What runs on a worker: one tile computed and written. The store is opened once per process, blocks are cached."""

from __future__ import annotations

import os
import socket
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, local
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Packed
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.counts import counted
from gramline.pipeline.errors import StoreError
from gramline.pipeline.events import TileReport
from gramline.pipeline.gram.plan import TileTask
from gramline.pipeline.gram.store import TileStore

STORES_KEPT = 4
BLOCK_CACHE_BYTES = 64_000_000  # of corpus blocks kept per process, besides those in use


Entry = TypeVar("Entry")


class Cache(Generic[Entry]):
    """The last few things asked for, by key; safe from many threads, each thing made by one of them only."""

    def __init__(self, capacity: int, weigh: Callable[[Entry], int] = lambda _entry: 1) -> None:
        """Keeps entries of at most `capacity` weight together, and always the latest one."""
        self._capacity, self._weigh = capacity, weigh
        self._entries: OrderedDict[Hashable, tuple[Entry, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        with self._lock:
            if key not in self._entries:
                made = make()
                self._entries[key] = made, self._weigh(made)
                self._weight += self._entries[key][1]
                while self._weight > self._capacity and len(self._entries) > 1:
                    _, (_, weight) = self._entries.popitem(last=False)
                    self._weight -= weight
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._weight = 0


def packed_bytes(packed: Packed) -> int:
    """Bytes of a packed corpus in memory."""
    return sum(array.nbytes for array in packed.arrays().values())


class _Memory(local):
    """What every thread keeps for itself."""

    chunk: NDArray[Any] | None = None


_stores: Cache[TileStore] = Cache(STORES_KEPT)
_blocks: Cache[Packed] = Cache(BLOCK_CACHE_BYTES, packed_bytes)
_memory = _Memory()


def compute_tile(task: TileTask) -> TileReport:
    """Compute a tile from two blocks of the store's own corpora, and write it as one whole chunk."""
    begin = perf_counter()
    store = planned_store(task.store, task.identity)
    rows = cached_block(store, task.i, of_columns=False)
    cols = cached_block(store, task.j, of_columns=not store.layout.is_symmetric)
    loaded = perf_counter()
    chunk = _chunk_memory(store)
    with one_blas_thread():
        try:
            n_rows, n_cols = counted(store.kernel.tile(rows, cols, chunk.dtype, chunk)).shape
        except KernelOverflowError as error:
            raise with_corpus_indices(error, store, task) from None
    chunk[n_rows:] = chunk[:n_rows, n_cols:] = 0.0  # padding
    computed = perf_counter()
    store.write_tile(task.i, task.j, chunk)
    written = perf_counter()
    return TileReport(
        task.i,
        task.j,
        loaded - begin,
        computed - loaded,
        written - computed,
        store.tiles.tile_bytes,
        f"{socket.gethostname()}:{os.getpid()}",
    )


def _chunk_memory(store: TileStore) -> NDArray[Any]:
    """Room for one whole tile, padding included: the same for all tiles of a thread."""
    tiles, chunk = store.tiles, _memory.chunk
    if chunk is None or chunk.shape != tiles.chunks or chunk.dtype != tiles.dtype:
        chunk = _memory.chunk = np.empty(tiles.chunks, tiles.dtype)
    return chunk


def keep_store_open(store: TileStore) -> None:
    """Tasks that run in this process use this one instead of opening their own."""
    _stores.get((store.url, store.identity), lambda: store)


def planned_store(url: str, identity: str) -> TileStore:
    """The store of a plan, opened once per process; one that changed since it was planned is refused."""
    store = _stores.get((url, identity), lambda: TileStore(url))
    if store.identity != identity:
        _stores.clear()
        raise StoreError(f"{url} was replaced meanwhile", advice="run the command again")
    return store


def cached_block(store: TileStore, block: int, *, of_columns: bool) -> Packed:
    """A block of the store's corpora, kept for the next tiles."""
    return _blocks.get(
        (store.url, store.identity, of_columns, block), lambda: store.read_block(block, of_columns=of_columns)
    )


def with_corpus_indices(error: KernelOverflowError, store: TileStore, task: TileTask) -> KernelOverflowError:
    """The error with the structures counted in their corpora instead of in the blocks of this tile."""
    error.row += store.layout.rows.structures(task.i).start
    if error.column is not None:
        error.column += store.layout.cols.structures(task.j).start
    error.is_cross = not store.layout.is_symmetric
    return error
