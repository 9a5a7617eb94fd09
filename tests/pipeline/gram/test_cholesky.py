"""Factors by tiles on disk: equal to LAPACK, resumable, gone afterwards."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, ScriptedExecutor, corpus
from tolerances import assert_close

from gramline.learners.errors import NotPositiveDefiniteError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline import StoredGram, build_gram
from gramline.pipeline.errors import RunError, StoreError
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import cholesky as stored_cholesky
from gramline.pipeline.gram.cholesky import claim_scratch, plan_factor
from gramline.pipeline.storage.places import refusal_number


@pytest.fixture
def gram(tmp_path: Path) -> StoredGram:
    """A store whose every factor goes to disk."""
    found = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10)
    found.factor_limit = 0
    return found


@pytest.fixture(params=["inline", "threads", "dask"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "dask":
        yield DaskExecutor(request.getfixturevalue("dask_client"))
    else:
        yield InlineExecutor(1 if request.param == "inline" else 2)


def scratches(gram: StoredGram) -> list[Path]:
    return sorted(Path(gram.path).parent.glob("a.zarr.factor-*"))


def problem(gram: StoredGram) -> tuple[Any, Any, Any, Any]:
    """Some rows out of order, their scales and shifts, and B itself."""
    random = np.random.default_rng(5)
    rows = random.permutation(gram.shape[0])[: gram.shape[0] - 7]
    scale, shift = random.uniform(0.1, 2.0, len(rows)), random.uniform(0.5, 2.0, len(rows))
    matrix = gram.to_numpy().astype(float)[np.ix_(rows, rows)]
    return rows, scale, shift, np.diag(shift) + scale[:, None] * matrix * scale


def test_a_factor_by_tiles_is_that_of_lapack(gram: StoredGram, executor: Executor) -> None:
    gram.executor = executor
    rows, scale, shift, whole = problem(gram)
    factor = gram.cholesky(scale, shift, rows)
    assert len(scratches(gram)) == 1
    X = np.random.default_rng(6).standard_normal((len(rows), 3))
    assert_close(factor.solve(X), np.linalg.solve(whole, X))
    assert_close(factor.quadratic(X), np.diagonal(X.T @ np.linalg.solve(whole, X)))
    assert_close(factor.log_determinant(), np.linalg.slogdet(whole)[1])
    assert_close(factor.inverse_diagonal(), np.diagonal(np.linalg.inv(whole)))
    gram.factor_limit = 1 << 30
    assert_close(factor.solve(X), gram.cholesky(scale, shift, rows).solve(X))
    del factor
    assert scratches(gram) == []


def test_an_interrupted_factorisation_goes_on(gram: StoredGram) -> None:
    rows, scale, shift, whole = problem(gram)
    n_tiles = plan_factor(gram.store, len(rows), 0).n_tiles

    def fail(number: int, _task: Any) -> None:
        if number > 4:
            raise ValueError("a worker went away")

    gram.executor = ScriptedExecutor(fail)
    with pytest.raises(RunError, match="a worker went away; what was finished is kept"):
        gram.cholesky(scale, shift, rows)
    assert len(scratches(gram)) == 1
    gram.executor = counting = ScriptedExecutor()
    factor = gram.cholesky(scale, shift, rows)
    assert len(counting.calls) == n_tiles - 4
    assert_close(factor.log_determinant(), np.linalg.slogdet(whole)[1])
    assert gram.cholesky(scale, shift, rows) is factor  # no second one beside it
    other = gram.cholesky(2 * scale, shift, rows)
    assert len(scratches(gram)) == 2
    del factor, other
    assert scratches(gram) == []


def test_two_processes_have_a_scratch_each(gram: StoredGram) -> None:
    """Another process that holds the same factorisation is played by a claim of its digest."""
    rows, scale, shift, whole = problem(gram)
    factor = gram.cholesky(scale, shift, rows)
    digest = scratches(gram)[0].name.partition("factor-")[2]
    elsewhere = claim_scratch(gram.path, digest)
    third = claim_scratch(gram.path, digest)
    names = [Path(claim.scratch).name for claim in (elsewhere, third)]
    assert names == [f"a.zarr.factor-{digest}-1", f"a.zarr.factor-{digest}-2"]
    third.release(remove=True)
    elsewhere.release(remove=False)
    assert_close(factor.log_determinant(), np.linalg.slogdet(whole)[1])
    del factor
    again = claim_scratch(gram.path, digest)
    assert Path(again.scratch).name == f"a.zarr.factor-{digest}"
    again.release(remove=True)
    assert [path.name for path in Path(gram.path).parent.glob("a.zarr.*")] == []
    assert claim_scratch("s3://bucket/a.zarr", "x").scratch != claim_scratch("s3://bucket/a.zarr", "x").scratch


def test_a_matrix_that_is_not_positive_definite_leaves_nothing_behind(gram: StoredGram, executor: Executor) -> None:
    gram.executor = executor
    rows, scale, _, _ = problem(gram)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        gram.cholesky(scale, -1e6, rows)
    assert caught.value.row == 0
    assert caught.value.pivot < 0
    assert scratches(gram) == []


def test_a_damaged_tile_is_named(gram: StoredGram) -> None:
    rows, scale, shift, _ = problem(gram)
    factor = gram.cholesky(scale, shift, rows)
    tile = scratches(gram)[0] / "factor" / "c" / "0" / "0"
    tile.write_bytes(b"\0" * tile.stat().st_size)
    with pytest.raises(RunError, match=r"tile \(0, 0\) of the factor .* checksum does not match"):
        factor.log_determinant()


def test_a_labeler_trains_over_tiles_as_in_memory(gram: StoredGram) -> None:
    labels = gram.labels
    dense = DenseGram(gram.to_numpy(), gram.layout.rows.lengths, label_names=gram.label_names)
    tiled, plain = (
        GaussianProcessLabeler(max_sweeps=3, scale=1.0, bound="jensen").fit(one, labels) for one in (gram, dense)
    )
    assert_close(tiled.elbo_, plain.elbo_)
    assert_close(tiled.predict_proba(gram), plain.predict_proba(dense))
    tiled._factors.clear()
    assert scratches(gram) == []


def test_the_plan_says_what_it_takes(gram: StoredGram) -> None:
    n = gram.shape[0]
    n_blocks = -(-n // 10)
    small = plan_factor(gram.store, n, 1 << 30)
    assert (small.is_tiled, small.scratch_bytes) == (False, 0)
    assert small.peak_bytes == n * n * (8 + gram.dtype.itemsize)
    large = plan_factor(gram.store, n, small.peak_bytes - 1)
    assert large.is_tiled
    assert large.scratch_bytes == n_blocks * (n_blocks + 1) // 2 * 800
    assert large.peak_bytes == 8 * 10 * max(40, n + 20)


def test_a_scratch_that_cannot_be_made_is_not_claimed(gram: StoredGram, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, scale, shift, _ = problem(gram)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stored_cholesky, "write_arrays", full)
    with pytest.raises(StoreError) as caught:
        gram.cholesky(scale, shift, rows)
    assert refusal_number(caught.value) == errno.ENOSPC
    assert [path.name for path in Path(gram.path).parent.glob("a.zarr.*")] == []
