"""Stores from strangers: links, pipes and paths that lead elsewhere are refused, before anything is read or written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from forged import resealed
from gram_samples import KERNEL, corpus

from gramline.pipeline import StoredGram, build_gram, verify_gram
from gramline.pipeline.errors import StoreDamagedError, StoreError, TileCorruptError, TileFailedError
from gramline.pipeline.storage.groups import read_group
from gramline.pipeline.storage.writer import write_group


@pytest.fixture
def store(tmp_path: Path) -> Path:
    build_gram(KERNEL, corpus(4), tmp_path / "a.zarr", block_rows=8)
    return tmp_path / "a.zarr"


def linked(path: Path, target: Path) -> None:
    """What stood at `path` moves to `target`, and a link takes its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize("name", ["zarr.json", "tiles/zarr.json", "tiles", "rows/0/symbols", "rows", "tiles/c"])
def test_links_are_not_followed_by_readers(store: Path, tmp_path: Path, name: str) -> None:
    linked(store / name, tmp_path / "elsewhere" / "x")
    with pytest.raises((StoreError, TileCorruptError), match="link or a device"):
        verify_gram(store)


@pytest.mark.parametrize("name", ["tiles/c/0", "tiles/c", "tiles"])
def test_links_are_not_followed_by_writers(store: Path, tmp_path: Path, name: str) -> None:
    """A repair would otherwise put tiles wherever the link leads."""
    linked(store / name, tmp_path / "elsewhere" / "x")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "elsewhere").rglob("*")}
    with pytest.raises((StoreError, TileFailedError), match=r"link or a device|failed"):
        verify_gram(store, repair=True)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "elsewhere").rglob("*")} == before


def test_a_tile_that_is_a_link_or_a_pipe(store: Path, tmp_path: Path) -> None:
    tile = store / "tiles" / "c" / "0" / "0"
    for make in (lambda: linked(tile, tmp_path / "elsewhere" / "x"), lambda: os.mkfifo(tile)):
        make()  # a pipe that is opened for reading would wait for ever
        with pytest.raises(StoreError, match="link or a device"):
            StoredGram.open(store).tile(0, 0)
        assert (0, 0) not in StoredGram.open(store).store.present()
        tile.unlink()


def test_names_of_arrays_cannot_leave_the_folder(tmp_path: Path) -> None:
    write_group(tmp_path / "secret.zarr", {}, {"x": np.arange(3)})
    write_group(tmp_path / "a.zarr", {}, {"x": np.arange(3)})
    for name in ("../secret.zarr/x", "/etc/passwd", "x/../../secret.zarr/x"):
        resealed(tmp_path / "a.zarr", {"arrays": {name: "0" * 32}})
        with pytest.raises(StoreDamagedError) as caught:
            read_group(tmp_path / "a.zarr")
        assert caught.value.problem.startswith(f"array {name!r}")


def test_a_segment_cannot_leave_the_folder(store: Path, tmp_path: Path) -> None:
    build_gram(KERNEL, corpus(4), tmp_path / "other.zarr", block_rows=8)
    attributes = StoredGram.open(store).store._attributes
    attributes["segments"]["rows"][0]["folder"] = "../other.zarr/rows/0"
    resealed(store, attributes)
    with pytest.raises(StoreDamagedError):
        StoredGram.open(store)


def test_the_folder_itself_may_be_a_link(store: Path, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(store)
    assert verify_gram(tmp_path / "short").is_good
