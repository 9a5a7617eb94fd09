"""Entries and digests of rows that workers take from tiles: those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, corpus

from gramline.kernels import Identity, PositionKernel
from gramline.learners.gaussian_process import covariance
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import spread_product, spread_rows, stored
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram


@pytest.fixture(autouse=True)
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_product, "SPREAD_BYTES", 0)
    monkeypatch.setattr(stored, "MOST", 2)


@pytest.fixture(params=["all", "none"])
def gram(request: pytest.FixtureRequest, tmp_path: Path) -> StoredGram:
    made = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16, keep=request.param)
    made.executor = InlineExecutor(2)
    return made


def test_chosen_entries_in_any_order(gram: StoredGram, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows, cols = draw.permutation(gram.shape[0])[:20], draw.integers(0, gram.shape[0], 9)
    found = gram.select(rows, cols)
    assert np.array_equal(found, StoredGram.open(gram.path).to_numpy()[np.ix_(rows, cols)])
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_most_of_a_stored_matrix_is_read_here(gram: StoredGram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST", 0.25)
    asked: list[Any] = []
    monkeypatch.setattr(
        stored, "spread_select", lambda *given: asked.append(given) or spread_rows.spread_select(*given)
    )
    every = np.arange(gram.shape[0])
    assert np.array_equal(gram.select(every, every), StoredGram.open(gram.path).to_numpy())
    assert len(asked) == (gram.n_kept == 0)


def test_entries_between_two_corpora(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", other=corpus(9), block_rows=16)
    rows, cols = np.array([3, 40, 7]), np.arange(20)
    gram.executor = InlineExecutor(2)
    assert np.array_equal(gram.select(rows, cols), gram.to_numpy()[np.ix_(rows, cols)])


def test_who_comes_after_the_end_leaves_nothing(gram: StoredGram, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that ran twice, and was the slower one."""
    tasks: list[Any] = []
    select = spread_rows.select_entries
    monkeypatch.setattr(spread_rows, "select_entries", lambda task: tasks.append(task) or select(task))
    gram.select(np.arange(5), np.arange(5))
    select(tasks[0])
    assert not list(Path(gram.path).parent.glob("*.partial"))


def test_equal_rows_are_found_by_workers(tmp_path: Path) -> None:
    gram = build_gram(PositionKernel(Identity()), corpus(14), tmp_path / "a.zarr", block_rows=16)
    rows = np.random.default_rng(0).permutation(gram.shape[0])[:40]
    alone = covariance.distinct_rows(gram, rows)
    assert len(alone[0]) < len(rows)
    gram.executor, gram.tile_reads = InlineExecutor(2), 0
    shared = covariance.distinct_rows(gram, rows)
    assert all(map(np.array_equal, shared, alone))
    assert gram.tile_reads == gram.layout.rows.n_blocks**2


@pytest.mark.parametrize(
    "learner",
    [GaussianProcessLabeler(max_sweeps=1), GaussianProcessLabeler(approximation="nystrom", rank=8, max_sweeps=1)],
    ids=repr,
)
def test_a_gaussian_process_on_a_cluster(learner: Any, dask_client: Any, tmp_path: Path) -> None:
    found = corpus(14)
    gram = build_gram(KERNEL, found, tmp_path / "a.zarr", block_rows=16)
    alone = learner.fresh().fit(gram, found.labels)
    executor = DaskExecutor(dask_client)
    gram.executor = executor
    shared = learner.fresh().fit(gram, found.labels)
    assert executor.n_sent > 0
    for name in alone.fitted().keys() & set(learner.row_arrays):
        assert np.array_equal(getattr(shared, name), getattr(alone, name)), name
