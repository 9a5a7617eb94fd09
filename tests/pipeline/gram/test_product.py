"""Products shared among the workers of a cluster: the same numbers, every tile read once, nothing left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, corpus

from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.errors import TileCorruptError
from gramline.pipeline.executors.base import InlineExecutor, Outcome, Result, Task
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import product as module
from gramline.pipeline.gram import spread_product
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram


@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.parametrize("small", [0, 16 * 24 * 3, 20 * 24 * 3, 1_000_000])
def test_single_precision_products_by_strips_of_any_size(
    tmp_path: Path, is_symmetric: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gram = build_gram(
        KERNEL,
        corpus(14),
        tmp_path / "a.zarr",
        other=None if is_symmetric else corpus(9),
        block_rows=24,
        dtype="float32",
    )
    W = np.random.default_rng(0).normal(size=(gram.shape[1], 3))
    monkeypatch.setattr(module, "SMALL_PRODUCT", small)
    product = module.TileProduct(gram.layout, W.astype(np.float32))
    rows = {0: 2**21 // (4 * 24), 1_000_000: 1_000_000 // 72}.get(small, small // 72)
    assert product._strip_rows(24) == rows
    single = gram.matmul(W.astype(np.float32))  # type: ignore[arg-type]
    np.testing.assert_allclose(single, gram.to_numpy().astype(float) @ W, rtol=1e-5, atol=1e-5 * np.abs(single).max())
    assert module.TileProduct(gram.layout, W)._strip_rows(24) == 2**21 // (8 * 24)


class Recording:
    """Two threads by its own account; remembers its tasks."""

    n_threads = 2

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Iterator[Outcome[Task, Result]]:
        for outcome in InlineExecutor().run(function, tasks, retries=retries):
            self.tasks.append(outcome.task)
            yield outcome


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_product, "SPREAD_BYTES", 0)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.usefixtures("spread")
def test_the_product_is_that_of_one_process(tmp_path: Path, is_symmetric: bool, transpose: bool) -> None:
    other = None if is_symmetric else corpus(9)
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", other=other, block_rows=16)
    W = np.random.default_rng(0).normal(size=(gram.shape[0 if transpose else 1], 3))
    alone = StoredGram.open(gram.path).matmul(W, transpose=transpose)
    executor = Recording()
    gram.executor = executor
    assert np.array_equal(gram.matmul(W, transpose=transpose), alone)  # bit for bit
    keys = [key for task in executor.tasks for key in task.keys]
    assert sorted(keys) == sorted(gram.layout.tiles())
    assert gram.tile_reads == gram.layout.n_tiles
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("across", [1, 2, 12])
def test_squares_of_any_size_add_up_alike(tmp_path: Path, across: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sums in the same order, here and elsewhere; a worker asks only for rows of W that it needs."""
    monkeypatch.setattr(module, "SQUARES_ACROSS", across)
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16, dtype="float32")
    W = np.random.default_rng(0).normal(size=(gram.shape[1], 3)).astype(np.float32)
    W[: gram.layout.rows.block_starts[2]] = 0.0
    alone = gram.matmul(W)  # type: ignore[arg-type]
    np.testing.assert_allclose(alone, gram.to_numpy().astype(float) @ W, rtol=1e-5, atol=1e-5 * np.abs(alone).max())
    gram.executor = executor = Recording()
    assert np.array_equal(gram.matmul(W), alone)  # type: ignore[arg-type]
    side = module.square_side(gram.layout)
    assert side == max(1, min(module.LARGEST_SQUARE, gram.layout.rows.n_blocks // across))
    assert all(len({(i // side, j // side) for i, j in task.keys}) == 1 for task in executor.tasks)
    assert (0, 1) not in {key for task in executor.tasks for key in task.keys}
    assert len({task.place for task in executor.tasks}) == len(executor.tasks)


@pytest.mark.usefixtures("spread")
def test_a_product_of_nothing_is_nothing(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    gram.executor = Recording()
    assert not gram.matmul(np.zeros((gram.shape[1], 2))).any()


@pytest.mark.usefixtures("spread")
def test_who_comes_after_the_end_leaves_nothing(tmp_path: Path) -> None:
    """A task that ran twice, and was the slower one."""
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    gram.executor = executor = Recording()
    gram.matmul(np.ones((gram.shape[1], 2)))
    spread_product._factors.clear()
    assert spread_product.multiply_tiles(executor.tasks[0]) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.usefixtures("spread")
def test_a_learner_trains_over_a_cluster(tmp_path: Path, dask_client: Any) -> None:
    found = corpus(14)
    gram = build_gram(KERNEL, found, tmp_path / "a.zarr", block_rows=16)
    alone = KernelZScoreLabeler(0.1).fit(gram, found.labels)
    gram.executor = DaskExecutor(dask_client)
    shared = KernelZScoreLabeler(0.1).fit(gram, found.labels)
    assert np.array_equal(shared.dual_, alone.dual_)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.usefixtures("spread")
def test_a_missing_tile_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    gram.store.tiles.delete(0, 1)
    gram.executor = Recording()
    with pytest.raises(TileCorruptError) as corrupt:
        gram.matmul(np.ones((gram.shape[1], 2)))
    assert corrupt.value.tile == (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_few_tiles_stay_in_this_process(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    gram.executor = executor = Recording()
    assert gram.matmul(np.ones((gram.shape[1], 2))).shape == (gram.shape[0], 2)
    assert executor.tasks == []
