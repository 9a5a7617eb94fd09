"""What every place for stores promises: a local path, a file:// address, memory, and an object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from gram_samples import KERNEL, corpus
from tolerances import assert_close

from gramline.learners import LabelingPerceptron
from gramline.pipeline import Model, StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.errors import StoreError
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.storage.groups import group_exists, read_group
from gramline.pipeline.storage.places import MODEL, RANKER
from gramline.pipeline.storage.writer import remove_group, write_group

ARRAYS = {
    "counts": np.arange(12, dtype=np.int32).reshape(3, 4),
    "empty": np.zeros((0, 3)),
    "bytes": np.frombuffer(b"abc", np.uint8),
    "scalar": np.array(7.5),
}
MARK = {MODEL.key: MODEL.value}
NewUrl = Callable[[], str]


@pytest.fixture(params=["local path", "file", "memory", "object store"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NewUrl:
    """A maker of addresses at one place; each of them is used by nobody else."""
    if request.param == "object store":
        store = pytest.importorskip("obstore.store")
        buckets: dict[str, Any] = {}
        monkeypatch.setattr("obstore.store.from_url", lambda url, **_: buckets.setdefault(url, store.MemoryStore()))
    start = {
        "local path": f"{tmp_path}/",
        "file": f"file://{tmp_path}/",
        "memory": "memory://",
        "object store": "s3://bucket/",
    }[request.param]
    return lambda: f"{start}{uuid4().hex}.zarr"


def test_a_group_comes_back_as_it_was_written(new_url: NewUrl) -> None:
    url = new_url()
    assert not group_exists(url)
    write_group(url, {"kind": "test", "nested": {"c": 0.8}}, ARRAYS)
    assert group_exists(url)
    attributes, arrays = read_group(url)
    assert attributes == {"kind": "test", "nested": {"c": 0.8}}
    assert {name: (array.dtype, array.tolist()) for name, array in arrays.items()} == {
        name: (array.dtype, array.tolist()) for name, array in ARRAYS.items()
    }


def test_a_group_is_replaced_only_on_request_and_by_its_kind(new_url: NewUrl) -> None:
    url = new_url()
    write_group(url, MARK, {"x": np.ones(2)})
    with pytest.raises(StoreError, match="exists already"):
        write_group(url, MARK, {"x": np.zeros(2)})
    with pytest.raises(StoreError):
        write_group(url, MARK, {"x": np.zeros(2)}, replaces=(RANKER,))
    assert read_group(url)[1]["x"].tolist() == [1, 1]
    write_group(url, MARK, {"y": np.zeros(3)}, replaces=(MODEL,))
    assert list(read_group(url)[1]) == ["y"]


def test_a_group_can_be_removed(new_url: NewUrl) -> None:
    url, other = new_url(), new_url()
    for place in (url, other):
        write_group(place, MARK, {"x": np.ones(2)})
    remove_group(url)
    assert not group_exists(url)
    assert group_exists(other)
    with pytest.raises(StoreError):
        read_group(url)


def test_a_gram_matrix_is_built_opened_continued_and_appended_to(new_url: NewUrl) -> None:
    url, rows = new_url(), corpus(8)
    built = build_gram(KERNEL, rows, url, block_rows=9)
    assert_close(built.to_numpy(), KERNEL.gram(rows))
    opened = StoredGram.open(url)
    assert opened.status().is_complete
    np.testing.assert_array_equal(opened.to_numpy(), built.to_numpy())
    TileStore(opened.path).tiles.delete(0, 1)
    assert not StoredGram.open(url).status().is_complete
    np.testing.assert_array_equal(build_gram(KERNEL, rows, url, block_rows=9).to_numpy(), built.to_numpy())
    grown = append_gram(url, corpus(3, seed=5))
    assert grown.shape[0] > built.shape[0]
    np.testing.assert_array_equal(grown.to_numpy()[: built.shape[0], : built.shape[0]], built.to_numpy())
    assert verify_gram(url).is_good


def test_another_kernel_is_refused_at_the_same_place(new_url: NewUrl) -> None:
    url, rows = new_url(), corpus(4)
    build_gram(KERNEL, rows, url)
    with pytest.raises(StoreError):
        build_gram(type(KERNEL)(c=0.1), rows, url)
    assert StoredGram.open(url).kernel == KERNEL


def test_a_model_is_saved_and_loaded(new_url: NewUrl) -> None:
    url, rows, new = new_url(), corpus(8), corpus(3, seed=2)
    gram = build_gram(KERNEL, rows, new_url(), block_rows=9)
    model = Model.of(LabelingPerceptron(rounds=2).fit(gram, rows.labels), rows, KERNEL)
    model.save(url)
    assert Model.load(url).predict(new) == model.predict(new)


def test_what_is_not_there_is_refused(new_url: NewUrl) -> None:
    with pytest.raises(StoreError):
        StoredGram.open(new_url())
    with pytest.raises((StoreError, ValueError)):
        Model.load(new_url())
