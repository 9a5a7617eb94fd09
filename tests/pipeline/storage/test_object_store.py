"""Stores on an object store, here one in memory: the same life without files and renames."""

from __future__ import annotations

import errno
import json
import pkgutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import obstore
import pytest
from gram_samples import KERNEL, ScriptedExecutor, corpus

from gramline.pipeline import Corpus, StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.errors import StoreError, StoreTakenError
from gramline.pipeline.files import ADVICE
from gramline.pipeline.gram.export import export_gram
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.storage import object_store
from gramline.pipeline.storage.groups import read_group
from gramline.pipeline.storage.places import refusal_number
from gramline.pipeline.storage.writer import write_group

URL = "s3://bucket/a.zarr"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What every s3:// address leads to."""
    from obstore.store import MemoryStore

    store = MemoryStore()
    monkeypatch.setattr("obstore.store.from_url", lambda _url, **_: store)
    return store


@pytest.fixture
def new_url(bucket: Any) -> str:
    """An address that no other test uses: workers remember the stores that they have opened."""
    assert bucket is not None
    return f"s3://bucket/{uuid4().hex}.zarr"


def keys(bucket: Any) -> list[str]:
    return [item["path"] for page in obstore.list(bucket, "tiles/c/") for item in page]


def joined(*parts: Corpus) -> Corpus:
    tokens, labels = ([row for part in parts for row in getattr(part, name)] for name in ("tokens", "labels"))
    return Corpus.from_sequences(tokens, labels, labels=["B", "O"])


def segments(bucket: Any) -> list[str]:
    """The folders with structures that are there, but for what others keep."""
    found = (item["path"].split("/") for page in obstore.list(bucket, "rows/") for item in page)
    return sorted({"/".join(parts[:2]) for parts in found if parts[1] not in ("notes", "zarr.json")})


def named_segments(bucket: Any) -> list[dict[str, Any]]:
    """The folders with structures that the store consists of."""
    found: list[dict[str, Any]] = json.loads(bytes(obstore.get(bucket, "zarr.json").bytes()))["attributes"]["segments"][
        "rows"
    ]
    return found


def in_two_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    monkeypatch.setattr("gramline.pipeline.gram.strays.time.time", lambda: now() + 7200)


def test_build_resume_verify_repair_append(bucket: Any) -> None:
    gram = build_gram(KERNEL, corpus(8), URL, block_rows=10)
    np.testing.assert_array_equal(gram.to_numpy(), KERNEL.gram(corpus(8)))
    assert len(keys(bucket)) == gram.layout.n_tiles
    obstore.delete(bucket, "tiles/c/0/1")
    obstore.put(bucket, "tiles/c/0/2", b"torn")
    resumed = ScriptedExecutor()
    build_gram(KERNEL, corpus(8), URL, executor=resumed)
    assert {(task.i, task.j) for task in resumed.calls} == {(0, 1), (0, 2)}
    good = bytes(obstore.get(bucket, "tiles/c/1/1").bytes())
    obstore.put(bucket, "tiles/c/1/1", good[:20] + bytes([good[20] ^ 1]) + good[21:])
    assert [(check.i, check.j) for check in verify_gram(URL).bad] == [(1, 1)]
    assert verify_gram(URL, repair=True).is_good
    assert bytes(obstore.get(bucket, "tiles/c/1/1").bytes()) == good
    grown = append_gram(URL, corpus(3, seed=5))
    assert StoredGram.open(URL).shape == grown.shape
    with pytest.raises(StoreError, match="corpus: it holds this one with 1 appended"):
        build_gram(KERNEL, corpus(8), URL)


