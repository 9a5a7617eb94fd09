"""Tiles read one after another by a thread that keeps ahead of whoever computes with them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.gram.store import TileStore

AHEAD = 2  # tiles read before they are asked for
BUFFERS_KEPT = AHEAD + 2  # those, the one in use and the one being filled

Key = tuple[int, int]


class TileReader:
    """Reads tiles of a store into memory that is used again once nobody holds a tile in it any more.

    Fresh memory for every tile costs as much in page faults as reading the tile does.
    """

    def __init__(self, store: TileStore) -> None:
        self._store = store
        self._buffers: list[NDArray[np.uint8]] = []
        self._lock = Lock()
        self._unused = 0  # references to a buffer that no tile lives in, as `_references` counts them

    def read(self, i: int, j: int, *, check_finite: bool = True) -> NDArray[Any]:
        """A stored tile; see `TileStore.read_tile`."""
        return self._store.read_tile(i, j, self._free(), check_finite=check_finite)

    def _free(self) -> NDArray[np.uint8] | None:
        size = self._store.tiles.buffer_bytes
        if size is None:
            return None
        with self._lock:
            for number in range(len(self._buffers)):
                if self._references(number) <= self._unused:
                    return self._buffers[number]
            if len(self._buffers) == BUFFERS_KEPT:
                return np.empty(size, np.uint8)
            self._buffers.append(np.empty(size, np.uint8))
            self._unused = self._references(-1)
            return self._buffers[-1]

    def _references(self, number: int) -> int:
        """A view of an array keeps it alive: as long as a tile exists, its buffer counts one reference more."""
        return sys.getrefcount(self._buffers[number])

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
