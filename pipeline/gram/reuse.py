"""A corpus that grew: tiles of its first structures, computed before, are linked into the new store.

Two stores share their leading blocks as far as these hold the same structures. Codes differ, because the larger corpus
has more names; the same names in the same order give the same sums, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.packing import MISSING, Ints, Packed, Vocabulary
from gramline.learners.operators.layout import GramLayout
from gramline.pipeline.errors import StoreError
from gramline.pipeline.gram.spec import GramSpec, counts_labels
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.storage.places import is_local, local_path

NAMED = {"symbols": "symbols", "feature_indices": "features", "tags": "features"}  # arrays of codes: their vocabulary
IGNORED = ("labels",)  # the Gram matrix is free of labels
CACHE_FOLDER, CACHED_STORE = "gramline-cache", "gram.zarr"  # of cross-validations, and a store in one of its folders
MOST_STORES = 20  # that are looked at


class LaidOut(Protocol):
    """A Gram matrix in blocks: a store, or one that is only planned."""

    @property
    def spec(self) -> GramSpec: ...

    @property
    def kernel(self) -> Kernel: ...

    @property
    def layout(self) -> GramLayout: ...

    @property
    def compression(self) -> str: ...

    @property
    def row_vocabulary(self) -> Vocabulary: ...

    def read_block(self, block: int) -> Packed: ...


class Loan(NamedTuple):
    """Tiles that a new store can take from another one."""

    lender: TileStore
    tiles: set[tuple[int, int]]


def best_loan(new: LaidOut, stores: Iterable[TileStore]) -> Loan | None:
    """From the store that has most of them, of those of smaller corpora that this one begins with."""
    n_structures = new.layout.rows.n_structures
    smaller = (store for store in stores if store.layout.rows.n_structures < n_structures)
    loans = (Loan(store, shared_tiles(new, store)) for store in smaller)
    return max((loan for loan in loans if loan.tiles), key=lambda loan: len(loan.tiles), default=None)


def stores_beside(place: str) -> Iterator[TileStore]:
    """Gram stores in the folder of a local path, and in the cache there; the newest ones."""
    if not is_local(place):
        return
    folder = local_path(place).absolute().parent
    places = [*folder.glob("*.zarr"), *(folder / CACHE_FOLDER).glob(f"*/{CACHED_STORE}")]
    for path in sorted(places, key=lambda path: -path.stat().st_mtime)[:MOST_STORES]:
        if path != local_path(place).absolute():
            with suppress(StoreError):
                yield TileStore(str(path))


def link_leading_tiles(new: TileStore, old: TileStore) -> int:
    """Give `new` the tiles that it shares with `old` and does not have; returns how many."""
    wanted = {key for key in shared_tiles(new, old) - new.present() if new.keeps(*key)}
    for i, j in sorted(wanted):
        new.tiles.link(old.tiles, i, j)
    return len(wanted)


def shared_tiles(new: LaidOut, old: TileStore) -> set[tuple[int, int]]:
    """Tiles of `old` that are also those of `new`."""
    n_blocks = shared_blocks(new, old)
    return {(i, j) for i, j in old.present() if i < n_blocks and j < n_blocks}


def shared_blocks(new: LaidOut, old: LaidOut) -> int:
    """How many leading blocks hold the same structures in both, for the same kernel; 0 where tiles differ in kind."""
    if new.spec.cols is not None or not new.spec.differs_in_rows_only(old.spec) or counts_labels(new.kernel):
        return 0
    ends = [store.layout.rows.block_structures for store in (new, old)]
    if new.layout.rows.block_rows != old.layout.rows.block_rows or new.compression != old.compression:
        return 0
    n_ends = min(map(len, ends))
    n_blocks = int(np.logical_and.accumulate(ends[0][:n_ends] == ends[1][:n_ends]).sum()) - 1
    codes = {part: _places(vars(old.row_vocabulary)[part], vars(new.row_vocabulary)[part]) for part in NAMED.values()}
    for block in range(n_blocks):
        if not _same(new.read_block(block), old.read_block(block), codes):
            return block
    return n_blocks


def _places(old: Sequence[str], new: Sequence[str]) -> Ints:
    """The code that each old name has in the new vocabulary, MISSING where it has none; the last entry is MISSING's."""
    places = {name: code for code, name in enumerate(new)}
    return np.array([*(places.get(name, MISSING) for name in old), MISSING], np.int32)


def _same(new: Packed, old: Packed, codes: dict[str, Ints]) -> bool:
    """Whether two blocks hold the same structures, name by name, with features in the same order."""
    mine, theirs = new.arrays(), old.arrays()
    if new.n_labels != old.n_labels or mine.keys() != theirs.keys():
        return False

    def renamed(name: str) -> NDArray[np.generic]:
        return codes[NAMED[name]][theirs[name]] if name in NAMED else theirs[name]

    return all(np.array_equal(mine[name], renamed(name)) for name in mine if name not in IGNORED)