def overtake(monkeypatch: pytest.MonkeyPatch, step: str, other: Callable[[], object]) -> None:
    """Before the first call of the function at `step`, `other` is done from beginning to end."""
    place, _, name = step.rpartition(".")
    owner: Any = pkgutil.resolve_name(place)
    function, waiting = getattr(owner, name), [other]

    def overtaken(*arguments: Any, **more: Any) -> Any:
        if waiting:
            waiting.pop()()
        return function(*arguments, **more)

    monkeypatch.setattr(owner, name, overtaken)


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize(
    "step",
    [
        "gramline.pipeline.gram.append.packed_fingerprint",
        "gramline.pipeline.gram.store.write_blocks",
        "gramline.pipeline.storage.tile_array.TileArray.resize",
        "gramline.pipeline.gram.store.write_attributes",
        "gramline.pipeline.storage.object_store._put_over",
    ],
)
def test_an_append_that_was_overtaken_is_refused_and_nothing_is_lost(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch, step: str, count: int
) -> None:
    first, second = corpus(count, seed=5), corpus(4, seed=6)
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    overtake(monkeypatch, step, lambda: append_gram(new_url, first))
    with pytest.raises(StoreError) as refusal:
        append_gram(new_url, second)
    said = f"another append to {new_url} was faster, or a repair took this one for dead: these structures are not in; "
    assert str(refusal.value) == said + "run it again to add them"
    assert segments(bucket) == sorted(part["folder"] for part in named_segments(bucket))
    whole = joined(corpus(8), first)
    np.testing.assert_allclose(StoredGram.open(new_url).to_numpy(), KERNEL.gram(whole), rtol=1e-12)
    again = append_gram(new_url, second)
    np.testing.assert_allclose(again.to_numpy(), KERNEL.gram(joined(whole, second)), rtol=1e-12)
    assert again.labels == joined(whole, second).labels
    assert verify_gram(new_url).is_good


