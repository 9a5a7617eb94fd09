"""Bytes wanted and bytes free: what is refused before it is written, and what would fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL, corpus

from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline import append_gram, build_gram
from gramline.pipeline.errors import NoRoomError
from gramline.pipeline.gram import room
from gramline.pipeline.gram.plan import Plan, plan_gram
from gramline.pipeline.gram.room import Room, free_bytes, require_room, rows_that_fit, what_fits

SQUARE = GramLayout.symmetric(BlockLayout.of([5, 5, 5, 5], 5))
WIDE = GramLayout.rectangular(BlockLayout.of([5, 5, 5], 5), BlockLayout.of([5, 5], 5))


def plan(layout: GramLayout, itemsize: int = 8, present: int = 0) -> Plan:
    sizes = np.zeros(layout.rows.n_blocks, np.int64), np.zeros(layout.cols.n_blocks, np.int64)
    return plan_gram(layout, list(layout.tiles())[:present], itemsize, sizes)


def test_free_bytes_of_a_path_that_is_not_there_yet(tmp_path: Path) -> None:
    free = free_bytes(str(tmp_path / "not" / "yet.zarr"))
    assert free is not None
    assert abs(free - shutil.disk_usage(tmp_path).free) < 1e9  # others write meanwhile
    assert free_bytes("s3://bucket/x.zarr") is None
    assert free_bytes("memory://x") is None


@pytest.mark.parametrize(
    ("where", "is_fitting", "said"),
    [
        (Room("/x", 100, 100), True, "0.0 MB free"),
        (Room("/x", 101, 100), False, "0.0 MB free"),
        (Room("/x", 1, 30_000_000_000), True, "30.0 GB free"),
        (Room("s3://bucket/x", 10**15, None), True, "an object store has no limit that can be asked"),
        (Room("", 10**15, None), True, "no path is given to look at"),
    ],
)
def test_what_fits_where(where: Room, is_fitting: bool, said: str) -> None:
    assert (where.fits, where.said) == (is_fitting, said)
    if is_fitting:
        where.require()
    else:
        with pytest.raises(NoRoomError):
            where.require()


def test_the_refusal_has_fields_and_one_sentence() -> None:
    with pytest.raises(NoRoomError) as caught:
        Room("/data/x.zarr", 2_100_000_000_000, 30_000_000_000).require("take fewer rows")
    assert (caught.value.needed_bytes, caught.value.free_bytes) == (2_100_000_000_000, 30_000_000_000)
    assert str(caught.value) == "/data/x.zarr would take 2,100.0 GB, but the disk has 30.0 GB free; take fewer rows"


@pytest.mark.parametrize("layout", [SQUARE, WIDE], ids=["square", "wide"])
@pytest.mark.parametrize("n_blocks", range(5))
def test_rows_that_fit_are_as_many_as_can_be(layout: GramLayout, n_blocks: int) -> None:
    n_tiles = n_blocks * (n_blocks + 1) // 2 if layout.is_symmetric else n_blocks * 2
    assert rows_that_fit(layout, 200 * n_tiles, 200) == 5 * n_blocks
    if n_blocks:
        assert rows_that_fit(layout, 200 * n_tiles - 1, 200) == 5 * (n_blocks - 1)


def test_advice() -> None:
    made = plan(SQUARE)  # ten tiles of 200 bytes
    assert what_fits(SQUARE, 1000, made, "float64") == "float32 tiles would fit: they need 0.0 MB"
    expected = "of 20 rows (positions or structures) about 10 as float64, about 15 as float32 would fit: take fewer"
    assert what_fits(SQUARE, 999, made, "float64").startswith(expected)
    small = plan(SQUARE, itemsize=4)
    expected = "of 20 rows (positions or structures) about 15 as float32 would fit: take fewer, or another path"
    assert what_fits(SQUARE, 999, small, "float32") == expected
    assert what_fits(SQUARE, 100, plan(SQUARE, present=5), "float32") == "free some space; what is finished is kept"


def test_compressed_tiles_are_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda _place: 100)
    require_room(plan(SQUARE), SQUARE, str(tmp_path), "float64", "zstd")
    with pytest.raises(NoRoomError):
        require_room(plan(SQUARE), SQUARE, str(tmp_path), "float64", "none")


def test_builds_and_appends_are_refused_before_a_tile_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_gram(KERNEL, corpus(4), tmp_path / "a.zarr", block_rows=10)
    monkeypatch.setattr(room, "free_bytes", lambda _place: 1000)
    with pytest.raises(NoRoomError):
        build_gram(KERNEL, corpus(), tmp_path / "b.zarr", block_rows=10)
    assert not (tmp_path / "b.zarr").exists()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a.zarr").rglob("*") if path.name != "append.lock"}
    with pytest.raises(NoRoomError, match="append fewer structures"):
        append_gram(tmp_path / "a.zarr", corpus(seed=2))
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "a.zarr").rglob("*") if path.name != "append.lock"}
    assert after == before  # not even the structures
    monkeypatch.undo()
    assert append_gram(tmp_path / "a.zarr", corpus(seed=2)).status().is_complete
