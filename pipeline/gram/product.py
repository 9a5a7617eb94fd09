"""G @ W from stored tiles, one tile at a time: which are needed, read ahead, and what each of them adds.

Tiles are multiplied square by square of the matrix, and what a square adds is summed up before it comes to the rest:
the same sums in the same order, whoever multiplies the squares (`spread_product`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from gramline.learners.errors import LearnerError
from gramline.learners.operators.layout import BlockLayout, GramLayout, Key
from gramline.pipeline.gram.store import TileStore

AHEAD = 2  # tiles read before they are asked for
BUFFERS_KEPT = AHEAD + 2  # those, the one in use and the one being filled

STRIP_BYTES = 1 << 21  # of a tile in the product's precision: stays in the cache for both products
SMALL_PRODUCT = 1_000_000  # multiplications of a float32 product that OpenBLAS makes without a copy of the tile first
LEAST_ROWS = 16  # of a strip
SQUARES_ACROSS = 12  # of the matrix, at least where it has so many blocks
LARGEST_SQUARE = 8  # blocks on a side

Thin = NDArray[Any]  # rows of W of one block, transposed for BLAS' sake, shape (k, n)


class TileReader:
    """Reads tiles of a store into buffers that it lends; a buffer comes back when no view of its tile is left.

    Fresh memory for every tile costs as much in page faults as reading the tile does.
    """

    def __init__(self, store: TileStore) -> None:
        self._store = store
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=BUFFERS_KEPT)

    def read(self, i: int, j: int) -> NDArray[Any]:
        """A stored tile; see `TileStore.read_tile`."""
        buffer = self._lend() if self._store.keeps(i, j) else None
        return self._store.read_tile(i, j, buffer)

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

    def stream(self, keys: Iterable[Key]) -> Iterator[tuple[Key, NDArray[Any]]]:
        """(key, tile) in the order of `keys`, at most AHEAD + 1 of them in memory besides those the caller keeps."""
        pending: deque[tuple[Key, Future[NDArray[Any]]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="tile-reader") as pool:
            try:
                for key in keys:
                    pending.append((key, pool.submit(self.read, *key)))
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


def square_side(layout: GramLayout) -> int:
    """Blocks on a side of a square: so few that there are squares enough for many workers."""
    n_blocks = max(layout.rows.n_blocks, layout.cols.n_blocks)
    return max(1, min(LARGEST_SQUARE, n_blocks // SQUARES_ACROSS))


def squares(layout: GramLayout, keys: Sequence[Key]) -> list[tuple[Key, ...]]:
    """Tiles by squares, in the order of the squares; it follows from the matrix alone."""
    side = square_side(layout)
    by_square: dict[Key, list[Key]] = {}
    for i, j in keys:
        by_square.setdefault((i // side, j // side), []).append((i, j))
    return [tuple(own) for _, own in sorted(by_square.items())]


def thin_blocks(layout: BlockLayout, W: NDArray[Any]) -> dict[int, Thin]:
    """The blocks of W that have a row that is not zero, in the precision of the product."""
    precision = np.float32 if W.dtype == np.float32 else np.float64
    parts = ((block, W[layout.rows(block)]) for block in range(layout.n_blocks))
    return {block: np.ascontiguousarray(part.T, precision) for block, part in parts if part.any()}


class TileProduct:
    """What tiles add to G @ W, or to G.T @ W, block by block of the result.

    A strip of rows of a tile is turned into the precision of W once, and multiplied from both sides while it is in
    the cache: out[i] += T W[j], and for a mirrored tile out[j] += T^T W[i].
    """

    def __init__(self, layout: GramLayout, W: NDArray[Any], *, transpose: bool = False) -> None:
        forward = layout.is_symmetric or not transpose
        n_in = layout.shape[1 if forward else 0]
        if W.ndim != 2 or len(W) != n_in:
            raise LearnerError(f"the matrix to multiply has shape {W.shape}, but it needs {n_in} rows")
        dtype = np.dtype(np.float32 if W.dtype == np.float32 else np.float64)
        self._begin(
            layout, thin_blocks(layout.cols if forward else layout.rows, W), W.shape[1], dtype, transpose=transpose
        )

    @classmethod
    def of_blocks(
        cls, layout: GramLayout, thin: Mapping[int, Thin], width: int, dtype: np.dtype[Any], *, transpose: bool
    ) -> TileProduct:
        """Of some blocks of W; those that are not there are zero."""
        product = cls.__new__(cls)
        product._begin(layout, thin, width, dtype, transpose=transpose)
        return product

    def _begin(
        self, layout: GramLayout, thin: Mapping[int, Thin], width: int, dtype: np.dtype[Any], *, transpose: bool
    ) -> None:
        self._layout, self.thin, self.width, self.dtype = layout, thin, width, dtype
        self._forward = layout.is_symmetric or not transpose  # out[i] += T W[j]
        self._backward = layout.is_symmetric or transpose  # out[j] += T^T W[i]
        self._sums: dict[int, NDArray[np.float64]] = {}
        self._strip: NDArray[Any] = np.empty(0, dtype)

    def tiles(self) -> list[Key]:
        """Stored tiles that meet a row of W that is not zero, in row order."""
        return [(i, j) for i, j in self._layout.tiles() if self._needs_forward(j) or self._needs_backward(i, j)]

    def _needs_forward(self, j: int) -> bool:
        return self._forward and j in self.thin

    def _needs_backward(self, i: int, j: int) -> bool:
        return self._backward and i in self.thin and not (self._layout.is_symmetric and i == j)

    def add(self, i: int, j: int, tile: NDArray[Any]) -> None:
        """Add what stored tile (i, j) contributes."""
        right = self.thin[j] if self._needs_forward(j) else None
        left = self.thin[i] if self._needs_backward(i, j) else None
        step = self._strip_rows(tile.shape[1])
        above = None if right is None else self._sum(i, len(tile))
        below = None if left is None else self._sum(j, tile.shape[1])
        for first in range(0, len(tile), step):
            strip = self._converted(tile[first : first + step])
            here = slice(first, first + len(strip))
            if above is not None and right is not None:
                above[:, here] += right @ strip.T
            if below is not None and left is not None:
                below += left[:, here] @ strip

    def _sum(self, block: int, size: int) -> NDArray[np.float64]:
        if block not in self._sums:
            self._sums[block] = np.zeros((self.width, size))
        return self._sums[block]

    def _strip_rows(self, width: int) -> int:
        """Rows of a tile of that width to multiply at a time."""
        small = SMALL_PRODUCT // max(1, self.width * width)
        if self._strip.dtype == np.float32 and small >= LEAST_ROWS:
            return small
        return max(LEAST_ROWS, STRIP_BYTES // (self._strip.itemsize * max(1, width)))

    def _converted(self, part: NDArray[Any]) -> NDArray[Any]:
        if part.dtype == self._strip.dtype:
            return part
        if self._strip.size < part.size:
            self._strip = np.empty(part.size, self._strip.dtype)
        strip = self._strip[: part.size].reshape(part.shape)
        np.copyto(strip, part, casting="same_kind")
        return strip

    def taken(self) -> dict[int, NDArray[np.float64]]:
        """What was added since this was asked last, by block of the result, shapes (k, n)."""
        sums, self._sums = self._sums, {}
        return sums


class Total:
    """G @ W, square by square."""

    def __init__(self, layout: GramLayout, width: int, *, transpose: bool) -> None:
        self._rows = layout.cols if transpose and not layout.is_symmetric else layout.rows
        self._out = np.zeros((width, self._rows.n_rows))

    def add(self, sums: Mapping[int, NDArray[np.float64]]) -> None:
        for block, part in sums.items():
            self._out[:, self._rows.rows(block)] += part

    def result(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._out.T)