def killed_append(url: str, more: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that ends before it names what it has written."""
    with monkeypatch.context() as patched:
        patched.setattr("gramline.pipeline.gram.store.write_attributes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            append_gram(url, more)


def test_an_append_that_was_cut_off_before_the_end_leaves_the_store_as_it_was(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote so far is in a folder of its own, and the room it made for tiles may stay."""
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    killed_append(new_url, corpus(9, seed=5), monkeypatch)
    assert bytes(obstore.get(bucket, "zarr.json").bytes()).count(b"rows/") == 1
    np.testing.assert_array_equal(StoredGram.open(new_url).to_numpy(), KERNEL.gram(corpus(8)))
    gram = append_gram(new_url, corpus(1, seed=6))
    np.testing.assert_allclose(gram.to_numpy(), KERNEL.gram(joined(corpus(8), corpus(1, seed=6))), rtol=1e-12)
    assert verify_gram(new_url).is_good


def test_what_a_killed_append_left_is_removed_once_nobody_can_refer_to_it(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    obstore.put(bucket, "rows/notes/mine.txt", b"not an append's")
    for seed in (5, 6):
        killed_append(new_url, corpus(3, seed=seed), monkeypatch)
    append_gram(new_url, corpus(3, seed=7))
    assert len(segments(bucket)) == 4  # the two are young: somebody may still be writing them
    assert verify_gram(new_url, repair=True).n_strays == 0
    in_two_hours(monkeypatch)
    assert verify_gram(new_url).n_strays == 0
    before = TileStore(new_url).identity
    assert verify_gram(new_url, repair=True).n_strays > 10
    assert (len(segments(bucket)), TileStore(new_url).identity) == (2, before)
    assert obstore.head(bucket, "rows/notes/mine.txt")["size"] > 0
    assert verify_gram(new_url, repair=True).n_strays == 0


def test_the_next_append_removes_what_a_killed_one_left(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    killed_append(new_url, corpus(3, seed=5), monkeypatch)
    in_two_hours(monkeypatch)
    gram = append_gram(new_url, corpus(3, seed=6))
    assert sorted(segments(bucket)) == sorted(part["folder"] for part in named_segments(bucket))
    np.testing.assert_allclose(gram.to_numpy(), KERNEL.gram(joined(corpus(8), corpus(3, seed=6))), rtol=1e-12)


def test_an_append_that_slept_while_its_structures_were_swept_is_refused(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    in_two_hours(monkeypatch)
    overtake(monkeypatch, "gramline.pipeline.gram.store.write_attributes", lambda: verify_gram(new_url, repair=True))
    with pytest.raises(StoreError, match="a repair took this one for dead: these structures are not in"):
        append_gram(new_url, corpus(3, seed=5))
    assert segments(bucket) == ["rows/0"]
    assert append_gram(new_url, corpus(3, seed=5)).status().n_segments == 2
    assert verify_gram(new_url).is_good


def test_an_append_whose_answer_was_lost_before_another_append_is_in(
    bucket: Any, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    put_over = object_store._put_over

    def lose_the_answer(place: Any, key: str, content: bytes, version: Any) -> bool:
        done = put_over(place, key, content, version)
        if key != "zarr.json":
            return done
        monkeypatch.setattr(object_store, "_put_over", put_over)
        append_gram(new_url, corpus(4, seed=6))
        return False

    monkeypatch.setattr(object_store, "_put_over", lose_the_answer)
    gram = append_gram(new_url, corpus(3, seed=5))
    whole = joined(corpus(8), corpus(3, seed=5), corpus(4, seed=6))
    np.testing.assert_allclose(gram.to_numpy(), KERNEL.gram(whole), rtol=1e-12)
    assert segments(bucket) == sorted(part["folder"] for part in named_segments(bucket))


def test_a_server_that_cannot_compare_versions_still_notices_what_it_reads(
    new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from obstore.exceptions import NotSupportedError

    put = obstore.put

    def plain(*arguments: Any, mode: Any = None, **more: Any) -> Any:
        if isinstance(mode, dict):
            raise NotSupportedError("no conditions here")
        return put(*arguments, **more, **({} if mode is None else {"mode": mode}))

    monkeypatch.setattr(obstore, "put", plain)
    build_gram(KERNEL, corpus(8), new_url, block_rows=10)
    overtake(
        monkeypatch, "gramline.pipeline.gram.store.write_attributes", lambda: append_gram(new_url, corpus(3, seed=5))
    )
    with pytest.raises(StoreError, match="was faster"):
        append_gram(new_url, corpus(4, seed=6))
    assert append_gram(new_url, corpus(4, seed=6)).status().n_segments == 3
    assert verify_gram(new_url).is_good


def test_a_group_without_attributes_was_never_finished(bucket: Any) -> None:
    write_group(URL, {"kind": "model"}, {"x": np.arange(3)})
    assert read_group(URL)[1]["x"].tolist() == [0, 1, 2]
    with pytest.raises(StoreTakenError) as caught:
        write_group(URL, {}, {})
    assert (caught.value.url, caught.value.holds) == (URL, "")
    obstore.put(bucket, "zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    with pytest.raises(StoreError, match="was not written by gramline to its end"):
        read_group(URL)
    with pytest.raises(StoreTakenError) as caught:
        write_group(URL, {}, {"y": np.arange(2)})
    assert caught.value.holds.startswith("x/")
    write_group(URL, {}, {"x": np.arange(2)})
    assert read_group(URL)[1]["x"].tolist() == [0, 1]


def test_what_others_keep_below_a_prefix_stays(bucket: Any, tmp_path: Path) -> None:
    build_gram(KERNEL, corpus(2), tmp_path / "a.zarr")
    for name in ("other.zarr/zarr.json", "holiday.jpg"):
        obstore.put(bucket, name, b"mine")
        for action in (
            lambda: build_gram(KERNEL, corpus(2), URL),
            lambda: write_group(URL, {}, {"x": np.arange(2)}),
            lambda: export_gram(tmp_path / "a.zarr", URL, overwrite=True),
        ):
            with pytest.raises(StoreTakenError) as caught:
                action()
            assert str(caught.value) == f"{URL} is not empty, it holds {name}; choose another path below it"
        assert [item["path"] for page in obstore.list(bucket) for item in page] == [name]
        obstore.delete(bucket, name)


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_export_replaces_no_group_of_others(bucket: Any, tmp_path: Path, overwrite: bool) -> None:
    build_gram(KERNEL, corpus(2), tmp_path / "a.zarr")
    group = b'{"zarr_format": 3, "node_type": "group", "attributes": {}}'
    for name in ("c/zarr.json", "c/0/0", "measured/zarr.json"):
        for key, content in (("zarr.json", group), (name, b"mine")):
            obstore.put(bucket, key, content)
        with pytest.raises(StoreTakenError) as caught:
            export_gram(tmp_path / "a.zarr", URL, overwrite=overwrite)
        assert caught.value.holds == "zarr.json of a group"
        assert {item["path"] for page in obstore.list(bucket) for item in page} == {"zarr.json", name}
        obstore.delete(bucket, name)


def test_an_export_replaces_an_export_and_nothing_beside_it(bucket: Any, tmp_path: Path) -> None:
    for number in (2, 8):
        build_gram(KERNEL, corpus(number), tmp_path / f"{number}.zarr", block_rows=10)
    export_gram(tmp_path / "8.zarr", URL)
    export_gram(tmp_path / "2.zarr", URL, overwrite=True)
    kept = sorted(item["path"] for page in obstore.list(bucket) for item in page)
    for name in ("holiday.jpg", "c/zarr.json", "c/0/0.backup"):
        obstore.put(bucket, name, b"mine")
        with pytest.raises(StoreTakenError) as caught:
            export_gram(tmp_path / "8.zarr", URL, overwrite=True)
        assert caught.value.holds == name
        assert sorted(item["path"] for page in obstore.list(bucket) for item in page) == sorted([*kept, name])
        obstore.delete(bucket, name)


def test_an_export_that_was_interrupted_is_known_as_one_and_an_array_of_others_is_not(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(8), tmp_path / "a.zarr", block_rows=10)
    with monkeypatch.context() as interrupted:
        interrupted.setattr("zarr.Array.set_block_selection", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            export_gram(tmp_path / "a.zarr", URL)
    export_gram(tmp_path / "a.zarr", URL, overwrite=True)
    document = json.loads(bytes(obstore.get(bucket, "zarr.json").bytes()))
    obstore.put(bucket, "zarr.json", json.dumps(document | {"attributes": {}}).encode())
    before = {item["path"]: item["last_modified"] for page in obstore.list(bucket) for item in page}
    with pytest.raises(StoreError, match="without the mark of an export"):
        export_gram(tmp_path / "a.zarr", URL, overwrite=True)
    assert {item["path"]: item["last_modified"] for page in obstore.list(bucket) for item in page} == before


def test_an_address_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_url: str, **_: object) -> None:
        raise ValueError("no such account\nand more")

    monkeypatch.setattr("obstore.store.from_url", refuse)
    with pytest.raises(StoreError, match=r"^s3://bucket/a.zarr cannot be opened: no such account; check the url, and"):
        StoredGram.open(URL)


@pytest.mark.parametrize("url", ["foo://bucket/a.zarr", "s3://", "://a"])
def test_an_address_of_no_object_store(url: str) -> None:
    said = f"{url} is not the url of an object store; give one like s3://bucket/name, or a path"
    for action in (lambda: StoredGram.open(url), lambda: build_gram(KERNEL, corpus(2), url)):
        with pytest.raises(StoreError) as refusal:
            action()
        assert str(refusal.value) == said


def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(StoreError) as caught:
        build_gram(KERNEL, corpus(2), tmp_path / "file" / "a.zarr")
    assert refusal_number(caught.value) == errno.EEXIST
    assert caught.value.advice == ADVICE[errno.EEXIST]


def test_a_store_that_refuses_is_one_sentence(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from obstore.exceptions import PermissionDeniedError

    def denied(*_: object, **__: object) -> None:
        raise PermissionDeniedError("the key may not read here\nand a page of XML")

    monkeypatch.setattr("zarr.open_group", denied)
    assert bucket is not None
    for action in (lambda: StoredGram.open(URL), lambda: build_gram(KERNEL, corpus(2), URL)):
        with pytest.raises(StoreError) as caught:
            action()
        assert refusal_number(caught.value) == errno.EACCES
        assert caught.value.problem == f"{URL} cannot be written or read: the key may not read here"
