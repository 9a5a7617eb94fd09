"""A band of rows of an exported matrix as a task: whoever does it reads the tiles and writes where the export will be.

Only the band's number travels. In a .npy file every band is written byte by byte, so that bands of other machines are
left alone where they share a page of the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.task import planned_store
from gramline.pipeline.storage.groups import Array, open_lone_array
from gramline.pipeline.storage.places import storage_errors


@dataclass(frozen=True)
class BandTask:
    """One band of rows of the matrix in a store."""

    store: str
    identity: str
    target: str  # where the export is being written: a .npy file, or a Zarr array
    band: int
    first_byte: int | None  # of the numbers in a .npy file; None: an array

    @property
    def title(self) -> str:
        return str(self.band)


def export_on_workers(gram: StoredGram, target: str, executor: Executor, first_byte: int | None = None) -> None:
    """Write all bands; the file or array is there already, empty."""
    n_bands = gram.layout.rows.n_blocks if first_byte is not None else len(list(regular_bands(gram)))
    tasks = (BandTask(gram.path, gram.store.identity, target, band, first_byte) for band in range(n_bands))
    with closing(executor.run(export_band, tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error


def export_band(task: BandTask) -> None:
    """On a worker: one band."""
    gram = StoredGram(planned_store(task.store, task.identity))
    with storage_errors(task.target):
        if task.first_byte is None:
            write_chunks(gram, open_lone_array(task.target), task.band)
        else:
            _write_rows(gram, Path(task.target), task.band, task.first_byte)


def _write_rows(gram: StoredGram, path: Path, band: int, first_byte: int) -> None:
    rows, cols, size = gram.layout.rows.rows(band), gram.layout.cols, gram.dtype.itemsize
    with path.open("r+b", buffering=0) as file:
        for j in range(cols.n_blocks):
            here = cols.rows(j)
            for row, line in enumerate(np.ascontiguousarray(gram.tile(band, j)), start=rows.start):
                os.pwrite(file.fileno(), line.data, first_byte + (row * gram.shape[1] + here.start) * size)


def regular_bands(gram: StoredGram) -> Iterator[NDArray[np.int64]]:
    """The rows of every row of chunks; blocks without their padding form no regular grid, chunks do."""
    height = gram.layout.rows.block_rows
    for first in range(0, gram.shape[0], height):
        yield np.arange(first, min(first + height, gram.shape[0]))


def write_chunks(gram: StoredGram, target: Array, band: int) -> None:
    """One row of chunks of a Zarr array."""
    width = gram.layout.cols.block_rows
    rows = list(regular_bands(gram))[band]
    for j, first in enumerate(range(0, gram.shape[1], width)):
        piece: NDArray[Any] = gram.select(rows, np.arange(first, min(first + width, gram.shape[1])))
        target.set_block_selection((band, j), piece)
