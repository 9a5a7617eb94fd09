"""Verification: every kind of damage is found, and repaired to the same bytes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, ScriptedExecutor, chunks, corpus

from gramline.pipeline import build_gram, verify_gram
from gramline.pipeline.errors import StoreDamagedError
from gramline.pipeline.events import Event, TileChecked
from gramline.pipeline.gram.packed_blocks import CORPUS
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.strays import STRAY_SECONDS


@pytest.fixture
def store(tmp_path: Path) -> Path:
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=10)
    return tmp_path / "a.zarr"


def damage(store: Path) -> dict[tuple[int, int], str]:
    """One tile of every kind of damage, and what verify says of it."""
    folder = store / "tiles" / "c"
    tiles = {
        (0, 0): "flip",
        (0, 1): "cut",
        (0, 2): "delete",
        (1, 1): "empty",
        (1, 2): "swap",
        (2, 2): "zero",
        (1, 3): "nan",
    }
    opened = TileStore(str(store))
    for (i, j), kind in tiles.items():
        chunk = folder / str(i) / str(j)
        good = chunk.read_bytes()
        if kind == "flip":
            chunk.write_bytes(good[:9] + bytes([good[9] ^ 1]) + good[10:])
        elif kind == "cut":
            chunk.write_bytes(good[: len(good) // 2])
        elif kind == "delete":
            chunk.unlink()
        elif kind == "empty":
            chunk.write_bytes(b"")
        elif kind == "swap":
            chunk.write_bytes((folder / "0" / "3").read_bytes())  # whole and with a good checksum, but another tile
        else:
            opened.tiles.write(i, j, np.full((10, 10), 0.0 if kind == "zero" else np.inf))
    return tiles


SAID = {
    "flip": "its checksum does not match",
    "cut": "bytes instead of",
    "delete": "it is missing",
    "empty": "it has 0 bytes",
    "swap": "its values belong elsewhere",
    "zero": "its values belong elsewhere",
    "nan": "not a finite number",
}


def test_a_good_store_is_good(store: Path) -> None:
    report = verify_gram(store)
    assert report.is_good
    assert report.bad == ()
    assert report.n_tiles == len(chunks(store))


@pytest.mark.parametrize("place", ["inline", "dask"])
def test_every_damage_is_found_and_repaired(store: Path, place: str, request: pytest.FixtureRequest) -> None:
    where: dict[str, Any] = {"client": request.getfixturevalue("dask_client")} if place == "dask" else {}
    good = chunks(store)
    done = damage(store)
    report = verify_gram(store, **where)
    assert not report.is_good
    assert {(check.i, check.j) for check in report.bad} == set(done)
    for check in report.bad:
        assert check.problem is not None
        assert SAID[done[check.i, check.j]] in check.problem
    assert chunks(store) != good
    repaired = verify_gram(store, repair=True, **where)
    assert (repaired.n_repaired, repaired.is_good) == (len(done), True)
    assert chunks(store) == good
    assert verify_gram(store).bad == ()


def test_only_bad_tiles_are_computed_again(store: Path) -> None:
    (store / "tiles" / "c" / "1" / "2").unlink()
    executor = ScriptedExecutor()
    verify_gram(store, repair=True, executor=executor)
    n_tiles = len(chunks(store))
    assert [(task.i, task.j) for task in executor.calls[n_tiles:]] == [(1, 2)]


def test_repair_removes_old_leftovers_only(store: Path) -> None:
    beside = store.with_name(store.name + ".123.partial")
    beside.mkdir()
    inside = store / "tiles" / "c" / "0" / "0.456.partial"
    young = store / "tiles" / "c" / "0" / "1.789.partial"
    for path in (inside, young):
        path.write_bytes(b"half")
    long_ago = time.time() - STRAY_SECONDS - 60
    os.utime(inside, (long_ago, long_ago))
    os.utime(beside, (long_ago, long_ago))
    assert verify_gram(store, repair=True).n_strays == 2
    assert [path.exists() for path in (beside, inside, young)] == [False, False, True]


def test_progress_is_told_per_tile(store: Path) -> None:
    heard: list[Event] = []
    verify_gram(store, progress=heard.append)
    told = [event for event in heard if isinstance(event, TileChecked)]
    assert [event.n_done for event in told] == list(range(1, told[0].n_tiles + 1))


def test_rectangular_and_single_precision_stores(tmp_path: Path) -> None:
    other = corpus(6, seed=2)
    build_gram(KERNEL, corpus(), tmp_path / "a.zarr", other=other, block_rows=10, dtype="float32", compression="lz4")
    assert verify_gram(tmp_path / "a.zarr").is_good
    folder = tmp_path / "a.zarr" / "tiles" / "c"
    (folder / "0" / "0").write_bytes((folder / "1" / "0").read_bytes())
    assert [(check.i, check.j) for check in verify_gram(tmp_path / "a.zarr").bad] == [(0, 0)]


def test_a_damaged_corpus_cannot_be_verified(store: Path) -> None:
    chunk = next(path for path in (store / "rows" / "0" / "symbols" / "c").rglob("*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-2])
    with pytest.raises(StoreDamagedError) as caught:
        verify_gram(store)
    assert (caught.value.url, caught.value.part) == (str(store), CORPUS)
