"""G @ W from stored tiles, one tile at a time: which are needed, read ahead, and what each of them adds.

By tasks of an executor, each multiplies some of the tiles where they are read. W and the partial sums travel through a
small scratch group beside the store, never through the scheduler. The name of the group ends in .partial: what a killed
program leaves of it is swept with all that killed writers leave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import BlockLayout, GramLayout, Key
from gramline.pipeline.errors import RunError
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.storage.groups import NewArray, open_array, open_group, read_array, write_arrays
from gramline.pipeline.storage.places import storage_errors
from gramline.pipeline.storage.writer import GroupWriter, remove_group

AHEAD = 2  # tiles read before they are asked for
BUFFERS_KEPT = AHEAD + 2  # those, the one in use and the one being filled

STRIP_BYTES = 1 << 21  # of a tile in the product's precision: stays in the cache for both products
SMALL_PRODUCT = 1_000_000  # multiplications of a float32 product that OpenBLAS makes without a copy of the tile first
LEAST_ROWS = 16  # of a strip
SPREAD_BYTES = 256 << 20  # of tiles: fewer are multiplied sooner than they are handed out
PARTS_PER_THREAD = 2  # so that a slow worker holds up half as much
FACTOR, PARTS = "factor", "parts"


class TileReader:
    """Reads tiles of a store into buffers that it lends; a buffer comes back when no view of its tile is left.

    Fresh memory for every tile costs as much in page faults as reading the tile does.
    """

    def __init__(self, store: TileStore) -> None:
        self._store = store
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=BUFFERS_KEPT)

    def read(self, i: int, j: int, *, check_finite: bool = True) -> NDArray[Any]:
        """A stored tile; see `TileStore.read_tile`."""
        buffer = self._lend() if self._store.keeps(i, j) else None
        return self._store.read_tile(i, j, buffer, check_finite=check_finite)

    def _lend(self) -> NDArray[np.uint8] | None:
        """A buffer for one tile; None where tiles always come in memory of their own."""
        size = self._store.tiles.buffer_bytes
        if size is None:
            return None
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.empty(size, np.uint8)
        # Every view of `lent` refers to it, and not to `memory`: when it is collected, nobody sees the memory any more.
        lent = np.frombuffer(memory.data, np.uint8)
        finalize(lent, self._free.append, memory).atexit = False
        return lent

    def stream(self, keys: Iterable[Key], *, check_finite: bool = True) -> Iterator[tuple[Key, NDArray[Any]]]:
        """(key, tile) in the order of `keys`, at most AHEAD + 1 of them in memory besides those the caller keeps."""
        pending: deque[tuple[Key, Future[NDArray[Any]]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="tile-reader") as pool:
            try:
                for key in keys:
                    pending.append((key, pool.submit(self.read, *key, check_finite=check_finite)))
                    if len(pending) > AHEAD:
                        yield _next(pending)
                while pending:
                    yield _next(pending)
            finally:
                for _, tile in pending:
                    tile.cancel()


def _next(pending: deque[tuple[Key, Future[NDArray[Any]]]]) -> tuple[Key, NDArray[Any]]:
    """In a function of its own, so that the stream itself keeps no reference to the tile it handed out."""
    key, tile = pending.popleft()
    return key, tile.result()


class TileProduct:
    """The sum of tile products for G @ W, or G.T @ W; thin matrices are kept transposed, (k, n), for BLAS' sake.

    A strip of rows of a tile is turned into the precision of W once, and multiplied from both sides while it is in
    the cache: out[i] += T W[j], and for a mirrored tile out[j] += T^T W[i].
    """

    def __init__(self, layout: GramLayout, W: NDArray[Any], *, transpose: bool = False) -> None:
        self._layout = layout
        self._forward = layout.is_symmetric or not transpose  # out[i] += T W[j]
        self._backward = layout.is_symmetric or transpose  # out[j] += T^T W[i]
        n_out, n_in = layout.shape if self._forward else layout.shape[::-1]
        if W.ndim != 2 or len(W) != n_in:
            raise LearnerError(f"the matrix to multiply has shape {W.shape}, but it needs {n_in} rows")
        precision = np.float32 if W.dtype == np.float32 else np.float64
        self._thin: NDArray[Any] = np.ascontiguousarray(W.T, precision)  # shape (k, n_in)
        self._out = np.zeros((W.shape[1], n_out))
        self._filled = _filled_blocks(layout.cols if self._forward else layout.rows, self._thin)
        self._strip: NDArray[Any] = np.empty(0, precision)

    def tiles(self) -> list[Key]:
        """Stored tiles that meet a row of W that is not zero, in row order."""
        return [(i, j) for i, j in self._layout.tiles() if self._needs_forward(j) or self._needs_backward(i, j)]

    def _needs_forward(self, j: int) -> bool:
        return self._forward and bool(self._filled[j])

    def _needs_backward(self, i: int, j: int) -> bool:
        return self._backward and bool(self._filled[i]) and not (self._layout.is_symmetric and i == j)

    def add(self, i: int, j: int, tile: NDArray[Any]) -> None:
        """Add what stored tile (i, j) contributes."""
        rows, cols = self._layout.rows.rows(i), self._layout.cols.rows(j)
        forward, backward = self._needs_forward(j), self._needs_backward(i, j)
        step = self._strip_rows(tile.shape[1])
        right = np.ascontiguousarray(self._thin[:, cols]) if forward else self._thin[:, :0]
        below = np.zeros((len(self._thin), tile.shape[1])) if backward else None
        for first in range(0, len(tile), step):
            strip = self._converted(tile[first : first + step])
            here = slice(rows.start + first, rows.start + first + len(strip))
            if forward:
                self._out[:, here] += right @ strip.T
            if below is not None:
                below += self._thin[:, here] @ strip
        if below is not None:
            self._out[:, cols] += below

    def _strip_rows(self, width: int) -> int:
        """Rows of a tile of that width to multiply at a time."""
        small = SMALL_PRODUCT // max(1, len(self._thin) * width)
        if self._thin.dtype == np.float32 and small >= LEAST_ROWS:
            return small
        return max(LEAST_ROWS, STRIP_BYTES // (self._thin.itemsize * max(1, width)))

    def _converted(self, part: NDArray[Any]) -> NDArray[Any]:
        if part.dtype == self._thin.dtype:
            return part
        if self._strip.size < part.size:
            self._strip = np.empty(part.size, self._thin.dtype)
        strip = self._strip[: part.size].reshape(part.shape)
        np.copyto(strip, part, casting="same_kind")
        return strip

    def result(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._out.T)


def _filled_blocks(layout: BlockLayout, thin: NDArray[Any]) -> NDArray[np.bool_]:
    """Which blocks of W have a row that is not zero, shape (n_blocks,)."""
    filled: NDArray[np.bool_] = np.any(thin, axis=0)
    return np.array([bool(filled[layout.rows(block)].any()) for block in range(layout.n_blocks)], np.bool_)


@dataclass(frozen=True)
class ProductTask:
    """Some tiles of a store to multiply with the W of a scratch group; the sum becomes part `number` there."""

    store: str
    identity: str
    scratch: str
    number: int
    keys: tuple[Key, ...]
    transpose: bool


def is_worth_spreading(store: TileStore, keys: Sequence[Key], executor: Executor) -> bool:
    """Whether several threads of an executor would be done with these tiles sooner than this process."""
    tile_bytes = store.tiles.dtype.itemsize * store.layout.rows.block_rows * store.layout.cols.block_rows
    return len(keys) * tile_bytes >= SPREAD_BYTES and executor.n_threads > 1


def spread_product(
    store: TileStore, W: NDArray[Any], keys: Sequence[Key], executor: Executor, *, transpose: bool
) -> NDArray[np.float64]:
    """The sum over the tiles `keys` of what each adds to G @ W (or G.T @ W), added up in a fixed order."""
    n_parts = min(len(keys), PARTS_PER_THREAD * executor.n_threads)
    bounds = np.linspace(0, len(keys), n_parts + 1).astype(int)
    n_out = store.layout.shape[1 if transpose and not store.layout.is_symmetric else 0]
    scratch = f"{store.url}.product-{uuid4().hex[:12]}.partial"
    _create(scratch, W, (n_parts, n_out, W.shape[1]))
    try:
        groups = [tuple(keys[first:last]) for first, last in pairwise(bounds)]
        tasks = [
            ProductTask(store.url, store.identity, scratch, part, group, transpose) for part, group in enumerate(groups)
        ]
        with closing(executor.run(multiply_tiles, tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
        parts = open_array(open_group(scratch), PARTS, scratch)
        total = np.zeros((n_out, W.shape[1]))
        for part in range(n_parts):
            total += np.asarray(parts[part])
        if np.isnan(total).any() and np.isfinite(W).all():
            raise RunError(f"a part of the product in {scratch} was lost", advice="run it again")
        return total
    finally:
        remove_group(scratch)


def multiply_tiles(task: ProductTask) -> int:
    """Multiply the tiles of one part and write their sum as one whole chunk; how many tiles were read."""
    store = planned_store(task.store, task.identity)
    group = open_group(task.scratch)
    product = TileProduct(store.layout, read_array(group, FACTOR, task.scratch), transpose=task.transpose)
    with one_blas_thread():
        for key, tile in TileReader(store).stream(task.keys):
            product.add(*key, tile)
    open_array(group, PARTS, task.scratch)[task.number] = product.result()
    return len(task.keys)


def _create(scratch: str, W: NDArray[Any], shape: tuple[int, int, int]) -> None:
    with storage_errors(scratch), GroupWriter(scratch) as writer:
        write_arrays(writer.group, {FACTOR: W})
        NewArray(shape, (1, *shape[1:]), np.float64, np.nan).create(writer.group, PARTS)
        writer.commit({"gramline": "product"})
