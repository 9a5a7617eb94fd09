"""G @ W by tasks of an executor: each multiplies some of the tiles where they are read.

W and the partial sums travel through a small scratch group beside the store, never through the scheduler. The name of
the group ends in .partial: what a killed program leaves of it is swept with all that killed writers leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.errors import RunError
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.product import TileProduct
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stream import Key, TileReader
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.storage.groups import NewArray, open_array, open_group, read_array, write_arrays
from gramline.pipeline.storage.object_store import storage_errors
from gramline.pipeline.storage.writer import GroupWriter, remove_group

SPREAD_BYTES = 256 << 20  # of tiles: fewer are multiplied sooner than they are handed out
PARTS_PER_THREAD = 2  # so that a slow worker holds up half as much
FACTOR, PARTS = "factor", "parts"


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
