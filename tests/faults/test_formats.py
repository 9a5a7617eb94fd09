"""What an older version wrote is read; what a newer one wrote is refused in a sentence that says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from forged import unsealed
from gram_samples import KERNEL, chunks, corpus

from gramline.learners import LabelingPerceptron
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline import Corpus, StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.corpus.parquet import METADATA_KEY
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.errors import CorpusError, InputError, StoreDamagedError, StoreError
from gramline.pipeline.models.model import Model

CORPUS = corpus(5)


def test_a_store_of_format_1_is_read_built_on_and_appended_to(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    build_gram(KERNEL, CORPUS, store, block_rows=8)
    whole = chunks(store)
    unsealed(store, {"format": 1})
    (store / "tiles" / "c" / "0" / "0").unlink()
    np.testing.assert_array_equal(build_gram(KERNEL, CORPUS, store).to_numpy(), KERNEL.gram(CORPUS))
    assert chunks(store) == whole
    append_gram(store, corpus(2, seed=3))
    assert json.loads((store / "zarr.json").read_text())["attributes"]["format"] == 2
    assert verify_gram(store).is_good


@pytest.mark.parametrize("found", [0, 3, "2", None, True])
def test_a_store_of_another_format_is_refused(tmp_path: Path, found: object) -> None:
    store = tmp_path / "a.zarr"
    build_gram(KERNEL, CORPUS, store, block_rows=8)
    unsealed(store, {"format": found})
    with pytest.raises(StoreError, match=r"of format .*, but this version of gramline reads formats 1 to 2; use the"):
        StoredGram.open(store)


def test_a_store_of_format_2_without_its_seal_is_damaged(tmp_path: Path) -> None:
    build_gram(KERNEL, CORPUS, tmp_path / "a.zarr", block_rows=8)
    unsealed(tmp_path / "a.zarr", {})
    with pytest.raises(StoreDamagedError):
        StoredGram.open(tmp_path / "a.zarr")


def test_models(tmp_path: Path) -> None:
    path = tmp_path / "model.zarr"
    learner = LabelingPerceptron(rounds=2).fit(DenseGram.of(KERNEL, CORPUS), CORPUS.labels)
    model = Model.of(learner, CORPUS, KERNEL)
    model.save(path)
    unsealed(path, {"version": 1})
    assert Model.load(path).predict(CORPUS) == model.predict(CORPUS)
    for found in (3, "x", None):
        unsealed(path, {"version": found})
        with pytest.raises(
            StoreError, match=r"is a model of format .*, but this version of gramline reads formats 1 to 2"
        ):
            Model.load(path)


def test_corpora(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    CORPUS.save(path)
    table = pq.read_table(path)
    description = json.loads(table.schema.metadata[METADATA_KEY]) | {"version": 99}
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(description).encode()}), path)
    with pytest.raises(CorpusError, match="has corpus format 99, this program reads 1"):
        Corpus.load(path)


@pytest.mark.parametrize(("found", "is_read"), [(None, True), (1, True), (2, False), ("x", False)])
def test_results(tmp_path: Path, found: object, is_read: bool) -> None:
    """Runs had no number at first; that is format 1."""
    content = {"metric": "accuracy"} | ({} if found is None else {"format": found})
    (tmp_path / "results.json").write_text(json.dumps(content))
    if is_read:
        assert RunFolder.existing(tmp_path).read_json("results.json")["metric"] == "accuracy"
    else:
        with pytest.raises(InputError, match=r"results of format .*, but this version of gramline reads format 1"):
            RunFolder.existing(tmp_path)
