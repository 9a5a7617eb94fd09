"""Cholesky by tiles beside a store: its flop rate per core against LAPACK, on workers with little memory.

A small untimed version runs by default; `pytest -m benchmark -s tests/benchmarks/test_stored_cholesky_speed.py`
prints the rates.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import mean
from time import perf_counter

import numpy as np
import pytest
from scipy.linalg import lapack

from gramline.kernels import SequenceLabeling
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline import Corpus, StoredGram, connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.cholesky import plan_factor

RATE_SHARE = 0.35  # of LAPACK's flop rate per core
WORKER_LIMIT = "1.5GB"
LAPACK_ROWS = 4096
SCALE = 0.05  # so small that I + scale^2 G is positive definite for random symmetric tiles


def filled_store(path: Path, n_blocks: int, block_rows: int) -> StoredGram:
    """A float32 store of random tiles whose factors all go to disk."""
    corpus = Corpus.from_sequences([["a"] * block_rows] * n_blocks)
    store = create_or_open(
        SequenceLabeling(), corpus, path / "a.zarr", StoreChoices(dtype="float32", block_rows=block_rows)
    )
    draw = np.random.default_rng(0)
    for i, j in store.layout.tiles():
        tile = draw.random((block_rows, block_rows), dtype=np.float32)
        store.write_tile(i, j, (tile + tile.T) / 2 if i == j else tile)
    gram = StoredGram(store)
    gram.factor_limit = 0
    return gram


def lapack_seconds(n_rows: int) -> list[float]:
    """Times of LAPACK on one core."""
    matrix = np.asfortranarray(np.full((n_rows, n_rows), SCALE**2) + np.eye(n_rows))
    seconds = []
    with one_blas_thread():
        for _ in range(3):
            copy = matrix.copy(order="F")
            begin = perf_counter()
            lapack.dpotrf(copy, lower=1, overwrite_a=1, clean=0)
            seconds.append(perf_counter() - begin)
    return seconds


def test_the_benchmark_problem_has_a_factor(tmp_path: Path) -> None:
    gram = filled_store(tmp_path, 3, 16)
    whole = np.eye(48) + SCALE**2 * gram.to_numpy()
    assert gram.cholesky(np.full(48, SCALE)).log_determinant() == pytest.approx(np.linalg.slogdet(whole)[1])
    assert min(lapack_seconds(8)) > 0


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
def test_flop_rate_of_tiles_on_small_workers(tmp_path: Path) -> None:
    gram = filled_store(tmp_path, 12, 1024)
    n_rows = gram.shape[0]
    plan = plan_factor(gram.store, n_rows, 0)
    alone = lapack_seconds(LAPACK_ROWS)
    with connect(workers=1, memory_limit=WORKER_LIMIT) as client:
        gram.executor = DaskExecutor(client)
        pids = set(client.run(os.getpid).values())
        begin = perf_counter()
        factor = gram.cholesky(np.full(n_rows, SCALE))
        seconds = perf_counter() - begin
        assert set(client.run(os.getpid).values()) == pids  # nobody was restarted for want of memory
    # Before and after: what else the machine does slows down both alike.
    alone += lapack_seconds(LAPACK_ROWS)
    share = plan.operations / seconds / (LAPACK_ROWS**3 / 3 / mean(alone))
    print(  # noqa: T201
        f"\nN = {n_rows}: {seconds:.1f} s, {plan.operations / seconds / 1e9:.1f} Gflop/s on one core, "
        f"{share:.2f} of LAPACK's (at least {RATE_SHARE}); planned peak {plan.peak_bytes / 1e6:.0f} MB, "
        f"scratch {plan.scratch_bytes / 1e6:.0f} MB"
    )
    assert np.isfinite(factor.log_determinant())
    assert share >= RATE_SHARE
