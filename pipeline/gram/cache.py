"""A folder of Gram matrices, each found again by the fingerprint of what decides its numbers.

CACHE/<fingerprint>/gram.zarr   the store            made.json   when, from what        used   touched at every use
                    lock        held (shared) while somebody uses the store; only who gets it alone may delete
A store that structures were appended to still serves the corpus it began with: its leading blocks are that Gram. And a
corpus that grew takes the tiles of its first blocks from the store of the smaller one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import describe
from gramline.kernels.packing import Packed
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.files import write_whole
from gramline.pipeline.gram.build import DEFAULT, GramBuild, StoreChoices, create_or_open
from gramline.pipeline.gram.reuse import CACHED_STORE, link_leading_tiles, shared_tiles
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.status import GramStatus
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.strays import STRAY_SECONDS
from gramline.pipeline.gram.verify import VerifyReport, verify_gram
from gramline.pipeline.locks import FileLock, describe_holders

MADE, USED, LOCK, BUILDING = "made.json", "used", "lock", "building"


@dataclass(frozen=True)
class Entry:
    """One store of a cache."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def store(self) -> str:
        return str(self.folder / CACHED_STORE)

    @property
    def made(self) -> dict[str, Any]:
        """What made it; empty when nobody wrote it down."""
        try:
            content = json.loads((self.folder / MADE).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def bytes(self) -> int:
        """Of everything on disk."""
        return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(self.folder) for name in names)

    @property
    def last_used(self) -> float:
        """Seconds since the epoch."""
        try:
            return (self.folder / USED).stat().st_mtime
        except OSError:
            return self.folder.stat().st_mtime

    def status(self) -> GramStatus | None:
        """None when the store is broken or was never finished being created."""
        try:
            return StoredGram.open(self.store).status()
        except StoreError:
            return None

    def verify(self, *, repair: bool = False) -> VerifyReport | None:
        """What `verify_gram` reports of the store; None when it cannot be opened."""
        return None if self.status() is None else verify_gram(self.store, repair=repair)

    def to_dict(self) -> dict[str, Any]:
        """What is known of it without reading a tile; the values of a store that cannot be opened are None."""
        status = self.status()
        return {
            "name": self.name,
            "store": self.store,
            "bytes": self.bytes,
            "unused_seconds": max(0.0, time.time() - self.last_used),
            "in_use": self.is_in_use(),
            "made": self.made,
            "kernel": None if status is None else status.kernel,
            "tiles": None if status is None else status.n_tiles,
            "present": None if status is None else status.n_present,
            "kernel_text": None if status is None else describe(status.kernel),
        }

    def is_in_use(self) -> bool:
        lock = FileLock.acquire(self.folder / LOCK, wait=False)
        with lock or nullcontext():
            return lock is None


@dataclass(frozen=True)
class Freed:
    """What a collection removed (or would remove), and what it had to leave because it is in use."""

    removed: tuple[tuple[str, int], ...]  # name, bytes
    in_use: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.removed)


