"""The demo: the whole way, twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.model import Model


def test_the_whole_way_and_again(gramline: Any, tmp_path: Path, dask_client: Any) -> None:
    options = ["--folder", tmp_path / "out", "--sentences", "60", "--scheduler", dask_client.scheduler.address]
    first = gramline("demo", *options)
    assert (first.code, first.err) == (0, "")
    assert "planned: 6 of 6 tiles to compute" in first.out
    for expected in (
        "token accuracy",
        "Hamming loss",
        "precision",
        "recall",
        "F1",
        "6 tiles computed",
        "tree kernel",
        "sequence kernel",
    ):
        assert expected in first.out
    table = [line for line in first.out.splitlines() if "out/" not in line]
    assert max(map(len, table)) <= 80
    again = gramline("demo", *options)
    assert again.code == 0
    assert again.err.endswith("was reached but not used: nothing was left to compute there\n")
    assert "all 6 tiles are reused" in again.out
    told = gramline("demo", *options, "--json").json
    assert (told["computed"], told["reused"], told["tiles"]) == (0, 6, 6)
    assert told["evaluation"]["accuracy"] > 0.75
    assert told["sequences"]["kernel"]["name"] == "sequence-labeling"
    assert told["sequences"]["evaluation"]["accuracy"] > 0.7
    assert StoredGram.open(tmp_path / "out" / "train-60.gram.zarr").status().is_complete
    assert Model.load(tmp_path / "out" / "model.zarr").label_names[0] == "O"
    closer = gramline("evaluate", tmp_path / "out" / "model.zarr", tmp_path / "out" / "test.parquet", "--json")
    assert closer.json["accuracy"] == told["evaluation"]["accuracy"]
