"""Reads every tile of a store, recomputes a few cells of each, and on request recomputes the bad ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.ranges import offsets_from_lengths, range_containing
from gramline.pipeline.errors import RunError, TileCorruptError, named_line
from gramline.pipeline.events import Listener, TileChecked, silent
from gramline.pipeline.executors.base import FINAL, Executor
from gramline.pipeline.executors.choice import choose_executor
from gramline.pipeline.gram.block_cache import cached_block
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.plan import TileTask
from gramline.pipeline.gram.store import TileStore, absolute
from gramline.pipeline.gram.strays import sweep_partial, sweep_segments
from gramline.pipeline.gram.task import planned_store

SAMPLES = 3  # random pairs of structures per tile, besides the pair that holds its largest value
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}  # relative to the largest value compared


@dataclass(frozen=True)
class TileCheck:
    """The state of one tile; `problem` is None when it is good."""

    i: int
    j: int
    problem: str | None


@dataclass(frozen=True)
class VerifyReport:
    """Every tile that is missing or wrong, and how many were recomputed."""

    n_tiles: int
    bad: tuple[TileCheck, ...]
    n_repaired: int
    n_strays: int  # files and objects of killed writers that were removed

    @property
    def is_good(self) -> bool:
        """True when the store is whole now."""
        return len(self.bad) == self.n_repaired

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"is_good": self.is_good}


def verify_gram(
    path: str | os.PathLike[str],
    *,
    client: Any = None,
    executor: Executor | None = None,
    repair: bool = False,
    progress: Listener = silent,
) -> VerifyReport:
    """Read every tile and compute a few of its values again; with `repair`, also the bad tiles.

    The corpora are read first: a store whose corpus is damaged cannot be repaired, only rebuilt.

    Parameters
    ----------
    path : of a store
    client, executor, progress : as for `build_gram`
    repair : compute bad tiles again, and remove what killed writers left

    Returns
    -------
    VerifyReport: `is_good`, the `bad` tiles with what is wrong with them, and how many were repaired

    >>> import tempfile
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, build_gram, verify_gram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = build_gram(SequenceLabeling(), Corpus.from_sequences([["a", "b"]]), f"{folder}/a.gram.zarr")
    ...     verify_gram(f"{folder}/a.gram.zarr")
    VerifyReport(n_tiles=1, bad=(), n_repaired=0, n_strays=0)
    """
    store = TileStore(absolute(path))
    for block in range(store.layout.rows.n_blocks):
        store.read_block(block)
    for block in range(0 if store.layout.is_symmetric else store.layout.cols.n_blocks):
        store.read_block(block, of_columns=True)
    runner = choose_executor(client, executor, progress)
    bad = tuple(_check_all(store, runner, progress))
    if not repair:
        return VerifyReport(store.n_kept, bad, 0, 0)
    for check in bad:
        store.tiles.delete(check.i, check.j)
    compute_missing(store, runner, progress=progress)
    still = [check for check in bad if _problem(store, check.i, check.j) is not None]
    n_strays = sweep_partial(store.url) + sweep_segments(store.url)
    return VerifyReport(store.n_kept, bad, len(bad) - len(still), n_strays)


def _check_all(store: TileStore, executor: Executor, progress: Listener) -> Iterator[TileCheck]:
    plan = plan_store(store, present=())
    with closing(executor.run(check_tile, plan.tasks)) as outcomes:
        for number, outcome in enumerate(outcomes, 1):
            if isinstance(outcome.error, FINAL):
                raise outcome.error
            if outcome.result is None:
                task = outcome.task
                raise RunError(
                    f"tile ({task.i}, {task.j}) of {store.url} cannot be checked: {named_line(outcome.error)}"
                )
            progress(TileChecked(outcome.result.i, outcome.result.j, outcome.result.problem, number, plan.n_tiles))
            if outcome.result.problem is not None:
                yield outcome.result


def check_tile(task: TileTask) -> TileCheck:
    """Read one tile and recompute a few of its cells; runs on workers."""
    store = planned_store(task.store, task.identity)
    return TileCheck(task.i, task.j, _problem(store, task.i, task.j))


def _problem(store: TileStore, i: int, j: int) -> str | None:
    try:
        tile = store.read_tile(i, j)
    except TileCorruptError as error:
        return error.problem
    rows = cached_block(store, i, of_columns=False)
    cols = cached_block(store, j, of_columns=not store.layout.is_symmetric)
    row_starts = offsets_from_lengths(store.layout.rows.lengths[store.layout.rows.structures(i)])
    col_starts = offsets_from_lengths(store.layout.cols.lengths[store.layout.cols.structures(j)])
    for row, col in _pairs(tile, row_starts, col_starts, seed=(i, j)):
        try:
            expected = store.kernel.tile(rows.structures(row, row + 1), cols.structures(col, col + 1), tile.dtype)
        except KernelOverflowError:
            return "its corpus gives values that do not fit"
        stored = tile[row_starts[row] : row_starts[row + 1], col_starts[col] : col_starts[col + 1]]
        scale = max(np.abs(expected).max(), np.abs(stored).max())
        if np.abs(stored - expected).max() > TOLERANCE[tile.dtype.name] * scale:
            return "its values belong elsewhere: a cell computed anew differs"
    return None


def _pairs(
    tile: NDArray[Any], row_starts: NDArray[np.int64], col_starts: NDArray[np.int64], seed: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """The pair of structures that holds the largest value, and a few at random, the same ones every time."""
    row, col = np.unravel_index(int(np.argmax(np.abs(tile))), tile.shape)
    yield range_containing(row_starts, int(row)), range_containing(col_starts, int(col))
    random = np.random.default_rng(seed)
    for _ in range(SAMPLES):
        yield int(random.integers(len(row_starts) - 1)), int(random.integers(len(col_starts) - 1))
