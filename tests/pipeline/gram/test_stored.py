"""The stored operator beyond the contract: what it reads, how exactly it multiplies, what it turns into."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, chunks, corpus
from hypothesis import given, settings
from hypothesis import strategies as st

from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline import Corpus, StoredGram, build_gram
from gramline.pipeline.errors import StoreError, TileCorruptError
from gramline.pipeline.events import Event, TilesRead
from gramline.pipeline.gram.product import BUFFERS_KEPT
from gramline.pipeline.gram.read_progress import report_reads


@pytest.fixture(scope="module")
def gram(tmp_path_factory: pytest.TempPathFactory) -> StoredGram:
    return build_gram(KERNEL, corpus(), tmp_path_factory.mktemp("stored") / "a.zarr", block_rows=10)


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> StoredGram:
    path = tmp_path_factory.mktemp("stored") / "b.zarr"
    return build_gram(KERNEL, corpus(), path, other=corpus(6, seed=2), block_rows=10)


def reads(gram: StoredGram, action: Any) -> int:
    before = gram.tile_reads
    action()
    return gram.tile_reads - before


def test_a_product_reads_every_stored_tile_once(gram: StoredGram, cross: StoredGram) -> None:
    ones = np.ones((gram.shape[0], 2))
    assert reads(gram, lambda: gram.matmul(ones)) == gram.layout.n_tiles
    assert reads(cross, lambda: cross.matmul(ones, transpose=True)) == cross.layout.n_tiles


def test_tiles_that_meet_only_zeros_are_not_read(gram: StoredGram, cross: StoredGram) -> None:
    W = np.zeros((gram.shape[0], 2))
    assert reads(gram, lambda: gram.matmul(W)) == 0
    W[gram.layout.rows.rows(1)] = 1.0
    assert reads(gram, lambda: gram.matmul(W)) == gram.layout.rows.n_blocks
    assert reads(cross, lambda: cross.matmul(W, transpose=True)) == cross.layout.cols.n_blocks
    assert reads(cross, lambda: cross.matmul(np.ones((cross.shape[1], 1)))) == cross.layout.n_tiles


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gaussian_process_reads_tiles_once_for_all_labels_and_sweeps(tmp_path: Path, dtype: str) -> None:
    stored = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, dtype=dtype)
    n_blocks = stored.layout.rows.n_blocks
    learner = GaussianProcessLabeler(max_sweeps=4)
    # Equal rows are looked for in every block, then the diagonal, and all tiles for what is held.
    assert reads(stored, lambda: learner.fit(stored, corpus().labels)) == n_blocks**2 + n_blocks + stored.layout.n_tiles
    dense = GaussianProcessLabeler(max_sweeps=4).fit(DenseGram.of(KERNEL, corpus()), corpus().labels)
    assert learner.elbo_ == pytest.approx(dense.elbo_, rel=1e-6)
    # Where a factor is too large for memory, nothing is held.
    stored.factor_limit = 0
    assert stored.dense(np.arange(stored.shape[0])) is None


def test_column_blocks_count_what_they_read(gram: StoredGram) -> None:
    assert reads(gram, lambda: list(gram.column_blocks(1, [0, 2]))) == 2
    assert reads(gram, lambda: gram.tile(2, 0)) == 1
    assert reads(gram, gram.diagonal) == gram.layout.rows.n_blocks


def test_memory_is_used_again_only_when_nobody_holds_a_tile_in_it(gram: StoredGram) -> None:
    n_blocks = gram.layout.rows.n_blocks
    kept = [tile for _ in range(3) for _, tile in gram.column_blocks(0)]
    expected = gram.to_numpy()[:, gram.layout.cols.rows(0)]
    for number, tile in enumerate(kept):
        np.testing.assert_array_equal(tile, expected[gram.layout.rows.rows(number % n_blocks)])
    part = kept[0][:1, 1:]
    addresses = {tile.base.__array_interface__["data"][0] for tile in kept}
    assert len(addresses) == len(kept)
    del kept, tile
    for _, tile in gram.column_blocks(1):
        assert not np.shares_memory(tile, part)
    del tile
    seen = {tile.__array_interface__["data"][0] for _ in range(5) for _, tile in gram.column_blocks(1)}
    assert len(seen) <= BUFFERS_KEPT
    np.testing.assert_array_equal(part, expected[:1, 1 : expected.shape[1]])


def test_leaving_a_stream_early_is_clean(gram: StoredGram) -> None:
    first = next(iter(gram.column_blocks(0)))
    np.testing.assert_array_equal(first[1], gram.tile(0, 0))


def test_single_precision_tiles_are_multiplied_in_double(tmp_path: Path) -> None:
    single = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, dtype="float32")
    matrix = single.to_numpy().astype(float)
    W = np.random.default_rng(0).normal(size=(len(matrix), 4))
    exact = matrix @ W
    scale = np.abs(exact).max()
    assert np.abs(single.matmul(W) - exact).max() < 1e-13 * scale
    asked = single.matmul(W.astype(np.float32))  # type: ignore[arg-type]
    assert asked.dtype == np.float64
    assert 1e-13 * scale < np.abs(asked - exact).max() < 1e-5 * scale


@settings(max_examples=8)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    other=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    block_rows=st.integers(5, 12),
    seed=st.integers(0, 100),
)
def test_any_blocks_give_the_same_products(lengths: list[int], other: list[int], block_rows: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows, cols = (
        Corpus.from_sequences([[str(draw.integers(3)) for _ in range(n)] for n in sizes]) for sizes in (lengths, other)
    )
    url = f"memory://any-{block_rows}-{seed}-{lengths}-{other}"
    square = build_gram(KERNEL, rows, url, block_rows=block_rows)
    matrix = KERNEL.gram(rows)
    W = draw.normal(size=(len(matrix), 2)) * (draw.random((len(matrix), 1)) < 0.5)
    np.testing.assert_allclose(square.matmul(W), matrix @ W, rtol=1e-9, atol=1e-9)
    wide = build_gram(KERNEL, rows, url + "x", other=cols, block_rows=block_rows)
    between = KERNEL.gram(rows, cols)
    np.testing.assert_allclose(wide.matmul(W, transpose=True), between.T @ W, rtol=1e-9, atol=1e-9)
    V = draw.normal(size=(between.shape[1], 2))
    np.testing.assert_allclose(wide.matmul(V), between @ V, rtol=1e-9, atol=1e-9)


def test_a_selection_in_any_order(gram: StoredGram, cross: StoredGram) -> None:
    rows, cols = np.array([40, 0, 7, 21]), np.array([3, 39, 3])
    np.testing.assert_array_equal(gram.select(rows, cols), gram.to_numpy()[np.ix_(rows, cols)])
    cols = np.array([8, 0])
    np.testing.assert_array_equal(cross.select(rows, cols), cross.to_numpy()[np.ix_(rows, cols)])
    few = np.array([0, 1])
    assert reads(gram, lambda: gram.select(few, few)) == 1


def test_the_dask_array_is_the_mirrored_matrix(gram: StoredGram, cross: StoredGram, dask_client: Any) -> None:
    for stored in (gram, cross):
        lazy = stored.to_dask()
        assert lazy.chunks[0] == tuple(np.diff(stored.layout.rows.block_starts))
        np.testing.assert_array_equal(dask_client.compute(lazy).result(), stored.to_numpy())
        W = np.ones((stored.shape[1], 2))
        np.testing.assert_allclose((lazy @ W).compute(scheduler="synchronous"), stored.matmul(W))


def test_what_it_knows_of_its_corpora(gram: StoredGram, cross: StoredGram) -> None:
    assert gram.labels == gram.col_labels == corpus().labels
    assert (cross.labels, cross.col_labels) == (corpus().labels, corpus(6, seed=2).labels)
    assert gram.kernel == KERNEL
    np.testing.assert_array_equal(gram.row_corpus.symbols, corpus().packed().symbols)
    unlabeled = build_gram(KERNEL, Corpus.from_sequences([["a"], ["b", "a"]], [["X"], [None, "Y"]]), "memory://some")
    assert unlabeled.labels == [["X"], [None, "Y"]]


def test_status(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, dtype="float32")
    (tmp_path / "a.zarr" / "tiles" / "c" / "0" / "1").unlink()
    status = StoredGram.open(tmp_path / "a.zarr").status()
    assert status.shape == gram.shape
    assert (status.n_tiles, status.n_present) == (gram.layout.n_tiles, gram.layout.n_tiles - 1)
    assert not status.is_complete
    assert status.stored_bytes == sum(map(len, chunks(tmp_path / "a.zarr").values()))
    assert (status.dtype, status.compression, status.block_rows, status.n_segments) == ("float32", "none", 10, 1)
    assert status.kernel["c"] == KERNEL.c


def test_any_read_of_a_broken_store_is_an_error(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10)
    chunk = tmp_path / "a.zarr" / "tiles" / "c" / "1" / "2"
    good = chunk.read_bytes()
    for broken in (good[:-1], b"", good[:100] + bytes([good[100] ^ 1]) + good[101:]):
        chunk.write_bytes(broken)
        for action in (
            lambda: gram.tile(2, 1),
            lambda: list(gram.column_blocks(1)),
            lambda: gram.matmul(np.ones((gram.shape[0], 1))),
            gram.to_numpy,
            lambda: gram.to_dask().compute(scheduler="synchronous"),
        ):
            with pytest.raises(TileCorruptError) as corrupt:
                action()
            assert corrupt.value.tile == (1, 2)


def test_wrong_shapes_and_paths_are_refused(gram: StoredGram, cross: StoredGram, tmp_path: Path) -> None:
    refusals: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: gram.matmul(np.ones((3, 1))), LearnerError, r"has shape \(3, 1\), but it needs \d+ rows"),
        (cross.diagonal, LearnerError, "only a symmetric Gram matrix has a diagonal"),
        (lambda: StoredGram.open(tmp_path / "nowhere"), StoreError, "does not exist"),
    ]
    for action, kind, said in refusals:
        with pytest.raises(kind, match=said):
            action()
    assert "shape=" in repr(gram)


def test_reads_are_reported_until_the_end(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    all_read = threading.Event()

    def hear(event: Event) -> None:
        if isinstance(event, TilesRead) and (event.n_reads, event.n_tiles) == (2 * event.n_tiles, gram.layout.n_tiles):
            all_read.set()

    with report_reads(gram, hear, every=0.01):
        for _ in range(2):
            gram.matmul(np.ones((gram.shape[1], 1)))
        assert all_read.wait(timeout=60)
    assert "read-progress" not in {thread.name for thread in threading.enumerate()}
