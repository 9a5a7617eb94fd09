"""What a build will take, told before anything runs: tiles, bytes, memory and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramline.kernels.base import Kernel
    from gramline.kernels.packing import Packed
    from gramline.learners.operators.layout import BlockLayout, GramLayout
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.gram.plan import Plan

PROGRAM_BYTES = 300_000_000  # what a worker process takes before it holds any tile, measured
DASK_SHARE = 0.9  # Dask restarts a worker at 95 % of its limit


@dataclass(frozen=True)
class Forecast:
    """A plan, and the seconds one kernel value takes here."""

    plan: Plan
    shape: tuple[int, int]
    block_rows: int
    seconds_per_cell: float

    def to_dict(self, n_threads: int) -> dict[str, Any]:
        plan = self.plan
        return {
            "shape": list(self.shape),
            "block_rows": self.block_rows,
            "tiles": plan.n_tiles,
            "present": plan.n_present,
            "to_compute": len(plan.tasks),
            "tile_bytes": plan.tile_bytes,
            "stored_bytes": plan.stored_bytes,
            "peak_bytes": plan.peak_bytes,
            "cells": plan.cells,
            "threads": n_threads,
            "seconds": plan.seconds(self.seconds_per_cell, n_threads),
        }


def forecast(
    kernel: Kernel, corpus: Corpus, other: Corpus | None, *, path: str | None, dtype: str, block_rows: int | None
) -> Forecast:
    """The plan of a matrix and its pace; what the store at `path` has already is not counted again."""
    from gramline.kernels.packing import pack_pair
    from gramline.pipeline.gram.build import prepare
    from gramline.pipeline.gram.plan import time_sample_tiles

    plan, layout = planned(kernel, corpus, other, path=path, dtype=dtype, block_rows=block_rows)
    rows, cols = prepare(kernel, *pack_pair(corpus, other))
    per_cell = time_sample_tiles(kernel, rows, cols, layout, dtype)
    return Forecast(plan, layout.shape, layout.rows.block_rows, per_cell)


def planned(
    kernel: Kernel, corpus: Corpus, other: Corpus | None, *, path: str | None, dtype: str, block_rows: int | None
) -> tuple[Plan, GramLayout]:
    """The tiles to compute, from the store at `path` if there is one; writes nothing."""
    import numpy as np

    from gramline.kernels.packing import pack_pair
    from gramline.pipeline.gram.build import create_or_open, lay_out, plan_store, prepare
    from gramline.pipeline.gram.plan import plan_gram
    from gramline.pipeline.storage.groups import require_kind_or_nothing
    from gramline.pipeline.storage.kinds import STORE

    if path is not None and require_kind_or_nothing(path, (STORE,)):
        store = create_or_open(kernel, corpus, path, other=other, dtype=dtype, block_rows=block_rows)
        return plan_store(store), store.layout
    rows, cols = prepare(kernel, *pack_pair(corpus, other))
    layout = lay_out(kernel, rows, cols, block_rows)
    plan = plan_gram(
        layout,
        (),
        itemsize=np.dtype(dtype).itemsize,
        row_bytes=np.array(_block_bytes(rows, layout.rows)),
        col_bytes=np.array(_block_bytes(rows if cols is None else cols, layout.cols)),
    )
    return plan, layout


def tile_limit(memory_limit: int, threads: int) -> int:
    """Bytes that one thread of a worker may use for tiles."""
    return max(1, int(DASK_SHARE * memory_limit - PROGRAM_BYTES) // threads)


def _block_bytes(packed: Packed, layout: BlockLayout) -> list[int]:
    blocks = (layout.structures(block) for block in range(layout.n_blocks))
    return [
        sum(array.nbytes for array in packed.structures(part.start, part.stop).arrays().values()) for part in blocks
    ]
