"""Groups of arrays: what was written comes back, and nothing half-written or damaged does."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.core.sync import _get_loop

from gramline.pipeline.errors import StoreDamagedError, StoreError, StoreTakenError
from gramline.pipeline.storage import groups
from gramline.pipeline.storage import writer as group_writer
from gramline.pipeline.storage.groups import read_group
from gramline.pipeline.storage.places import MODEL, RANKER, refusal_number
from gramline.pipeline.storage.writer import write_group

ARRAYS = {
    "counts": np.arange(12, dtype=np.int32).reshape(3, 4),
    "zeros": np.zeros(5),
    "empty": np.zeros((0, 3)),
    "bytes": np.frombuffer(b"abc", np.uint8),
    "scalar": np.array(7.5),
}


def chunks(path: Path) -> list[Path]:
    return sorted(found for found in path.rglob("*") if found.is_file() and found.name != "zarr.json")


@pytest.mark.parametrize("place", ["local", "memory"])
def test_what_was_written_comes_back(tmp_path: Path, place: str) -> None:
    url = str(tmp_path / "deep" / "model.zarr") if place == "local" else "memory://round-trip"
    write_group(url, {"kind": "test", "nested": {"c": 0.8}}, ARRAYS)
    attributes, arrays = read_group(url)
    assert attributes == {"kind": "test", "nested": {"c": 0.8}}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_a_large_array_is_written_and_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "CHUNK_ITEMS", 6)
    array, line = np.arange(40.0).reshape(20, 2), np.arange(7)
    write_group(tmp_path / "large.zarr", {}, {"array": array, "line": line})
    assert len(chunks(tmp_path / "large.zarr")) == 7 + 2
    _, arrays = read_group(tmp_path / "large.zarr")
    np.testing.assert_array_equal(arrays["array"], array)
    np.testing.assert_array_equal(arrays["line"], line)


def test_a_path_in_use_is_refused_and_replaced_only_on_request(tmp_path: Path) -> None:
    mark = {MODEL.key: MODEL.value}
    write_group(tmp_path / "a", mark, {"x": np.ones(2)})
    with pytest.raises(StoreTakenError, match="exists already; choose another path or remove it"):
        write_group(tmp_path / "a", mark, {"x": np.zeros(2)})
    assert read_group(tmp_path / "a")[1]["x"].tolist() == [1, 1]
    write_group(tmp_path / "a", mark, {"y": np.zeros(2)}, replaces=(RANKER, MODEL))
    assert list(read_group(tmp_path / "a")[1]) == ["y"]
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("place", ["local", "memory"])
def test_only_the_kinds_that_were_named_are_replaced(tmp_path: Path, place: str) -> None:
    url = str(tmp_path / "a") if place == "local" else "memory://strangers"
    write_group(url, {"of": "something else"}, {"x": np.ones(2)})
    with pytest.raises(StoreError, match="is not a model but a Zarr group of something else; choose another path, or"):
        write_group(url, {}, {"y": np.zeros(2)}, replaces=(MODEL, RANKER))
    assert list(read_group(url)[1]) == ["x"]
    assert [found.name for found in tmp_path.iterdir()] == (["a"] if place == "local" else [])


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "delete"])
def test_damage_is_an_error_never_a_number(tmp_path: Path, damage: str) -> None:
    write_group(tmp_path / "a", {}, {"ones": np.ones(50), "counts": np.arange(50)})
    for chunk in chunks(tmp_path / "a"):
        good = chunk.read_bytes()
        if damage == "flip":
            chunk.write_bytes(good[:9] + bytes([good[9] ^ 1]) + good[10:])
        elif damage == "cut":
            chunk.write_bytes(good[:-3])
        elif damage == "empty":
            chunk.write_bytes(b"")
        else:
            chunk.unlink()
        with pytest.raises(StoreDamagedError):
            read_group(tmp_path / "a")
        chunk.write_bytes(good)
    assert read_group(tmp_path / "a")[1]["counts"][7] == 7


def test_what_is_not_a_group_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "zarr.json").write_text('{"zarr_format": 3, "node')
    for name, said in [
        ("nowhere", "does not exist"),
        ("file", "is not a store but a file"),
        ("folder", "is not a store but an empty folder"),
        ("foreign", "was not written by gramline to its end"),
        ("broken", "is not a store but something whose zarr.json cannot be read"),
    ]:
        with pytest.raises(StoreError, match=said):
            read_group(tmp_path / name)


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zarr writes in a thread of its own, which goes on after Ctrl-C has cut its caller short."""

    async def late(folder: Path) -> None:
        await asyncio.sleep(0.1)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "late").write_text("written after the interruption")

    def interrupted(group: zarr.Group, _arrays: object) -> None:
        asyncio.run_coroutine_threadsafe(late(Path(str(group.store_path.store.root))), _get_loop())
        raise KeyboardInterrupt

    monkeypatch.setattr(group_writer, "write_arrays", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_group(tmp_path / "a", {}, {"x": np.ones(2)})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(group_writer, "write_arrays", full)
    with pytest.raises(StoreError) as caught:
        write_group(tmp_path / "a", {}, {"x": np.ones(2)})
    assert refusal_number(caught.value) == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
