"""Builds a Gram matrix into a store: creates or resumes it, drives the plan through an executor, emits events."""

from __future__ import annotations

import os
from collections.abc import Collection
from time import perf_counter
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packable, Packed, pack_pair
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.errors import InputError, RunError, StoreError, TileFailedError, named_line
from gramline.pipeline.events import BuildFinished, BuildStarted, Listener, TileDone, TileFailed, silent
from gramline.pipeline.executors.base import FINAL, Executor, Outcome, closing_early
from gramline.pipeline.executors.inline import InlineExecutor
from gramline.pipeline.gram.plan import Plan, TileTask, plan_gram
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.store import TileStore, absolute
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.task import compute_tile
from gramline.pipeline.storage.groups import group_exists
from gramline.pipeline.storage.limits import TILE_BYTES


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
    limit_bytes: int | None = None,
    retries: int = 2,
    progress: Listener = silent,
) -> StoredGram:
    """The Gram matrix of a kernel over a corpus (or between two), stored at `path`; goes on where it was.

    Tiles run on `executor`, on the workers of a Dask `client`, or in this process. `block_rows` and `compression`
    ("none" by default, "lz4", "zstd") are choices of a new store; an existing one keeps its own. `limit_bytes` is
    what one worker thread may use: a plan that needs more is refused before anything runs.
    """
    store = create_or_open(
        kernel, corpus, path, other=other, dtype=dtype, block_rows=block_rows, compression=compression
    )
    compute_missing(
        store, choose_executor(client, executor), limit_bytes=limit_bytes, retries=retries, progress=progress
    )
    return StoredGram(store)


def create_or_open(
    kernel: Kernel,
    corpus: Packable | Packed,
    path: str | os.PathLike[str],
    *,
    other: Packable | Packed | None = None,
    dtype: str = "float64",
    block_rows: int | None = None,
    compression: str | None = None,
) -> TileStore:
    """The store of exactly this Gram matrix, with whatever tiles it has; a store of anything else is refused."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"expected a kernel such as SequenceLabeling(), got {kernel!r}")
    url = absolute(path)
    rows, cols = pack_pair(corpus, other)
    spec = GramSpec.of(kernel, rows, cols, dtype)
    if group_exists(url):
        store = TileStore(url)
    else:
        ready, ready_cols = prepare(kernel, rows, cols)
        layout = lay_out(kernel, ready, ready_cols, block_rows)
        store = TileStore.create(url, spec, ready, ready_cols, layout, compression or "none")
    _refuse_another(store, spec, block_rows, compression)
    return store


def _refuse_another(store: TileStore, spec: GramSpec, block_rows: int | None, compression: str | None) -> None:
    """The store must be of this spec and, where they are given, of these choices."""
    differences = store.spec.differences(spec)
    if differences:
        advice = "choose another path or remove it"
        raise StoreError(f"{store.url} holds another Gram matrix ({differences})", advice=advice)
    stored = store.layout.rows.block_rows
    if block_rows is not None and block_rows != stored:
        advice = "leave the block size out"
        raise StoreError(f"{store.url} has blocks of {stored} rows, not {block_rows}", advice=advice)
    if compression is not None and compression != store.compression:
        raise StoreError(
            f"{store.url} has compression {store.compression!r}, not {compression!r}",
            advice="leave the compression out",
        )


def prepare(kernel: Kernel, rows: Packed, cols: Packed | None) -> tuple[Packed, Packed | None]:
    """Packed corpora with everything resolved that tiles need."""
    ready = kernel.prepare(rows)
    return ready, None if cols is None else kernel.prepare(cols, like=ready)


def lay_out(kernel: Kernel, rows: Packed, cols: Packed | None, block_rows: int | None) -> GramLayout:
    """Rows and columns in blocks; an empty corpus is refused."""
    if block_rows is not None and block_rows < 1:
        raise InputError(f"block_rows must be at least 1, got {block_rows}")
    if block_rows is not None and 8 * block_rows**2 > TILE_BYTES:
        tile_bytes = 8 * block_rows**2
        raise InputError(f"blocks of {block_rows:,} rows make tiles of {tile_bytes:,} bytes", advice="use smaller ones")
    for packed, what in ((rows, "corpus"), (cols, "second corpus")):
        if packed is not None and len(packed) == 0:
            raise InputError(f"the {what} is empty", advice="a Gram matrix needs at least one structure")
    row_layout = BlockLayout.of(kernel.row_lengths(rows), block_rows)
    if cols is None:
        return GramLayout.symmetric(row_layout)
    return GramLayout.rectangular(row_layout, BlockLayout.of(kernel.row_lengths(cols), block_rows))


def choose_executor(client: Any, executor: Executor | None) -> Executor:
    """The executor given, one on the client's workers, or this process."""
    if executor is not None and client is not None:
        raise InputError("give a client or an executor, not both")
    if executor is not None:
        return executor
    if client is None:
        return InlineExecutor()
    from gramline.pipeline.executors.dask import DaskExecutor  # only who has a cluster needs Dask

    return DaskExecutor(client)


def plan_store(store: TileStore, present: Collection[tuple[int, int]] | None = None) -> Plan:
    """The plan of everything a store still lacks; or of all but the given tiles."""
    row_bytes, col_bytes = store.block_bytes()
    return plan_gram(
        store.layout,
        store.present() if present is None else present,
        itemsize=store.tiles.dtype.itemsize,
        row_bytes=row_bytes,
        col_bytes=col_bytes,
        store=store.url,
        identity=store.identity,
    )


def compute_missing(
    store: TileStore,
    executor: Executor,
    *,
    limit_bytes: int | None = None,
    retries: int = 2,
    progress: Listener = silent,
) -> int:
    """Compute every tile that is not there; the number of tiles computed. What was done is kept, whatever happens."""
    plan = plan_store(store)
    if limit_bytes is not None:
        plan.check_memory(limit_bytes)
    begin = perf_counter()
    n_threads = executor.n_threads if plan.tasks else 0
    progress(BuildStarted(store.url, plan.n_tiles, plan.n_present, plan.tile_bytes, plan.cells, n_threads))
    failed: list[Outcome[TileTask, Any]] = []
    n_done, tile_seconds = 0, 0.0
    with one_blas_thread(), closing_early(executor.run(compute_tile, plan.tasks, retries=retries)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, FINAL):
                raise outcome.error
            if outcome.error is not None or outcome.result is None:
                failed.append(outcome)
                progress(TileFailed(outcome.task.i, outcome.task.j, named_line(outcome.error)))
                continue
            n_done, tile_seconds = n_done + 1, tile_seconds + outcome.result.seconds
            progress(TileDone(outcome.result, n_done, outcome.task.cells))
    if failed:
        raise _tile_failed(store, failed, n_done, retries)
    missing = plan_store(store).tasks if plan.tasks else ()
    if missing:
        first = f"tile ({missing[0].i}, {missing[0].j}) of {store.url}"
        raise RunError(
            f"{first} was written but is not there ({len(missing)} such tiles)",
            advice="do all workers see the same storage?",
        )
    progress(BuildFinished(n_done, perf_counter() - begin, tile_seconds))
    return n_done


def _tile_failed(store: TileStore, failed: list[Outcome[TileTask, Any]], n_done: int, retries: int) -> TileFailedError:
    first = failed[0]
    error = TileFailedError(
        named_line(first.error),
        store.url,
        (first.task.i, first.task.j),
        tries=retries + 1,
        n_more=len(failed) - 1,
        advice=f"the {n_done} other tiles are kept, run it again to go on",
    )
    error.__cause__ = first.error
    return error
