"""A stored Gram matrix for other programs: the full matrix, mirrored and without padding, as .npy or plain Zarr."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, open_memmap

from gramline.pipeline.errors import StoreError, StoreTakenError
from gramline.pipeline.executors.base import Executor, StartsTasks
from gramline.pipeline.executors.choice import choose_executor
from gramline.pipeline.files import write_then_rename
from gramline.pipeline.gram.export_task import export_on_workers, regular_bands, write_chunks
from gramline.pipeline.gram.store import absolute
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.storage.groups import NewArray, group_exists, require_export_or_nothing
from gramline.pipeline.storage.places import EXPORTED, is_in_memory, is_local, storage_errors
from gramline.pipeline.storage.writer import GroupWriter


def export_gram(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    client: Any = None,
    executor: Executor | None = None,
) -> None:
    """Write the Gram matrix at `path` to `target`, a .npy file or a .zarr array; it appears whole or not at all.

    Parameters
    ----------
    path : of a store that is complete
    target : the file or array of shape (n_rows, n_columns), mirrored and without padding, in the dtype of the store
    overwrite : replace an earlier export: a .zarr array that bears its mark, or any .npy file, which cannot bear one
    client, executor : the workers of a Dask client, or an executor, which see store and target; this process by default

    >>> import tempfile
    >>> import numpy as np
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, build_gram, export_gram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = build_gram(SequenceLabeling(c=1.0), Corpus.from_sequences([["a"], ["a"]]), f"{folder}/a.gram.zarr")
    ...     export_gram(f"{folder}/a.gram.zarr", f"{folder}/a.npy")
    ...     np.load(f"{folder}/a.npy")
    array([[1., 1.],
           [1., 1.]])
    """
    gram, url = StoredGram.open(path), absolute(target)
    runner = choose_executor(client, executor)
    check_target(gram.path, url, overwrite=overwrite)
    workers = None if is_in_memory(url) or is_in_memory(gram.path) or not isinstance(runner, StartsTasks) else runner
    if url.endswith(".npy"):
        _to_npy(gram, Path(url), workers)
    else:
        _to_zarr(gram, url, workers, overwrite=overwrite)


def check_target(path: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a `target` that the store at `path` may not be exported to; only an export is ever replaced."""
    url = absolute(target)
    if url == absolute(path):
        raise StoreError(f"{url} is the store itself", advice="choose another name for the export")
    if url.endswith(".npy"):
        if not is_local(url):
            advice = "give a path, or a .zarr array"
            raise StoreError(f"{url} is a url, but a .npy file is kept on this machine", advice=advice)
        is_there = _require_npy_or_nothing(Path(url))
    elif url.endswith(".zarr"):
        is_there = require_export_or_nothing(url) if overwrite else group_exists(url)
    else:
        raise StoreError(f"an export is a .npy file or a .zarr array, not {url}", advice="choose such a name")
    if is_there and not overwrite:
        raise StoreTakenError(url)


def _require_npy_or_nothing(path: Path) -> bool:
    """Refuse a path to write to where something else than an array is; True when one is there."""
    is_array = False
    with storage_errors(str(path)):
        if not path.exists():
            return False
        if path.is_file():
            with path.open("rb") as file:
                is_array = file.read(len(MAGIC_PREFIX)) == MAGIC_PREFIX
    if not is_array:
        raise StoreError(f"{path} is not an exported array", advice="choose another path, or remove it")
    return True


def _to_npy(gram: StoredGram, target: Path, workers: Any) -> None:
    with storage_errors(str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        with write_then_rename(target) as partial:
            matrix = open_memmap(partial, mode="w+", dtype=gram.dtype, shape=gram.shape)
            with partial.open("r+b") as file:
                # Writing to a map of a file that the disk has no room for kills the process; asking first is an error.
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
            if workers is not None:
                matrix.flush()
                export_on_workers(gram, str(partial.absolute()), workers, first_byte=matrix.offset)
                return
            for rows, cols, tile in gram.blocks():
                matrix[rows, cols] = tile
            matrix.flush()


def _to_zarr(gram: StoredGram, url: str, workers: Any, *, overwrite: bool) -> None:
    with storage_errors(url), GroupWriter(url) as writer:
        chunks = (gram.layout.rows.block_rows, gram.layout.cols.block_rows)
        target = writer.create_array(NewArray(gram.shape, chunks, gram.dtype, np.nan, "lz4"), EXPORTED)
        if workers is not None:
            export_on_workers(gram, writer.array_url, workers)
        else:
            for band in range(len(list(regular_bands(gram)))):
                write_chunks(gram, target, band)
        if not writer.commit(overwrite=overwrite):
            raise StoreTakenError(url)
