"""Append: new blocks only, old bytes untouched, safe to interrupt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL, WITH_PRIOR, ScriptedExecutor, chunks, corpus, sentences

from gramline.kernels import Polynomial
from gramline.kernels.packing import Packed
from gramline.learners.errors import LayoutError
from gramline.pipeline import Corpus, StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.errors import InputError, StoreError

OLD_X, OLD_Y = sentences(10)
NEW_X, NEW_Y = [["a", "never seen", "b"], ["d"] * 4, ["c"]], [["O", "B", "O"], ["O"] * 4, ["B"]]
LABELS = ["B", "O"]
OLD = Corpus.from_sequences(OLD_X, OLD_Y, labels=LABELS)
NEW = Corpus.from_sequences(NEW_X, NEW_Y, labels=LABELS)
BOTH = Corpus.from_sequences(OLD_X + NEW_X, OLD_Y + NEW_Y, labels=LABELS)


def test_the_appended_matrix_is_that_of_the_whole_corpus(tmp_path: Path) -> None:
    build_gram(KERNEL, OLD, tmp_path / "a.zarr", block_rows=10)
    before = chunks(tmp_path / "a.zarr")
    executor = ScriptedExecutor()
    gram = append_gram(tmp_path / "a.zarr", NEW, executor=executor)
    np.testing.assert_allclose(gram.to_numpy(), KERNEL.gram(BOTH), rtol=1e-12)
    after = chunks(tmp_path / "a.zarr")
    assert {name: after[name] for name in before} == before
    assert len(executor.calls) == len(after) - len(before) == gram.layout.n_tiles - len(before)
    reopened = StoredGram.open(tmp_path / "a.zarr")
    assert reopened.labels == BOTH.labels
    assert reopened.status().n_segments == 2
    assert reopened.row_corpus.vocabulary.symbols[-1] == "never seen"
    assert verify_gram(tmp_path / "a.zarr").is_good


def test_many_appends_of_features_with_values(tmp_path: Path) -> None:
    kernel = replace(KERNEL, observation=Polynomial(degree=2))
    binary, valued = [[["w=a"], ["w=b", "x"]]], [[{"w=a": 2.0}, {"new": 0.5}], [{"x": 1.5}]]
    build_gram(kernel, Corpus.from_sequences(binary), tmp_path / "a.zarr", block_rows=4)
    append_gram(tmp_path / "a.zarr", Corpus.from_sequences(valued))
    gram = append_gram(tmp_path / "a.zarr", Corpus.from_sequences(binary + valued))
    whole = Corpus.from_sequences([*binary, *valued, *binary, *valued])
    np.testing.assert_allclose(gram.to_numpy(), kernel.gram(whole), rtol=1e-12)
    assert gram.status().n_segments == 3
    assert gram.row_corpus.n_positions == whole.n_positions


def test_appending_the_same_again_only_completes_it(tmp_path: Path) -> None:
    build_gram(KERNEL, OLD, tmp_path / "a.zarr", block_rows=10)

    def stop(number: int, _task: object) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        append_gram(tmp_path / "a.zarr", NEW, executor=ScriptedExecutor(stop))
    status = StoredGram.open(tmp_path / "a.zarr").status()
    assert (status.is_complete, status.n_segments) == (False, 2)
    executor = ScriptedExecutor()
    gram = append_gram(tmp_path / "a.zarr", NEW, executor=executor)
    assert len(executor.calls) == status.n_tiles - status.n_present
    assert gram.status().n_segments == 2
    np.testing.assert_allclose(gram.to_numpy(), KERNEL.gram(BOTH), rtol=1e-12)
    again = ScriptedExecutor()
    append_gram(tmp_path / "a.zarr", NEW, executor=again)
    assert again.calls == []


def test_a_crash_before_the_commit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_gram(KERNEL, OLD, tmp_path / "a.zarr", block_rows=10)
    from gramline.pipeline.storage.tile_array import TileArray

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TileArray, "resize", crash)
    with pytest.raises(KeyboardInterrupt):
        append_gram(tmp_path / "a.zarr", NEW)
    monkeypatch.undo()
    untouched = StoredGram.open(tmp_path / "a.zarr")
    assert untouched.status().n_segments == 1
    np.testing.assert_array_equal(untouched.to_numpy(), KERNEL.gram(OLD))
    gram = append_gram(tmp_path / "a.zarr", Corpus.from_sequences([["c", "c"]], [["B", "O"]], labels=LABELS))
    assert gram.shape[0] == OLD.n_positions + 2
    assert verify_gram(tmp_path / "a.zarr").is_good


def test_a_build_against_an_appended_store_says_what_it_is(tmp_path: Path) -> None:
    build_gram(KERNEL, OLD, tmp_path / "a.zarr", block_rows=10)
    append_gram(tmp_path / "a.zarr", NEW)
    with pytest.raises(StoreError) as caught:
        build_gram(KERNEL, OLD, tmp_path / "a.zarr")
    assert caught.value.problem.endswith("holds another Gram matrix (corpus: it holds this one with 1 appended to it)")


@pytest.mark.parametrize("place", ["local", "memory"])
def test_two_appends_at_once_both_arrive(tmp_path: Path, place: str) -> None:
    url = str(tmp_path / "a.zarr") if place == "local" else f"memory://{tmp_path.name}/a.zarr"
    build_gram(KERNEL, OLD, url, block_rows=10)
    more = [corpus(3, seed=seed) for seed in (11, 12)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda new: append_gram(url, new), more))
    gram = StoredGram.open(url)
    assert gram.status().n_segments == 3
    assert gram.shape[0] == OLD.n_positions + sum(new.n_positions for new in more)
    assert verify_gram(url).is_good


def test_what_cannot_be_appended_is_refused(tmp_path: Path) -> None:
    build_gram(WITH_PRIOR, OLD, tmp_path / "prior.zarr", block_rows=10)
    build_gram(KERNEL, OLD, tmp_path / "cross.zarr", other=NEW, block_rows=10)
    build_gram(KERNEL, OLD, tmp_path / "a.zarr", block_rows=10)
    strange = Corpus.from_sequences([["a"], ["b", "a"]], [[None], ["Z", "O"]])
    refusals: list[tuple[str, Corpus | Packed, type[Exception], str]] = [
        ("prior", NEW, StoreError, "has an empirical prior: new training labels would change every finished tile"),
        ("cross", NEW, StoreError, "only a symmetric one can be appended to"),
        ("a", Corpus.from_sequences([["a"] * 11]), LayoutError, "structure 0 has 11 rows, more than a block of 10"),
        ("a", Corpus.from_sequences([["z"]], [["O"]]).packed(), StoreError, "another vocabulary or other labels"),
        ("a", strange, StoreError, r"^structure 1, position 0: .*a\.zarr has no label 'Z' \(.*\); rebuild"),
        ("a", OLD.packed().structures(0, 0), InputError, "the corpus to append is empty"),
        ("nowhere", NEW, StoreError, "does not exist"),
    ]
    for name, new, kind, said in refusals:
        with pytest.raises(kind, match=said):
            append_gram(tmp_path / f"{name}.zarr", new)
    assert StoredGram.open(tmp_path / "a.zarr").status().n_segments == 1
