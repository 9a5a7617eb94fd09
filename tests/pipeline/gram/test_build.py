"""The build: equals the matrix in memory, goes on where it was, refuses what does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, WITH_PRIOR, ScriptedExecutor, chunks, corpus

from gramline.kernels import DagLabeling, Polynomial, SequenceLabeling, SubsetTree, Tagging, TreeLabeling
from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelError, KernelOverflowError
from gramline.learners.errors import LayoutError
from gramline.pipeline import Corpus, append_gram, build_gram, verify_gram
from gramline.pipeline.errors import InputError, PlanError, StoreError
from gramline.pipeline.events import BuildFinished, BuildStarted, Event, TileDone
from gramline.pipeline.executors.base import InlineExecutor


@pytest.mark.parametrize(
    ("kernel", "block_rows", "dtype"),
    [
        (KERNEL, 7, "float64"),
        (KERNEL, None, "float32"),
        (WITH_PRIOR, 16, "float64"),
        (replace(KERNEL, observation=Polynomial(degree=2)), 16, "float32"),
    ],
)
def test_stored_equals_in_memory(tmp_path: Path, kernel: SequenceLabeling, block_rows: int | None, dtype: str) -> None:
    gram = build_gram(kernel, corpus(), tmp_path / "a.zarr", block_rows=block_rows, dtype=dtype)
    ready = kernel.prepare(corpus().packed())
    np.testing.assert_array_equal(gram.to_numpy(), kernel.tile(ready, ready, dtype))
    cross = build_gram(kernel, corpus(), tmp_path / "b.zarr", other=corpus(5, seed=4), block_rows=block_rows)
    np.testing.assert_array_equal(cross.to_numpy(), kernel.gram(corpus(), corpus(5, seed=4)))


STRUCTURES: dict[str, tuple[Kernel, Corpus]] = {
    "trees": (
        TreeLabeling(c=0.7),
        Corpus.from_trees([["a", "b", "a"], ["b", "a"], ["a"]], [[[1, 2], [], []], [[1], []], [[]]]),
    ),
    "dags": (
        DagLabeling(c=0.7),
        Corpus.from_dags([["a", "b", "a"], ["b", "a"], ["a"]], [[(0, 1), (0, 2)], [(0, 1)], []]),
    ),
    "parses": (SubsetTree(decay=0.5), Corpus.from_parses(["(S (A a) (B b))", "(S (A a) (B c))", "(A a)", "(B b)"])),
    "tagged": (
        Tagging(decay=0.5),
        Corpus.from_tagged([[("a", "X"), ("b", "Y")], [("a", "X")], [("b", "Y")], [("b", "X")]]),
    ),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_kind_of_structure_is_stored(tmp_path: Path, kind: str) -> None:
    kernel, structures = STRUCTURES[kind]
    gram = build_gram(kernel, structures, tmp_path / "a.zarr", block_rows=3)
    assert gram.layout.rows.n_blocks > 1
    assert gram.shape[0] == (structures.n_positions if kernel.per_position else len(structures))
    np.testing.assert_allclose(gram.to_numpy(), kernel.gram(structures), rtol=1e-12)
    assert verify_gram(tmp_path / "a.zarr").is_good
    grown = append_gram(tmp_path / "a.zarr", structures)
    np.testing.assert_allclose(grown.to_numpy(), np.tile(kernel.gram(structures), (2, 2)), rtol=1e-12)


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_local_threads_and_dask_write_the_same_bytes(tmp_path: Path, dask_client: Any, compression: str) -> None:
    places = {
        "inline": {"executor": InlineExecutor()},
        "threads": {"executor": InlineExecutor(3)},
        "dask": {"client": dask_client},
    }
    for name, where in places.items():
        build_gram(KERNEL, corpus(), tmp_path / name, block_rows=10, compression=compression, **where)  # type: ignore[arg-type]
    assert chunks(tmp_path / "inline") == chunks(tmp_path / "threads") == chunks(tmp_path / "dask")
    assert len(chunks(tmp_path / "inline")) > 10


def test_a_second_build_computes_nothing_and_says_so(tmp_path: Path) -> None:
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10)
    heard: list[Event] = []
    executor = ScriptedExecutor()
    gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", executor=executor, progress=heard.append)
    assert executor.calls == []
    started, finished = heard
    assert isinstance(started, BuildStarted)
    assert isinstance(finished, BuildFinished)
    assert (started.n_present, finished.n_computed) == (gram.layout.n_tiles, 0)


def test_events_add_up(tmp_path: Path) -> None:
    heard: list[Event] = []
    gram = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, progress=heard.append)
    started, *tiles, finished = heard
    assert isinstance(started, BuildStarted)
    assert isinstance(finished, BuildFinished)
    assert [event.n_done for event in tiles if isinstance(event, TileDone)] == list(range(1, gram.layout.n_tiles + 1))
    assert sum(event.cells for event in tiles if isinstance(event, TileDone)) == started.cells
    assert finished.n_computed == started.n_tiles == gram.layout.n_tiles
    assert finished.tile_seconds == pytest.approx(sum(e.report.seconds for e in tiles if isinstance(e, TileDone)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernel": replace(KERNEL, gap=0.5)}, r"kernel.gap: 0.25 instead of 0.5"),
        ({"corpus": corpus(seed=1)}, "corpus: it holds another one"),
        ({"dtype": "float32"}, "dtype: float64 instead of float32"),
        ({"other": corpus(3)}, "shape: it is symmetric"),
        ({"block_rows": 11}, "has blocks of 10 rows, not 11; leave the block size out"),
        ({"compression": "zstd"}, "has compression 'none', not 'zstd'; leave the compression out"),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10)
    before = chunks(tmp_path / "a.zarr")
    with pytest.raises(StoreError, match=said):
        build_gram(**({"kernel": KERNEL, "corpus": corpus(), "path": tmp_path / "a.zarr"} | changed))
    assert chunks(tmp_path / "a.zarr") == before


def test_a_path_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for name in ("notes", "file"):
        with pytest.raises(StoreError, match=r"is not a store|is a file"):
            build_gram(KERNEL, corpus(), tmp_path / name)
    assert (tmp_path / "notes" / "a.txt").read_text() == (tmp_path / "file").read_text() == "keep"
    (tmp_path / "empty").mkdir()
    assert build_gram(KERNEL, corpus(3), tmp_path / "empty").shape[0] > 0


def test_refusals_before_anything_is_written(tmp_path: Path) -> None:
    long = Corpus.from_sequences([["a"] * 3, ["b"] * 40])
    both = {"path": "memory://never", "client": object(), "executor": InlineExecutor()}
    refusals: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"corpus": long, "block_rows": 16}, LayoutError, "structure 1 has 40 rows, more than a block of 16"),
        ({"corpus": corpus().packed().structures(0, 0)}, InputError, "the corpus is empty"),
        ({"block_rows": 0}, InputError, "block_rows must be a whole number of at least 1, got 0"),
        (both, InputError, "give a client or an executor, not both"),
        ({"kernel": "sequence"}, KernelError, "expected a kernel such as SequenceLabeling"),
    ]
    for changed, kind, said in refusals:
        with pytest.raises(kind, match=said):
            build_gram(**({"kernel": KERNEL, "corpus": corpus(), "path": tmp_path / "a.zarr"} | changed))
    assert list(tmp_path.iterdir()) == []


def test_a_plan_too_large_for_the_workers_is_refused(tmp_path: Path) -> None:
    executor = ScriptedExecutor()
    with pytest.raises(PlanError):
        build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10, limit_bytes=1000, executor=executor)
    assert executor.calls == []


def test_a_long_structure_grows_the_default_block(tmp_path: Path) -> None:
    long = Corpus.from_sequences([["a", "b"] * 1200, ["b"]])
    assert build_gram(KERNEL, long, tmp_path / "a.zarr", dtype="float32").layout.rows.block_rows == 2400


@pytest.mark.parametrize("place", ["inline", "dask"])
def test_overflow_is_the_users_error_and_is_not_retried(tmp_path: Path, dask_client: Any, place: str) -> None:
    many = Corpus.from_sequences([["b"], ["c"], ["a", "d"], ["a"] * 6])
    where = {"client": dask_client} if place == "dask" else {}
    counting = ScriptedExecutor()
    for name, how in (("a.zarr", where), ("b.zarr", {"executor": counting})):
        with pytest.raises(KernelOverflowError) as caught:
            build_gram(SequenceLabeling(c=1e40), many, tmp_path / name, block_rows=6, **how)  # type: ignore[arg-type]
        assert (caught.value.problem, caught.value.row, caught.value.column) == ("SequenceLabeling", 3, 3)
    assert len({(task.i, task.j) for task in counting.calls}) == len(counting.calls)


def test_packed_corpora_and_memory_stores_work(tmp_path: Path) -> None:
    packed = corpus().packed()
    stored = build_gram(KERNEL, packed, "memory://packed", block_rows=10)
    np.testing.assert_array_equal(stored.to_numpy(), KERNEL.gram(packed))
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr")
    assert build_gram(KERNEL, packed, tmp_path / "a.zarr").status().is_complete
