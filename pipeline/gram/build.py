"""Builds a Gram matrix into a store: prepared, laid out and planned once, then driven through an executor."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramline.kernels.base import Kernel, check_kernel
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.packing import Packable, Packed, Vocabulary, pack_pair
from gramline.kernels.parameters import plain_value
from gramline.learners.operators.layout import GramLayout
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.executors.choice import ONE_OR_MORE, check_run, choose_executor
from gramline.pipeline.gram.block_cache import packed_bytes
from gramline.pipeline.gram.forecast import SAMPLES, Forecast, measure_pace
from gramline.pipeline.gram.keep import EVERYTHING, Keep, wanted_keep
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.notes import warn_about_kernel
from gramline.pipeline.gram.plan import Plan, plan_gram, thread_limit
from gramline.pipeline.gram.reuse import Loan, best_loan, link_leading_tiles
from gramline.pipeline.gram.room import NO_PLACE, Room, require_room
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.store import TileStore, absolute
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.storage.groups import TILE_BYTES, require_kind_or_nothing
from gramline.pipeline.storage.places import STORE, is_local, local_path


@dataclass(frozen=True)
class StoreChoices:
    """What a new store is asked for. The dtype is part of what a store is; the others an existing one has its own."""

    dtype: str = "float64"  # or float32, and where that is enough computed so
    block_rows: int | None = None  # rows of a tile: 2048, or as many as the longest structure has
    compression: str | None = None  # "none" by default, "lz4", "zstd"
    keep: Keep | None = None  # all tiles by default


DEFAULT = StoreChoices()


def build_gram(
    kernel: Kernel,
    corpus: Packable | Packed,
    path: str | os.PathLike[str],
    *,
    other: Packable | Packed | None = None,
    client: Any = None,
    executor: Executor | None = None,
    dtype: str = "float64",
    block_rows: int | None = None,
    compression: str | None = None,
    keep: str | int | None = None,
    tile_cache: str | int | None = None,
    limit_bytes: int | None = None,
    retries: int = 2,
    progress: Listener = silent,
) -> StoredGram:
    """G[s, t] = k(x_s, x_t) for all positions (or structures) of a corpus, stored at `path`; goes on where it was.

    Parameters
    ----------
    kernel, corpus : what decides the numbers, with `other` and `dtype`
    path : a folder, or the url of an object store (s3://...)
    other : a second corpus for the columns; the matrix is symmetric without it
    client, executor : the workers of a Dask client, or an executor; this process by default
    dtype : "float64" or "float32", of the stored tiles; float32 ones are computed so where that is enough
    block_rows, compression : choices of a new store ("none", "lz4", "zstd"); an existing one keeps its own
    keep : tiles to store, "all" (the default), "none" or so many bytes ("40GB"); the others are computed when asked for
    tile_cache : bytes of such tiles ("500MB") that each process keeps in memory
    limit_bytes : what one worker thread may use; a plan that needs more, or more than a worker of the client has, is
        refused before anything runs
    retries : further tries of a tile that failed
    progress : called with an event when the build starts, after every tile and at its end

    Returns
    -------
    StoredGram of shape (rows of `corpus`, rows of `other` or of `corpus`)

    >>> import tempfile
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, build_gram
    >>> corpus = Corpus.from_sequences([["a", "b"], ["b"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build_gram(SequenceLabeling(c=0.5), corpus, f"{folder}/a.gram.zarr").to_numpy()
    array([[0.3125, 0.    , 0.    ],
           [0.    , 0.3125, 0.25  ],
           [0.    , 0.25  , 0.25  ]])
    """
    runner = choose_executor(client, executor, progress)
    check_run(limit_bytes, retries, progress)
    choices = StoreChoices(dtype, block_rows, compression, wanted_keep(keep, tile_cache))
    build = GramBuild(kernel, corpus, path, choices, other=other)
    warn_about_kernel(kernel, corpus)
    return build.run(runner, limit_bytes=limit_bytes, retries=retries, progress=progress)


def create_or_open(
    kernel: Kernel,
    corpus: Packable | Packed,
    path: str | os.PathLike[str],
    choices: StoreChoices = DEFAULT,
    *,
    other: Packable | Packed | None = None,
) -> TileStore:
    """The store of exactly this Gram matrix, with whatever tiles it has; a store of anything else is refused."""
    return GramBuild(kernel, corpus, path, choices, other=other).create()


class GramBuild:
    """A Gram matrix on its way into the store at `path` (None: only planned); nothing is written before `create`.

    A store that is there is opened, and must be of this matrix and these choices. Otherwise the corpora are prepared
    and laid out here, once, for the plan and for the store.
    """

    def __init__(
        self,
        kernel: Kernel,
        corpus: Packable | Packed,
        path: str | os.PathLike[str] | None,
        choices: StoreChoices = DEFAULT,
        *,
        other: Packable | Packed | None = None,
        lenders: Iterable[TileStore] = (),
    ) -> None:
        """`lenders` are stores that may have some of the tiles: those of a corpus that this one began as."""
        check_kernel(kernel)
        self._lenders = lenders
        self.kernel, self.dtype = kernel, choices.dtype
        self._recipe = corpus.recipe if isinstance(corpus, Corpus) else None
        self._choices = choices
        self._url = None if path is None else absolute(path)
        self._plan: Plan | None = None
        self._loan: Loan | None = None  # tiles of a smaller corpus that this one begins with
        rows, cols = pack_pair(corpus, other)
        self.spec = GramSpec.of(kernel, rows, cols, self.dtype)
        self._store: TileStore | None = None
        if self._url is not None and path is not None and require_kind_or_nothing(os.fspath(path), (STORE,)):
            self._open(self._url)
            return
        self._rows = kernel.prepare(rows)
        self._cols = None if cols is None else kernel.prepare(cols, like=self._rows)
        self.layout = _lay_out(kernel, self._rows, self._cols, choices.block_rows)

    def _open(self, url: str) -> TileStore:
        store = TileStore(url)
        _refuse_another(store, self.spec, self._choices)
        self._store, self._plan, self.layout = store, None, store.layout
        return store

    @property
    def is_new(self) -> bool:
        """True when there is no store yet."""
        return self._store is None

    @property
    def place(self) -> str | None:
        """Where the store is, or will be; None where that is not known."""
        return self._url

    @property
    def plan(self) -> Plan:
        """The tiles to compute: all of a new store, or those that an existing one lacks."""
        if self._plan is None and self._store is not None:
            self._plan = plan_store(self._store)
        elif self._plan is None:
            sizes = [
                np.array([packed_bytes(self.read_block(block, of_columns=side)) for block in range(layout.n_blocks)])
                for side, layout in ((False, self.layout.rows), (True, self.layout.cols))
            ]
            self._loan = best_loan(self, self._lenders)
            lent = () if self._loan is None else self._loan.tiles
            self._plan = plan_gram(self.layout, lent, np.dtype(self.dtype).itemsize, (sizes[0], sizes[1]), self.keep)
            self.keep.check(self._plan.tile_bytes)
        return self._plan

    @property
    def loan(self) -> Loan | None:
        """Tiles that a store which is still to be made takes from one of a smaller corpus; the plan has them."""
        return self._loan if self.is_new and self.plan else None

    @property
    def compression(self) -> str:
        return self._store.compression if self._store is not None else self._choices.compression or "none"

    @property
    def keep(self) -> Keep:
        return self._store.keep if self._store is not None else self._choices.keep or EVERYTHING

    @property
    def row_vocabulary(self) -> Vocabulary:
        return self._store.row_vocabulary if self._store is not None else self._rows.vocabulary

    def forecast(self, executor: Executor | None = None, place: str | None = None) -> Forecast:
        """The plan, the room for it, and its pace: a few sample tiles computed and written by `executor`.

        They are written beside the store (or `place`, where the build has no path) and removed again; not where there
        is nothing to compute, nor where the disk has no room for them.
        """
        plan, target = self.plan, self._url or place
        room = Room(NO_PLACE, plan.new_bytes, None) if target is None else Room.at(target, plan.new_bytes)
        samples = Room.at(target or tempfile.gettempdir(), 2 * SAMPLES * plan.tile_bytes)
        is_measured = bool(plan.tasks) and samples.fits
        pace = measure_pace(self, executor or InlineExecutor(), target) if is_measured else 0.0
        return Forecast(plan, self.layout.shape, self.layout.rows.block_rows, pace, room)

    def require_room(self) -> None:
        """Refuse tiles for which the disk of the store has no room, before anything is written."""
        if self._url is not None:
            if self.is_new and self.keep.n_bytes:
                Room.at(self._url, self.keep.n_bytes).require("keep fewer bytes, all tiles if these fit, or none")
            require_room(self.plan, self.layout, self._url, self.dtype, self.compression)

    def read_block(self, block: int, *, of_columns: bool = False) -> Packed:
        """A block of the prepared rows, or of the columns."""
        if self._store is not None:
            return self._store.read_block(block, of_columns=of_columns)
        packed, layout = (self._rows, self.layout.rows)
        if of_columns and self._cols is not None:
            packed, layout = (self._cols, self.layout.cols)
        structures = layout.structures(block)
        return packed.structures(structures.start, structures.stop)

    def create(self) -> TileStore:
        """The store, with whatever tiles it has. When somebody else creates it at the same time, theirs is opened."""
        if self._store is not None:
            return self._store
        if self._url is None:
            raise InputError("a build without a path is only planned", advice="give the path of the store")
        plan, compression = self._plan, self._choices.compression or "none"
        corpora = (self._rows, self._cols)
        is_own = TileStore.write(self._url, self.spec, corpora, self.layout, compression, self._recipe, self.keep)
        store = self._open(self._url)
        if self._loan is not None:
            link_leading_tiles(store, self._loan.lender)
        self._plan = plan if is_own else None
        return store

    def run(
        self, executor: Executor, *, limit_bytes: int | None = None, retries: int = 2, progress: Listener = silent
    ) -> StoredGram:
        """Create the store and compute its tiles.

        A plan that needs more than `limit_bytes` per thread, than the workers of `executor` have, or than the disk has
        left, is refused.
        """
        limit = thread_limit(limit_bytes, executor if self.plan.tasks else None)
        if limit is not None:
            self.plan.check_memory(limit.n_bytes, limit.whose)
        self.require_room()
        store = self.create()
        compute_missing(store, executor, plan=self.plan, retries=retries, progress=progress)
        return StoredGram(store)


def _refuse_another(store: TileStore, spec: GramSpec, choices: StoreChoices) -> None:
    """The store must be of this spec and, where they are given, of these choices."""
    differences = store.spec.differences(spec)
    if differences:
        advice = "choose another path or remove it"
        raise StoreError(f"{store.url} holds another Gram matrix ({differences})", advice=advice)
    stored, block_rows, compression = store.layout.rows.block_rows, choices.block_rows, choices.compression
    if block_rows is not None and block_rows != stored:
        advice = "leave the block size out"
        raise StoreError(f"{store.url} has blocks of {stored} rows, not {block_rows}", advice=advice)
    if compression is not None and compression != store.compression:
        advice = "leave the compression out"
        raise StoreError(f"{store.url} has compression {store.compression!r}, not {compression!r}", advice=advice)
    if choices.keep is not None and choices.keep != store.keep:
        raise StoreError(
            f"{store.url} was made to keep {store.keep} of its tiles, not {choices.keep}",
            advice="leave keep and tile_cache out, or build another store",
        )


def _lay_out(kernel: Kernel, rows: Packed, cols: Packed | None, block_rows: int | None) -> GramLayout:
    """Rows and columns in blocks; an empty corpus is refused."""
    if block_rows is not None:
        block_rows = plain_value("block_rows", ONE_OR_MORE, block_rows, InputError)
    if block_rows is not None and (tile_bytes := 8 * block_rows**2) > TILE_BYTES:
        raise InputError(f"blocks of {block_rows:,} rows make tiles of {tile_bytes:,} bytes", advice="use smaller ones")
    for packed, what in ((rows, "corpus"), (cols, "second corpus")):
        if packed is not None and len(packed) == 0:
            raise InputError(f"the {what} is empty", advice="a Gram matrix needs at least one structure")
    return GramLayout.of(kernel.row_lengths(rows), None if cols is None else kernel.row_lengths(cols), block_rows)


@contextmanager
def remove_on_overflow(target: str) -> Iterator[None]:
    """A store that a build began and whose kernel cannot be finished is of no use to anybody: it goes."""

    try:
        yield
    except KernelOverflowError:
        if is_local(target):
            shutil.rmtree(local_path(target), ignore_errors=True)
        raise
