"""Stores that keep all tiles, some or none: what status, verify, append, export and wrong wishes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.kernels import SequenceLabeling
from gramline.pipeline import StoredGram, append_gram, build_gram, export_gram, verify_gram
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.errors import InputError, NoRoomError, PlanError, StoreError
from gramline.pipeline.gram import room
from gramline.pipeline.gram.keep import Keep, rank
from gramline.pipeline.gram.store import TileStore

KERNEL = SequenceLabeling(reach=1.0)
BLOCK = 96
TILE = 8 * BLOCK * BLOCK
FIRST, MORE = generate_saleslog(16, seed=1), generate_saleslog(8, seed=2)


def built(path: Path, **choices: Any) -> StoredGram:
    return build_gram(KERNEL, FIRST, path, block_rows=BLOCK, **choices)


def test_what_is_kept_comes_first_and_stays_when_the_matrix_grows(tmp_path: Path) -> None:
    sparse = built(tmp_path / "some.zarr", keep=3 * TILE + 5)
    before = sparse.store.present()
    assert before == {(0, 0), (0, 1), (1, 1)}
    assert all(sparse.keeps(*key) for key in before)
    grown = append_gram(tmp_path / "some.zarr", MORE)
    assert grown.store.present() == before
    status = grown.status()
    assert (status.n_tiles, status.n_present, status.is_complete) == (3, 3, True)
    assert status.n_left_out == grown.layout.n_tiles - 3
    whole = append_gram(built(tmp_path / "all.zarr").path, MORE)
    assert np.array_equal(grown.to_numpy(), whole.to_numpy())


def test_an_append_keeps_more_where_there_is_room(tmp_path: Path) -> None:
    sparse = built(tmp_path / "some.zarr", keep="1GB")
    assert sparse.status().n_left_out == 0
    grown = append_gram(tmp_path / "some.zarr", MORE)
    assert grown.status().n_left_out == 0
    assert len(grown.store.present()) == grown.layout.n_tiles


def test_tiles_have_an_order_without_gaps(tmp_path: Path) -> None:
    layout = built(tmp_path / "a.zarr", keep="none").layout
    assert sorted(rank(layout, i, j) for i, j in layout.tiles()) == list(range(layout.n_tiles))
    wide = build_gram(KERNEL, FIRST, tmp_path / "b.zarr", other=MORE, block_rows=BLOCK, keep="none").layout
    assert sorted(rank(wide, i, j) for i, j in wide.tiles()) == list(range(wide.n_tiles))


def test_a_rectangular_matrix_needs_no_tile_either(tmp_path: Path) -> None:
    whole = build_gram(KERNEL, FIRST, tmp_path / "all.zarr", other=MORE, block_rows=BLOCK)
    for keep in ("none", 2 * TILE):
        sparse = build_gram(KERNEL, FIRST, tmp_path / f"{keep}.zarr", other=MORE, block_rows=BLOCK, keep=keep)
        assert np.array_equal(sparse.to_numpy(), whole.to_numpy())


def test_an_interrupted_build_is_not_a_policy(tmp_path: Path) -> None:
    sparse = built(tmp_path / "some.zarr", keep=3 * TILE)
    sparse.store.tiles.delete(0, 1)
    status = StoredGram.open(tmp_path / "some.zarr").status()
    assert (status.n_present, status.n_tiles, status.is_complete) == (2, 3, False)
    with pytest.raises(StoreError, match="2 of 3 tiles"):
        status.require_complete()
    report = verify_gram(tmp_path / "some.zarr")
    assert [(check.i, check.j) for check in report.bad] == [(0, 1)]
    assert report.n_tiles == 3
    assert verify_gram(tmp_path / "some.zarr", repair=True).is_good
    assert built(tmp_path / "some.zarr").status().is_complete  # nothing said: the store's own policy


def test_exports_and_dask_arrays_are_whole(tmp_path: Path) -> None:
    whole, sparse = built(tmp_path / "all.zarr"), built(tmp_path / "none.zarr", keep="none")
    export_gram(sparse.path, tmp_path / "g.npy")
    assert np.array_equal(np.load(tmp_path / "g.npy"), whole.to_numpy())
    assert np.array_equal(sparse.to_dask().compute(scheduler="synchronous"), whole.to_numpy())
    assert sparse.status().stored_bytes == 0


def test_computed_tiles_are_counted_and_read_ones_are_not(tmp_path: Path) -> None:
    sparse = built(tmp_path / "some.zarr", keep=TILE)
    vector = np.ones((sparse.shape[0], 1))
    sparse.matmul(vector)
    assert sparse.tile_reads == 1
    once = sparse.values_computed
    assert once > 0
    sparse.matmul(vector)
    assert sparse.values_computed == 2 * once


def test_a_cache_in_memory_saves_the_second_time(tmp_path: Path) -> None:
    cached = built(tmp_path / "c.zarr", keep="none", tile_cache=1000 * TILE)
    vector = np.ones((cached.shape[0], 1))
    cached.matmul(vector)
    once = cached.values_computed
    cached.matmul(vector)
    assert cached.values_computed == once
    small = built(tmp_path / "d.zarr", keep="none", tile_cache=TILE)
    small.matmul(vector)
    small.matmul(vector)
    assert small.values_computed > once


def test_stores_of_earlier_versions_keep_all(tmp_path: Path) -> None:
    whole = TileStore(built(tmp_path / "a.zarr").path)
    assert "keep" not in whole._attributes
    assert whole.keep == Keep()


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"keep": "some"}, "keep must be all, none, or a size such as 40GB"),
        ({"keep": -4}, "keep must be all, none, or a size such as 40GB"),
        ({"keep": "1kB"}, "is less than one tile"),
        ({"keep": "none", "tile_cache": "1kB"}, "is less than one tile"),
        ({"keep": "none", "tile_cache": "much"}, "tile_cache must be a size"),
        ({"tile_cache": "1GB"}, "tile_cache has no effect where all tiles are kept"),
    ],
)
def test_wrong_wishes(wish: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        built(tmp_path / "a.zarr", **wish)
    assert not (tmp_path / "a.zarr").exists()


def test_more_than_the_disk_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda _: 2 * TILE)
    with pytest.raises(NoRoomError):
        built(tmp_path / "a.zarr", keep=4 * TILE)
    with pytest.raises(NoRoomError, match="keep fewer bytes"):
        built(tmp_path / "a.zarr", keep="900TB")
    assert built(tmp_path / "b.zarr", keep=TILE).status().is_complete


def test_a_cache_larger_than_the_worker(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="smaller tile_cache"):
        built(tmp_path / "a.zarr", keep="none", tile_cache="4GB", limit_bytes=10**9)
    assert not (tmp_path / "a.zarr").exists()


def test_another_policy_on_a_store_that_is_there(tmp_path: Path) -> None:
    built(tmp_path / "a.zarr", keep="none")
    with pytest.raises(StoreError, match="made to keep none of its tiles, not all"):
        built(tmp_path / "a.zarr", keep="all")
    assert built(tmp_path / "a.zarr", keep="none").status().is_complete
