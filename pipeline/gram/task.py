"""What runs on a worker: one tile computed and written. The store is opened once per process, blocks are cached."""

from __future__ import annotations

import os
import socket
from threading import local
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import KernelOverflowError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.counts import counted
from gramline.pipeline.errors import StoreError
from gramline.pipeline.events import TileReport
from gramline.pipeline.gram.block_cache import Cache, cached_block
from gramline.pipeline.gram.plan import TileTask
from gramline.pipeline.gram.store import TileStore, in_corpus

STORES_KEPT = 4


class _Memory(local):
    """What every thread keeps for itself."""

    chunk: NDArray[Any] | None = None


_stores: Cache[TileStore] = Cache(STORES_KEPT)
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
            raise in_corpus(error, store.layout, task.i, task.j) from None
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
