"""Export: the full matrix for other programs, whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from gram_samples import KERNEL, corpus

from gramline.pipeline import StoredGram, build_gram, export_gram
from gramline.pipeline.errors import StoreError, StoreTakenError, TileCorruptError
from gramline.pipeline.storage.places import open_store, refusal_number


@pytest.fixture(scope="module")
def grams(tmp_path_factory: pytest.TempPathFactory) -> list[StoredGram]:
    folder = tmp_path_factory.mktemp("export")
    return [
        build_gram(KERNEL, corpus(), folder / "a.zarr", block_rows=10),
        build_gram(KERNEL, corpus(), folder / "b.zarr", other=corpus(6, seed=2), block_rows=11, dtype="float32"),
    ]


def test_npy(grams: list[StoredGram], tmp_path: Path) -> None:
    for number, gram in enumerate(grams):
        export_gram(gram.path, tmp_path / "deep" / f"{number}.npy")
        found = np.load(tmp_path / "deep" / f"{number}.npy")
        assert found.dtype == gram.dtype
        np.testing.assert_array_equal(found, gram.to_numpy())
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["0.npy", "1.npy"]


def test_plain_zarr(grams: list[StoredGram], tmp_path: Path) -> None:
    for number, gram in enumerate(grams):
        export_gram(gram.path, tmp_path / f"{number}.zarr")
        found = zarr.open_array(tmp_path / f"{number}.zarr", mode="r")
        assert (found.shape, found.dtype) == (gram.shape, gram.dtype)
        np.testing.assert_array_equal(found[...], gram.to_numpy())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.zarr", "1.zarr"]


@pytest.mark.parametrize("ending", ["npy", "zarr"])
def test_an_existing_target_is_replaced_only_on_request(grams: list[StoredGram], tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"a.{ending}"
    export_gram(grams[0].path, target)
    with pytest.raises(StoreTakenError):
        export_gram(grams[1].path, target)
    export_gram(grams[1].path, target, overwrite=True)
    found = np.load(target) if ending == "npy" else zarr.open_array(target, mode="r")
    assert found.shape == grams[1].shape
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("ending", ["npy", "zarr"])
@pytest.mark.parametrize("there", ["a file", "a folder", "a store"])
def test_what_is_no_export_is_never_replaced(grams: list[StoredGram], tmp_path: Path, ending: str, there: str) -> None:
    target = tmp_path / f"a.{ending}"
    if there == "a file":
        target.write_text("hello")
    elif there == "a folder":
        target.mkdir()
        (target / "notes.txt").write_text("hello")
    else:
        build_gram(KERNEL, corpus(2), target, block_rows=10)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match=r"is not an exported array; choose another path, or remove it$"):
        export_gram(grams[0].path, target, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["local", "memory"])
def test_an_array_of_somebody_else_is_never_replaced(grams: list[StoredGram], tmp_path: Path, place: str) -> None:
    target = str(tmp_path / "a.zarr") if place == "local" else f"memory://{tmp_path.name}/a.zarr"
    theirs = zarr.create_array(open_store(target), data=np.arange(6.0).reshape(2, 3))
    for attributes in ({"gramline": "mine"}, {}):
        theirs.attrs.put(attributes)
        with pytest.raises(StoreError, match=r"a Zarr array without the mark of an export .*; choose another path, or"):
            export_gram(grams[0].path, target, overwrite=True)
        np.testing.assert_array_equal(theirs[...], np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("name", ["notes.txt", "c/zarr.json"])
def test_files_of_others_beside_the_chunks_stay(grams: list[StoredGram], tmp_path: Path, name: str) -> None:
    export_gram(grams[0].path, tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / name).write_text("mine")
    with pytest.raises(StoreTakenError) as caught:
        export_gram(grams[1].path, tmp_path / "a.zarr", overwrite=True)
    assert caught.value.holds == name
    assert (tmp_path / "a.zarr" / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("ending", ["npy", "zarr"])
def test_a_broken_store_exports_nothing(tmp_path: Path, ending: str) -> None:
    build_gram(KERNEL, corpus(), tmp_path / "store" / "a.zarr", block_rows=10)
    (tmp_path / "store" / "a.zarr" / "tiles" / "c" / "1" / "2").unlink()
    with pytest.raises(TileCorruptError) as corrupt:
        export_gram(tmp_path / "store" / "a.zarr", tmp_path / f"out.{ending}")
    assert corrupt.value.tile == (1, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_full_disk_is_one_sentence(grams: list[StoredGram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StoreError) as caught:
        export_gram(grams[0].path, tmp_path / "out.npy")
    assert refusal_number(caught.value) == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_other_endings_and_the_store_itself_are_refused(grams: list[StoredGram], tmp_path: Path) -> None:
    for target, said in (
        (tmp_path / "a.csv", r"an export is a .npy file or a .zarr array"),
        ("s3://bucket/a.npy", r"is a url, but a .npy file is kept on this machine"),
        (grams[0].path, "is the store itself"),
    ):
        with pytest.raises(StoreError, match=said):
            export_gram(grams[0].path, target, overwrite=True)


@pytest.mark.parametrize("ending", ["npy", "zarr"])
def test_workers_write_the_same(grams: list[StoredGram], tmp_path: Path, dask_client: Any, ending: str) -> None:
    for number, gram in enumerate(grams):
        for name, client in (("here", None), ("there", dask_client)):
            export_gram(gram.path, tmp_path / f"{name}{number}.{ending}", client=client)
        here, there = (tmp_path / f"{name}{number}.{ending}" for name in ("here", "there"))
        if ending == "npy":
            assert there.read_bytes() == here.read_bytes()
        else:
            found = zarr.open_array(there, mode="r")
            np.testing.assert_array_equal(found[...], gram.to_numpy())
    assert len(list(tmp_path.iterdir())) == 4


def test_a_worker_that_fails_leaves_no_export(tmp_path: Path, dask_client: Any) -> None:
    gram = build_gram(KERNEL, corpus(), tmp_path / "torn.zarr", block_rows=10)
    (tmp_path / "torn.zarr" / "tiles" / "c" / "0" / "0").unlink()
    with pytest.raises(TileCorruptError):
        export_gram(gram.path, tmp_path / "out.npy", client=dask_client)
    assert [path.name for path in tmp_path.iterdir()] == ["torn.zarr"]
