"""Tiles read one after another by a thread that keeps ahead of whoever computes with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.gram.store import TileStore

AHEAD = 2  # tiles read before they are asked for
BUFFERS_KEPT = AHEAD + 2  # those, the one in use and the one being filled

Key = tuple[int, int]


class TileReader:
    """Reads tiles of a store into buffers that it lends; a buffer comes back when no view of its tile is left.

    Fresh memory for every tile costs as much in page faults as reading the tile does.
    """

    def __init__(self, store: TileStore) -> None:
        self._store = store
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=BUFFERS_KEPT)

    def read(self, i: int, j: int, *, check_finite: bool = True) -> NDArray[Any]:
        """A stored tile; see `TileStore.read_tile`."""
        return self._store.read_tile(i, j, self._lend(), check_finite=check_finite)

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
