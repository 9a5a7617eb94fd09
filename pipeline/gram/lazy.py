"""A stored Gram matrix as a lazy dask array: one chunk per block of the full, mirrored matrix, without padding."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import planned_store


def stored_gram_array(store: TileStore) -> Any:
    """The full matrix; a chunk is read where and when it is computed."""
    layout = store.layout
    chunks = (
        tuple(np.diff(layout.rows.block_starts).tolist()),
        tuple(np.diff(layout.cols.block_starts).tolist()),
    )
    name = f"gram-{tokenize(store.url, store.identity)}"
    graph = {
        (name, i, j): (read_mirrored, store.url, store.identity, i, j)
        for i in range(layout.rows.n_blocks)
        for j in range(layout.cols.n_blocks)
    }
    return da.Array(graph, name, chunks, dtype=store.tiles.dtype)


def read_mirrored(url: str, identity: str, i: int, j: int) -> NDArray[Any]:
    """Block (i, j) of the full matrix."""
    store = planned_store(url, identity)
    if store.layout.is_symmetric and i > j:
        return store.read_tile(j, i).T
    return store.read_tile(i, j)
