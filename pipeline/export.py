"""A stored Gram matrix for other programs: the full matrix, mirrored and without padding, as .npy or plain Zarr."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from gramline.pipeline.array_group import GroupWriter, group_exists
from gramline.pipeline.errors import StoreError
from gramline.pipeline.store import absolute, guarded
from gramline.pipeline.stored_gram import StoredGram


def export_gram(path: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the Gram matrix at `path` to `target`, a .npy file or a .zarr array; it appears whole or not at all."""
    gram, url = StoredGram.open(path), absolute(target)
    if url == gram.path:
        raise StoreError(f"{url} is the store itself; choose another name for the export")
    if url.endswith(".npy"):
        _to_npy(gram, Path(url), overwrite=overwrite)
    elif url.endswith(".zarr"):
        chunks = (gram.layout.rows.block_rows, gram.layout.cols.block_rows)
        guarded(url, lambda: write_plain_array(url, gram.shape, chunks, gram.dtype, _chunks(gram), overwrite=overwrite))
    else:
        raise StoreError(f"an export is a .npy file or a .zarr array, not {url}; choose such a name")


def _to_npy(gram: StoredGram, target: Path, *, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise StoreError(f"{target} exists already; choose another name or remove it")
    staged = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")

    def write() -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        header = open_memmap(staged, mode="w+", dtype=gram.dtype, shape=gram.shape)
        with staged.open("r+b") as file:
            # Writing to a map of a file that the disk has no room for kills the process; asking first is an error.
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        for rows, cols, tile in gram.blocks():
            header[rows, cols] = tile
        header.flush()
        staged.rename(target)

    try:
        guarded(str(target), write)
    finally:
        staged.unlink(missing_ok=True)


def _chunks(gram: StoredGram) -> Iterator[tuple[tuple[int, int], NDArray[Any]]]:
    """The full matrix in chunks of a regular grid; blocks without their padding do not stand on one."""
    height, width = gram.layout.rows.block_rows, gram.layout.cols.block_rows
    for i, first_row in enumerate(range(0, gram.shape[0], height)):
        rows = np.arange(first_row, min(first_row + height, gram.shape[0]))
        for j, first_col in enumerate(range(0, gram.shape[1], width)):
            yield (i, j), gram.select(rows, np.arange(first_col, min(first_col + width, gram.shape[1])))


def write_plain_array(
    url: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: Any,
    pieces: Iterable[tuple[tuple[int, ...], NDArray[Any]]],
    *,
    overwrite: bool = False,
) -> None:
    """An array of its own at `url`, from its chunks; it appears whole or not at all."""
    if not overwrite and group_exists(url):
        raise StoreError(f"{url} exists already; choose another path or remove it")
    writer = GroupWriter(url)
    try:
        target = writer.become_array(shape, chunks, dtype)
        for place, piece in pieces:
            target.set_block_selection(place, piece)
        if not writer.commit({}, overwrite=overwrite):
            raise StoreError(f"{url} exists already; choose another path or remove it")
    finally:
        writer.discard()
