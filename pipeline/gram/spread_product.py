"""G @ W by the workers of a cluster: squares of tiles, each multiplied where its tiles are read or computed.

W and the sums travel as letters beside the store, never through the scheduler, and a worker reads only the rows of W
that its tiles meet. A square goes to the worker that had it in the product before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import Key
from gramline.pipeline.executors.base import Executor, StartsTasks
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.gram.product import Thin, TileProduct, TileReader, Total, square_side, squares
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.storage.letters import Letters

SPREAD_BYTES = 256 << 20  # of tiles: fewer are multiplied sooner than they are handed out
READERS_KEPT = 2
FACTOR_CACHE_BYTES = 32_000_000  # of W that a worker remembers


@dataclass(frozen=True)
class ProductTask:
    """Some tiles of a store to multiply with the W of some letters; what they add becomes a letter there."""

    store: str
    identity: str
    letters: str
    number: int
    keys: tuple[Key, ...]
    width: int
    precision: str
    transpose: bool

    may_run_twice: ClassVar[bool] = True
    may_be_bundled: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, Key]:
        return self.identity, self.keys[0]


def is_worth_spreading(store: TileStore, keys: Sequence[Key], executor: Executor) -> bool:
    """Whether other processes, or several threads, would be done with these tiles sooner than this process."""
    tile_bytes = store.tiles.dtype.itemsize * store.layout.rows.block_rows * store.layout.cols.block_rows
    has_others = isinstance(executor, StartsTasks) or executor.n_threads > 1
    return has_others and len(keys) * tile_bytes >= SPREAD_BYTES


def spread_product(
    store: TileStore, product: TileProduct, executor: Executor, *, transpose: bool
) -> NDArray[np.float64]:
    """What all tiles add to G @ W (or G.T @ W), as in one process; `product` has the blocks of W."""
    letters = Letters.beside(store.url, "product")
    width, precision = product.width, product.dtype.name
    side = square_side(store.layout)
    try:
        by_group: dict[int, dict[str, Thin]] = {}
        for block, thin in product.thin.items():
            by_group.setdefault(block // side, {})[str(block)] = thin
        for group, blocks in by_group.items():
            letters.write(_factor(group), blocks)
        tasks = [
            ProductTask(store.url, store.identity, letters.url, number, keys, width, precision, transpose)
            for number, keys in enumerate(squares(store.layout, product.tiles()))
        ]
        with closing(executor.run(multiply_tiles, tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
        total = Total(store.layout, width, transpose=transpose)
        for task in tasks:
            sums = letters.read(_answer(task.number))
            total.add({int(block): part for block, part in sums.items()})
        return total.result()
    finally:
        letters.remove_all()


def multiply_tiles(task: ProductTask) -> int:
    """On a worker: multiply the tiles of one square, leave their sums as a letter; how many tiles it was."""
    store, reader = shared_reader(task.store, task.identity)
    layout, letters = store.layout, Letters(task.letters)
    side = square_side(layout)
    forward, backward = layout.is_symmetric or not task.transpose, layout.is_symmetric or task.transpose
    groups = {key[1] // side for key in task.keys if forward} | {key[0] // side for key in task.keys if backward}
    thin: dict[int, Thin] = {}
    for group in sorted(groups):
        thin |= _factors.get((task.letters, group), partial(_read_factor, letters, group))
    product = TileProduct.of_blocks(layout, thin, task.width, np.dtype(task.precision), transpose=task.transpose)
    with one_blas_thread():
        for key, tile in reader.stream(task.keys):
            product.add(*key, tile)
    sums = {str(block): part for block, part in sorted(product.taken().items())}
    if any(letters.has(_factor(group)) for group in groups):  # else it is over: somebody else was sooner
        letters.write(_answer(task.number), sums)
    return len(task.keys)


def shared_reader(url: str, identity: str) -> tuple[TileStore, TileReader]:
    """The store of a plan, with one reader for all tasks of this process: it keeps memory for the next tiles."""
    store = planned_store(url, identity)
    return store, _readers.get((url, identity), lambda: TileReader(store))


def _read_factor(letters: Letters, group: int) -> dict[int, Thin]:
    name = _factor(group)
    return {int(block): thin for block, thin in letters.read(name).items()} if letters.has(name) else {}


def _factor(group: int) -> str:
    return f"factor-{group}"


def _answer(number: int) -> str:
    return f"sums-{number}"


_readers: Cache[TileReader] = Cache(READERS_KEPT)
_factors: Cache[dict[int, Thin]] = Cache(
    FACTOR_CACHE_BYTES, lambda blocks: sum(thin.nbytes for thin in blocks.values())
)
