"""A packed corpus cut into blocks inside a group, so that a worker reads its own block and nothing else.

Every array of the packed corpus becomes one array with a row per block, one chunk per row, as wide as the widest
block; `extent` says how much of each row is meant. What was never written, or was lost, reads as a value that no
packed corpus contains, and is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed, Vocabulary
from gramline.learners.operators.layout import BlockLayout
from gramline.pipeline.corpus.packed import (
    NAMES,
    block_from_arrays,
    vocabulary_from_arrays,
    vocabulary_to_arrays,
)
from gramline.pipeline.errors import StoreDamagedError, StoreError, first_line
from gramline.pipeline.storage.groups import Group, NewArray, digest, open_array, open_group, read_array, write_arrays
from gramline.pipeline.storage.places import shared_bucket

CORPUS = "the corpus kept in"  # which part of a store is damaged
BATCH_BYTES = 1 << 26  # of padded rows written at a time


def write_blocks(
    group: Group, folder: str, packed: Packed, layout: BlockLayout, since: Vocabulary | None = None
) -> dict[str, Any]:
    """Write a prepared corpus in the blocks of its layout under `folder`; what it returns opens it again.

    In an object store somebody else may be writing there: a number of its own makes it a folder that nobody else has.
    """
    if shared_bucket(group) is not None:
        folder = f"{folder}-{uuid4().hex}"
    blocks = [packed.structures(*_span(layout, block)).arrays() for block in range(layout.n_blocks)]
    names = sorted(packed.arrays())
    extent = np.array([[len(block[name]) for name in names] for block in blocks], np.int64).reshape(-1, len(names))
    plain = {
        "extent": extent,
        "lengths": layout.lengths,
        "block_structures": layout.block_structures,
        **vocabulary_to_arrays(packed.vocabulary, since),
    }
    write_arrays(group, plain, prefix=f"{folder}/")
    for column, name in enumerate(names):
        rows = [block[name] for block in blocks]
        _write_rows(group, f"{folder}/{name}", rows, max(1, int(extent[:, column].max(initial=0))))
    return {
        "folder": folder,
        "kind": packed.kind,
        "names": names,
        "block_rows": layout.block_rows,
        "n_structures": layout.n_structures,
        "n_blocks": layout.n_blocks,
        "digests": {name: digest(array) for name, array in plain.items()},
    }


def _span(layout: BlockLayout, block: int) -> tuple[int, int]:
    structures = layout.structures(block)
    return structures.start, structures.stop


def _write_rows(group: Group, name: str, rows: Sequence[NDArray[Any]], width: int) -> None:
    tail, dtype = rows[0].shape[1:], rows[0].dtype
    wide = (width, *(max(1, size) for size in tail))
    fill = _never(dtype)
    target = NewArray((len(rows), *wide), (1, *wide), dtype, fill, "lz4").create(group, name)
    step = max(1, BATCH_BYTES // max(1, dtype.itemsize * int(np.prod(wide))))
    for first in range(0, len(rows), step):
        part = rows[first : first + step]
        padded = np.full((len(part), *wide), 0, dtype)
        for row, array in zip(padded, part, strict=True):
            row[(slice(len(array)), *(slice(size) for size in tail))] = array
        target[first : first + len(part)] = padded


def _never(dtype: np.dtype[Any]) -> Any:
    """A value that no packed corpus contains: NaN, or the far end of the integers."""
    if dtype.kind == "f":
        return np.nan
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


class PackedBlocks:
    """Reads the blocks of one segment of a corpus."""

    def __init__(self, url: str, description: dict[str, Any], since: Vocabulary | None = None) -> None:
        self.url = url
        self.folder = str(description["folder"])
        self.kind = str(description["kind"])
        self._names = [str(name) for name in description["names"]]
        group = open_group(url)
        plain = {name: read_array(group, f"{self.folder}/{name}", url) for name in description["digests"]}
        for name, expected in description["digests"].items():
            if digest(plain[name]) != expected:
                raise StoreDamagedError(f"{self.folder}/{name} is not what was written", url)
        self._extent = plain["extent"]
        self.layout = BlockLayout(plain["lengths"], plain["block_structures"], int(description["block_rows"]))
        try:
            self.vocabulary = vocabulary_from_arrays(plain, since)
        except StoreError as error:
            raise StoreDamagedError(error.problem, url, part=CORPUS) from None
        self._arrays = {name: open_array(group, f"{self.folder}/{name}", url) for name in self._names}
        self._check_extents()

    def _check_extents(self) -> None:
        """Every array has a row per block, and no block means more of its row than there is."""
        whole = (self._extent, self.layout.lengths, self.layout.block_structures)
        is_sound = all(array.dtype == np.int64 for array in whole) and all(array.ndim == 1 for array in whole[1:])
        if not is_sound or self._extent.shape != (len(self), len(self._names)) or (self._extent < 0).any():
            raise StoreDamagedError("the extents of its blocks do not fit them", self.url)
        for name, extent in zip(self._names, self._extent.T, strict=True):
            array = self._arrays[name]
            rows, width = (*array.shape, 0, 0)[:2]
            if rows != len(self) or extent.max(initial=0) > width or array.dtype.kind not in "iuf":
                what = f"{array.dtype} {array.shape} for {len(self)} blocks"
                raise StoreDamagedError(f"{self.folder}/{name} is {what}", self.url)

    def __len__(self) -> int:
        return self.layout.n_blocks

    def block_bytes(self) -> NDArray[np.int64]:
        """Bytes of each block in memory, shape (n_blocks,)."""
        per_item = [array.dtype.itemsize * int(np.prod(array.shape[2:])) for array in self._arrays.values()]
        total: NDArray[np.int64] = self._extent @ np.array(per_item, np.int64)
        return total

    def read(self, block: int, vocabulary: Vocabulary) -> Packed:
        """One block as a packed corpus of its own; `vocabulary` is the one of the whole corpus."""
        arrays = {}
        for name, extent in zip(self._names, self._extent[block], strict=True):
            try:
                array = np.asarray(self._arrays[name][block])[:extent]
            except (ValueError, RuntimeError) as error:
                raise self._damaged(block, f"{self.folder}/{name}: {first_line(error)}") from None
            lost = _never(array.dtype)
            if np.isnan(array).any() if array.dtype.kind == "f" else (array == lost).any():
                raise self._damaged(block, f"{self.folder}/{name} is missing")
            arrays[name] = array
        try:
            return block_from_arrays(self.kind, arrays, vocabulary)
        except StoreError as error:
            raise self._damaged(block, f"{error.place}{error.problem}") from None

    def _damaged(self, block: int, problem: str) -> StoreDamagedError:
        return StoreDamagedError(f"block {block}: {problem}", self.url, part=CORPUS)


def extends(longer: Vocabulary, shorter: Vocabulary) -> bool:
    """True when every code of `shorter` means the same in `longer`."""
    return all(
        len(getattr(longer, part)) >= len(getattr(shorter, part))
        and getattr(longer, part)[: len(getattr(shorter, part))] == getattr(shorter, part)
        for part in NAMES
    )
