"""Computed tiles that are kept in memory, the least recently used one given up first."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from gramline.learners.arrays import Tile
from gramline.learners.operators.layout import Key


class TileCache:
    """The tiles that were asked for last, at most so many bytes of them; safe from many threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._bytes = capacity, 0
        self._tiles: OrderedDict[Key, Tile] = OrderedDict()
        self._lock = Lock()

    def find(self, key: Key) -> Tile | None:
        with self._lock:
            if key in self._tiles:
                self._tiles.move_to_end(key)
            return self._tiles.get(key)

    def add(self, key: Key, tile: Tile) -> None:
        """Keep a tile, read-only from now on, in place of those that were not asked for the longest."""
        if tile.nbytes > self._capacity:
            return
        tile.flags.writeable = False
        with self._lock:
            if key not in self._tiles:
                self._tiles[key] = tile
                self._bytes += tile.nbytes
            while self._bytes > self._capacity:
                self._bytes -= self._tiles.popitem(last=False)[1].nbytes