class GramCache:
    """The stores below one local folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if "://" in os.fspath(folder):
            advice = "name stores elsewhere one by one"
            raise InputError(f"a cache is a local folder, not {os.fspath(folder)}", advice=advice)
        self.folder = Path(folder).absolute()

    def entries(self) -> list[Entry]:
        """All stores, by name."""
        if not self.folder.is_dir():
            return []
        return [Entry(path) for path in sorted(self.folder.iterdir()) if (path / LOCK).is_file()]

    def entry(self, name: str) -> Entry:
        """The store whose name begins so."""
        entries = [entry for entry in self.entries() if entry.name.startswith(name)]
        if len(entries) != 1:
            what = f"{len(entries)} stores" if entries else "no store"
            advice = "see `gramline cache ls`"
            raise InputError(f"{self.folder} has {what} whose name begins with {name!r}", advice=advice)
        return entries[0]

    def find(self, spec: GramSpec) -> Entry | None:
        """The store of this Gram matrix, or of one that began with it."""
        direct = Entry(self.folder / spec.fingerprint())
        for entry in [direct, *(other for other in self.entries() if other.name != direct.name)]:
            with suppress(StoreError):
                if (entry.folder / LOCK).is_file() and _begins_with(TileStore(entry.store).spec, spec):
                    return entry
        return None

    @contextmanager
    def using(
        self, kernel: Kernel, corpus: Packed, choices: StoreChoices = DEFAULT, *, made_from: str = ""
    ) -> Iterator[StoredGram]:
        """The Gram matrix of a kernel over a corpus, with whatever tiles it has; nobody deletes it meanwhile."""
        spec = GramSpec.of(kernel, corpus, None, choices.dtype)
        while True:
            entry = self.find(spec) or Entry(self.folder / spec.fingerprint())
            entry.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock.acquire(entry.folder / LOCK, shared=True)
            if lock is None:
                continue  # somebody deleted it between our look and our lock
            with lock:
                (entry.folder / USED).touch()
                if not (entry.folder / MADE).exists():
                    _write_made(entry, made_from, len(corpus), corpus.n_positions)
                if self.find(spec) == entry:
                    store = TileStore(entry.store)
                else:
                    store = create_or_open(kernel, corpus, entry.store, choices)
                    self._link_from_others(store, entry)
                whole = store.layout.rows.n_structures == len(corpus)
                yield StoredGram(store) if whole else LeadingGram(store, len(corpus))
                return

    def n_shared(self, build: GramBuild) -> int:
        """How many tiles a new store would take from the store of a smaller corpus."""
        found = 0
        for entry in self.entries():
            with suppress(StoreError):
                found = max(found, len(shared_tiles(build, TileStore(entry.store))))
        return found

    def _link_from_others(self, store: TileStore, entry: Entry) -> None:
        """Tiles of a smaller corpus that this one begins with, from the store that has most of them."""
        for other in sorted(self.entries(), key=lambda one: -one.bytes):
            if other.name == entry.name:
                continue
            lock = FileLock.acquire(other.folder / LOCK, shared=True, wait=False)
            with lock or nullcontext(), suppress(StoreError):
                if lock is not None and link_leading_tiles(store, TileStore(other.store)):
                    return

    def remove(self, name: str) -> Freed:
        """Delete the store whose name begins so, unless it is in use."""
        entry = self.entry(name)
        size = entry.bytes
        return Freed(((entry.name, size),), ()) if _delete(entry) else Freed((), (entry.name,))

    def collect(
        self,
        *,
        older_than: float | None = None,
        keep_bytes: int | None = None,
        everything: bool = False,
        incomplete: bool = False,
        dry_run: bool = False,
    ) -> Freed:
        """Delete stores: all, unfinished ones, those unused for `older_than` seconds, and the least recently used ones
        beyond `keep_bytes` together. A store in use stays.
        """
        now = time.time()
        if not dry_run:
            self._sweep()
        entries = sorted(self.entries(), key=lambda entry: entry.last_used)
        sizes = {entry.name: entry.bytes for entry in entries}
        held = sum(sizes.values())
        removed, in_use = [], []
        for entry in entries:
            status = entry.status() if incomplete else None
            wanted = (
                everything
                or (older_than is not None and now - entry.last_used >= older_than)
                or (keep_bytes is not None and held > keep_bytes)
                or (incomplete and (status is None or not status.is_complete))
            )
            if not wanted:
                continue
            if entry.is_in_use() if dry_run else not _delete(entry):
                in_use.append(entry.name)
                continue
            held -= sizes[entry.name]
            removed.append((entry.name, sizes[entry.name]))
        return Freed(tuple(removed), tuple(in_use))

    def _sweep(self) -> None:
        """Go on with deletions that somebody began and was killed in."""
        for stray in self.folder.glob(".*.partial") if self.folder.is_dir() else ():
            with suppress(FileNotFoundError):
                if time.time() - stray.stat().st_mtime > STRAY_SECONDS:
                    shutil.rmtree(stray, ignore_errors=True)


class LeadingGram(StoredGram):
    """The first `n_structures` of a symmetric store; they must end where a block ends, as an appended corpus begins."""

    def __init__(self, store: TileStore, n_structures: int) -> None:
        super().__init__(store)
        rows = store.layout.rows
        ends = np.flatnonzero(rows.block_structures == n_structures)
        if not store.layout.is_symmetric or len(ends) == 0:
            raise StoreError(f"{store.url} has no block that ends after structure {n_structures}")
        n_blocks = int(ends[0])
        self._layout = GramLayout.symmetric(
            BlockLayout(rows.lengths[:n_structures], rows.block_structures[: n_blocks + 1], rows.block_rows)
        )

    @property
    def layout(self) -> GramLayout:
        return self._layout

    def status(self) -> GramStatus:
        n_blocks = self._layout.rows.n_blocks
        own = sum(i < n_blocks and j < n_blocks for i, j in self.store.present())
        return replace(super().status(), n_present=own, stored_bytes=own * self.store.tiles.tile_bytes)


def _begins_with(stored: GramSpec, wanted: GramSpec) -> bool:
    return stored.differs_in_rows_only(wanted) and stored.rows[:1] == wanted.rows


def _write_made(entry: Entry, made_from: str, n_structures: int, n_positions: int) -> None:
    content = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "from": made_from,
        "structures": n_structures,
        "positions": n_positions,
    }
    write_whole(entry.folder / MADE, json.dumps(content))


def _delete(entry: Entry) -> bool:
    """False when somebody uses it. Renamed first, so that nobody finds a store half deleted."""
    lock = FileLock.acquire(entry.folder / LOCK, wait=False)
    if lock is None:
        return False
    with lock:
        aside = entry.folder.with_name(f".{entry.name}.{uuid.uuid4().hex}.partial")
        entry.folder.rename(aside)
        shutil.rmtree(aside)
    return True


@contextmanager
def building(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Only one job at a time builds a store; yields False at once when another one does and `wait` is not wanted."""
    lock = FileLock.acquire(folder / BUILDING, wait=wait)
    with lock or nullcontext():
        yield lock is not None


def builders(folder: Path) -> str:
    """Who builds a store, for people; empty if nobody knows."""
    return describe_holders(folder / BUILDING)
