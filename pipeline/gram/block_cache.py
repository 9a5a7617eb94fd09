"""Things that a process asks for again and again, kept up to a limit: stores, and blocks of corpora and factors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from gramline.kernels.observations.reused import INDEX_BYTES, reused
from gramline.kernels.packing import Packed

if TYPE_CHECKING:
    from gramline.pipeline.gram.store import TileStore

BLOCK_CACHE_BYTES = 64_000_000  # of corpus blocks kept per process, besides those in use

Entry = TypeVar("Entry")


_caches: WeakSet[Cache[Any]] = WeakSet()


class Cache(Generic[Entry]):
    """The last few things asked for, by key; safe from many threads, each thing made by one of them only."""

    def __init__(self, capacity: int, weigh: Callable[[Entry], int] = lambda _entry: 1) -> None:
        """Keeps entries of at most `capacity` weight together, and always the latest one."""
        self._capacity, self._weigh = capacity, weigh
        self._entries: OrderedDict[Hashable, tuple[Entry, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()
        _caches.add(self)

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

    def make_room(self) -> None:
        """Forget what the other caches of this process keep: something large of another kind of work comes next."""
        for cache in list(_caches):
            if cache is not self:
                cache.clear()


def packed_bytes(packed: Packed) -> int:
    """Bytes of a packed corpus in memory."""
    return sum(array.nbytes for array in packed.arrays().values())


def _block_bytes(packed: Packed) -> int:
    """With the index of its features, about."""
    return packed_bytes(packed) + (INDEX_BYTES * len(packed.features.indices))


_blocks: Cache[Packed] = Cache(BLOCK_CACHE_BYTES, _block_bytes)


def cached_block(store: TileStore, block: int, *, of_columns: bool) -> Packed:
    """A block of the store's corpora, kept for the next tiles."""
    return _blocks.get(
        (store.url, store.identity, of_columns, block), lambda: reused(store.read_block(block, of_columns=of_columns))
    )
