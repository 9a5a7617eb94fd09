"""Computes every tile that a store lacks and shall keep, through an executor; what was done stays, whatever happens."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from time import perf_counter
from typing import Any

from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.errors import RunError, TileFailedError, named_line
from gramline.pipeline.events import BuildFinished, BuildPlanned, BuildStarted, Listener, TileDone, TileFailed, silent
from gramline.pipeline.executors.base import FINAL, Executor, Outcome
from gramline.pipeline.gram.forecast import Pace
from gramline.pipeline.gram.plan import Plan, TileTask, plan_gram, thread_limit
from gramline.pipeline.gram.room import require_room
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.task import compute_tile, keep_store_open


def plan_store(store: TileStore, present: Collection[tuple[int, int]] | None = None) -> Plan:
    """The plan of everything a store still lacks; or of all but the given tiles."""
    done = store.present() if present is None else present
    plan = plan_gram(store.layout, done, store.tiles.dtype.itemsize, store.block_bytes(), store.keep)
    return plan.at(store.url, store.identity)


def compute_missing(
    store: TileStore,
    executor: Executor,
    *,
    plan: Plan | None = None,
    limit_bytes: int | None = None,
    retries: int = 2,
    progress: Listener = silent,
) -> int:
    """Compute every tile that is not there; the number of tiles computed. What was done is kept, whatever happens.

    Refused where a tile needs more than `limit_bytes`, or than the workers of `executor` have.
    """
    plan = plan_store(store) if plan is None else plan.at(store.url, store.identity)
    limit = thread_limit(limit_bytes, executor if plan.tasks else None)
    if limit is not None:
        plan.check_memory(limit.n_bytes, limit.whose)
    require_room(plan, store.layout, store.url, store.spec.dtype, store.compression)
    keep_store_open(store)
    begin = perf_counter()
    n_threads = executor.n_threads if plan.tasks else 0
    progress(BuildStarted(store.url, plan.n_tiles, plan.n_present, plan.tile_bytes, plan.cells, n_threads))
    failed: list[Outcome[TileTask, Any]] = []
    n_done, tile_seconds, cells_left, pace = 0, 0.0, plan.cells, Pace()
    with one_blas_thread(), closing(executor.run(compute_tile, plan.tasks, retries=retries)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, FINAL):
                raise outcome.error
            if outcome.error is not None or outcome.result is None:
                failed.append(outcome)
                progress(TileFailed(outcome.task.i, outcome.task.j, named_line(outcome.error)))
                continue
            n_done, tile_seconds = n_done + 1, tile_seconds + outcome.result.seconds
            progress(TileDone(outcome.result, n_done, outcome.task.cells))
            cells_left -= outcome.task.cells
            was_known = pace.is_known(n_threads)
            pace.add(outcome.result, outcome.task.cells)
            if pace.is_known(n_threads) and not was_known and cells_left:
                left = cells_left * pace.seconds_per_cell / n_threads
                progress(BuildPlanned(perf_counter() - begin + left))
    if failed:
        raise _tile_failed(store, failed, n_done, retries)
    if plan.tasks:
        _require_written(store, plan)
    progress(BuildFinished(n_done, perf_counter() - begin, tile_seconds))
    return n_done


def _require_written(store: TileStore, plan: Plan) -> None:
    """Workers that write elsewhere look as if they had done their work."""
    present = store.present()
    missing = [(task.i, task.j) for task in plan.tasks if (task.i, task.j) not in present]
    if missing:
        raise RunError(
            f"tile {missing[0]} of {store.url} was written but is not there ({len(missing)} such tiles)",
            advice="do all workers see the same storage?",
        )


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
