"""The store: what is written is found, what is damaged, foreign or missing is told, never returned as a number."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from gram_samples import KERNEL, WITH_PRIOR, corpus

from gramline.kernels import SequenceLabeling
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.errors import StoreDamagedError, StoreError, TileCorruptError
from gramline.pipeline.gram.build import create_or_open
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.strays import STRAY_SECONDS, sweep_partial
from gramline.pipeline.storage import object_store
from gramline.pipeline.storage.groups import open_group
from gramline.pipeline.storage.writer import write_attributes


def create(
    url: str | Path, kernel: SequenceLabeling = KERNEL, *, dtype: str = "float64", compression: str = "none"
) -> TileStore:
    packed = corpus().packed()
    ready = kernel.prepare(packed)
    layout = GramLayout.symmetric(BlockLayout.of(ready.lengths, 10))
    TileStore.write(str(url), GramSpec.of(kernel, packed, None, dtype), (ready, None), layout, compression)
    return TileStore(str(url))


def random_tile(store: TileStore, i: int, j: int) -> np.ndarray[Any, Any]:
    height, width = (np.diff(side.block_starts) for side in (store.layout.rows, store.layout.cols))
    return np.random.default_rng((i, j)).random((height[i], width[j])).astype(store.tiles.dtype)


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_tile_comes_back(tmp_path: Path, place: str, dtype: str, compression: str) -> None:
    url = str(tmp_path / "a.zarr") if place == "local" else f"memory://tiles-{dtype}-{compression}"
    store = create(url, dtype=dtype, compression=compression)
    assert store.present() == set()
    tile = random_tile(store, 0, 1)
    store.write_tile(0, 1, tile)
    store.write_tile(1, 1, np.zeros_like(random_tile(store, 1, 1)))
    again = TileStore(url)
    assert again.present() == {(0, 1), (1, 1)}
    assert again.tiles.dtype == dtype
    np.testing.assert_array_equal(again.read_tile(0, 1), tile)
    assert not again.read_tile(1, 1).any()
    again.tiles.delete(0, 1)
    assert again.present() == {(1, 1)}


def test_zarr_reads_what_was_written_and_writes_the_same(tmp_path: Path) -> None:
    store = create(tmp_path / "a.zarr", dtype="float32")
    tile = random_tile(store, 0, 1)
    store.write_tile(0, 1, tile)
    chunk = tmp_path / "a.zarr" / "tiles" / "c" / "0" / "1"
    written = chunk.read_bytes()
    array = zarr.open_array(tmp_path / "a.zarr" / "tiles", mode="r+")
    assert np.isnan(array[0, 0])
    np.testing.assert_array_equal(array[: tile.shape[0], 10 : 10 + tile.shape[1]], tile)
    array.set_block_selection((0, 1), array.get_block_selection((0, 1)))
    assert chunk.read_bytes() == written
    assert [path.name for path in chunk.parent.iterdir()] == ["1"]


def test_padding_is_zero_and_cut_off_on_reading(tmp_path: Path) -> None:
    store = create(tmp_path / "a.zarr")
    tile = random_tile(store, 0, 1)
    assert tile.shape != store.tiles.chunks
    store.write_tile(0, 1, tile)
    whole = store.tiles.read(0, 1)
    assert whole.shape == (10, 10)
    assert whole.sum() == pytest.approx(tile.sum())
    assert not whole[tile.shape[0] :].any()
    assert not whole[:, tile.shape[1] :].any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_tile_that_is_not_finite_is_never_written(tmp_path: Path, value: float) -> None:
    store = create(tmp_path / "a.zarr")
    tile = random_tile(store, 0, 0)
    tile[1, 2] = value
    with pytest.raises(ValueError, match=r"tile \(0, 0\) holds a value that is not a finite number"):
        store.write_tile(0, 0, tile)
    assert store.present() == set()


def test_large_finite_values_pass(tmp_path: Path) -> None:
    store = create(tmp_path / "a.zarr")
    tile = np.full_like(random_tile(store, 0, 0), np.finfo(float).max)
    store.write_tile(0, 0, tile)
    np.testing.assert_array_equal(store.read_tile(0, 0), tile)


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "empty", "delete", "nan"])
def test_a_damaged_tile_is_an_error_that_says_how_to_repair_it(tmp_path: Path, damage: str, compression: str) -> None:
    store = create(tmp_path / "a.zarr", compression=compression)
    store.write_tile(0, 1, random_tile(store, 0, 1))
    chunk = tmp_path / "a.zarr" / "tiles" / "c" / "0" / "1"
    good = chunk.read_bytes()
    if damage == "delete":
        chunk.unlink()
    elif damage == "nan":
        broken = store.tiles.read(0, 1).copy()
        broken[0, 1] = np.nan
        store.tiles.write(0, 1, broken)
    else:
        flipped = good[:40] + bytes([good[40] ^ 8]) + good[41:]
        chunk.write_bytes({"flip": flipped, "cut": good[:-1], "grow": good + b"x", "empty": b""}[damage])
    with pytest.raises(TileCorruptError) as corrupt:
        store.read_tile(0, 1)
    error = corrupt.value
    assert (error.url, error.tile) == (store.url, (0, 1))
    advice = f"run `gramline gram verify --repair {tmp_path}/a.zarr`"
    assert str(error) == f"tile (0, 1) of {tmp_path}/a.zarr cannot be used: {error.problem}; {advice}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    impossible = {"empty", "delete"} | ({"cut", "grow"} if compression == "none" else set())
    assert (store.present() == set()) == (damage in impossible)


def test_strangers_files_are_not_tiles(tmp_path: Path) -> None:
    store = create(tmp_path / "a.zarr")
    store.write_tile(0, 0, random_tile(store, 0, 0))
    folder = tmp_path / "a.zarr" / "tiles" / "c"
    (folder / "0" / "1.1234.partial").write_bytes((folder / "0" / "0").read_bytes())
    (folder / "1").mkdir()
    (folder / "1" / "0").write_bytes((folder / "0" / "0").read_bytes())  # below the diagonal: nobody stores it
    assert store.present() == {(0, 0)}
    assert sweep_partial(store.url, older_than=STRAY_SECONDS) == 0
    assert sweep_partial(store.url, older_than=0) == 1
    assert not (folder / "0" / "1.1234.partial").exists()


@pytest.mark.parametrize("kernel", [KERNEL, WITH_PRIOR])
def test_every_block_is_a_slice_of_the_prepared_corpus(tmp_path: Path, kernel: SequenceLabeling) -> None:
    store = create(tmp_path / "a.zarr", kernel)
    ready = kernel.prepare(corpus().packed())
    assert store.kernel == kernel
    for block in range(store.layout.rows.n_blocks):
        span = store.layout.rows.structures(block)
        expected = ready.structures(span.start, span.stop)
        found = store.read_block(block)
        assert found.vocabulary == expected.vocabulary
        assert found.arrays().keys() == expected.arrays().keys()
        for name, array in expected.arrays().items():
            np.testing.assert_array_equal(found.arrays()[name], array)
        assert store.block_bytes()[0][block] == sum(array.nbytes for array in expected.arrays().values())


@pytest.mark.parametrize("name", ["symbols", "labels", "prior", "starts", "lengths", "vocabulary_symbols_utf8"])
@pytest.mark.parametrize("damage", ["delete", "flip"])
def test_a_damaged_corpus_is_told(tmp_path: Path, name: str, damage: str) -> None:
    store = create(tmp_path / "a.zarr", WITH_PRIOR)
    chunk = next(path for path in (tmp_path / "a.zarr" / "rows" / "0" / name / "c").rglob("*") if path.is_file())
    good = chunk.read_bytes()
    if damage == "delete":
        chunk.unlink()
    else:
        chunk.write_bytes(good[:5] + bytes([good[5] ^ 1]) + good[6:])
    with pytest.raises(StoreDamagedError) as damaged:
        [TileStore(store.url).read_block(block) for block in range(store.layout.rows.n_blocks)]
    assert damaged.value.url == store.url
    assert name in damaged.value.problem
    assert str(damaged.value).endswith(f"{store.url} is damaged: {damaged.value.problem}; rebuild it")


def test_of_two_creators_one_wins_and_both_have_it(tmp_path: Path) -> None:
    first, second = create(tmp_path / "a.zarr"), create(tmp_path / "a.zarr", compression="lz4")
    assert first.identity == second.identity
    assert second.compression == "none"
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_rectangular_stores_keep_both_corpora(tmp_path: Path) -> None:
    rows = corpus().packed()
    cols = Corpus.from_sequences([["a", "new"], ["b"]]).packed(like=rows)
    layout = GramLayout.rectangular(BlockLayout.of(rows.lengths, 10), BlockLayout.of(cols.lengths, 2))
    spec = GramSpec.of(KERNEL, rows, cols, "float32")
    ready = KERNEL.prepare(rows)
    url = str(tmp_path / "a.zarr")
    assert TileStore.write(url, spec, (ready, KERNEL.prepare(cols, like=ready)), layout, "none")
    store = TileStore(url)
    assert store.layout.shape == (rows.n_positions, 3)
    assert store.read_block(0, of_columns=True).vocabulary.symbols[-1] == "new"
    assert store.read_block(0).vocabulary == rows.vocabulary
    for i, j in store.layout.tiles():
        store.write_tile(i, j, random_tile(store, i, j))
    assert store.present() == set(store.layout.tiles())


def test_what_is_not_a_gram_store_is_refused(tmp_path: Path) -> None:
    from gramline.pipeline.storage.writer import write_group

    write_group(tmp_path / "model", {"gramline": "model"}, {})
    for path, said in [
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path / "model", "is not a store but a Zarr group of something else"),
        (tmp_path, "is not a store"),
    ]:
        with pytest.raises(StoreError, match=said):
            TileStore(str(path))


def test_another_format_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr")
    metadata = tmp_path / "a.zarr" / "zarr.json"
    content = json.loads(metadata.read_text())
    content["attributes"]["format"] = 99
    metadata.write_text(json.dumps(content))
    with pytest.raises(StoreError, match="of format 99, but this version of gramline reads formats 1 to 2"):
        TileStore(str(tmp_path / "a.zarr"))


def test_a_recipe_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    described = corpus().described(Recipe.of("conll", "sequences", "spelling", 1))
    store = create_or_open(KERNEL, described, tmp_path / "a.zarr")
    assert store.recipe == described.recipe
    assert create(tmp_path / "b.zarr").recipe is None
    content = open_group(store.url).attrs.asdict() | {"recipe": {"format": "conll", "colour": "red"}}
    write_attributes(open_group(store.url), content)
    with pytest.raises(StoreDamagedError, match="the recipe of the corpus cannot be read"):
        TileStore(store.url)


def test_bad_choices_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="compression must be one of none, lz4, zstd, got 'gzip'"):
        create(tmp_path / "a.zarr", compression="gzip")
    assert list(tmp_path.iterdir()) == []


def test_an_object_store_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "obstore", None)
    with pytest.raises(StoreError, match=r"needs the package obstore; install gramline\[s3\]"):
        TileStore("s3://bucket/a.zarr")


def test_the_identity_follows_the_contents(tmp_path: Path) -> None:
    stores = [
        create(tmp_path / "a"),
        create(tmp_path / "b", dtype="float32"),
        create(tmp_path / "c", replace(KERNEL, c=0.5)),
        create(tmp_path / "d", compression="lz4"),
    ]
    assert len({store.identity for store in stores}) == 4
    assert create(tmp_path / "e").identity == stores[0].identity
