"""--keep and `gram plan --for`: tiles stored or computed, seen from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.saleslog import generate_saleslog


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    generate_saleslog(12, seed=3).save(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


BUILD = ("gram", "build", "log.parquet", "--reach", "1", "--inline", "--block-rows", "128")


def test_a_store_without_tiles_does_all_that_others_do(gramline: Any, corpus: Path) -> None:  # noqa: ARG001
    answer = gramline(*BUILD, "-o", "none.zarr", "--keep", "none")
    assert answer.code == 0
    assert "no tile is stored" in answer.out
    assert "are computed when asked for" in gramline("gram", "status", "none.zarr").out
    assert "it keeps no tiles, and its corpus is good" in gramline("gram", "verify", "none.zarr", "--inline").out
    gramline(*BUILD, "-o", "all.zarr")
    for learner in ("labeling-perceptron", "kernel-zscore"):
        models = [
            gramline("fit", f"{keep}.zarr", "-o", f"{keep}-{learner}.zarr", "--learner", learner, "--json").json
            for keep in ("all", "none")
        ]
        assert models[0]["support_positions"] == models[1]["support_positions"]
    scores = [
        gramline("cv", f"{keep}.zarr", "--folds", "3", "-o", f"{keep}.run", "--json").json["settings"][0]["scores"]
        for keep in ("all", "none")
    ]
    assert scores[0] == scores[1]


def test_status_tells_what_is_kept(gramline: Any, corpus: Path) -> None:  # noqa: ARG001
    result = gramline(*BUILD, "-o", "some.zarr", "--keep", "300kB", "--json").json
    assert (result["n_tiles"], result["n_present"], result["keep"]) == (2, 2, "0.3 MB")
    assert result["n_left_out"] > 0
    assert result["cost"]["tiles_kept"] == 2


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (("--keep", "some"), "keep must be all, none, or a size such as 40GB"),
        (("--keep", "1kB"), "is less than one tile"),
        (("--keep", "90000TB"), "keep fewer bytes"),
        (("--keep", "none", "--tile-cache", "1kB"), "is less than one tile"),
        (("--keep", "none", "--tile-cache", "9GB", "--memory-limit", "2GB"), "smaller tile_cache"),
        (("--tile-cache", "1GB"), "has no effect where all tiles are kept"),
    ],
)
def test_wishes_that_cannot_be(gramline: Any, corpus: Path, option: tuple[str, ...], sentence: str) -> None:
    answer = gramline(*BUILD, "-o", "a.zarr", *option)
    assert answer.code == 2
    assert sentence in answer.err
    assert not (corpus.parent / "a.zarr").exists()


def test_plans_for_a_learner(gramline: Any, corpus: Path) -> None:  # noqa: ARG001
    plan = ("gram", "plan", "log.parquet", "--reach", "1", "--inline")
    result = gramline(*plan, "--for", "labeling-perceptron:rounds=2", "--json").json
    assert [way["keep"] for way in result["alternatives"]] == ["all", "none"]
    assert sum(way["is_recommended"] for way in result["alternatives"]) == 1
    assert result["passes"] > 0
    assert result["values"] > 0
    text = gramline(*plan, "--for", "kernel-zscore").out
    assert "kernel-zscore reads stored tiles" in text
    assert "recommended" in text


def test_plans_for_a_cluster_that_is_not_there(gramline: Any, corpus: Path) -> None:  # noqa: ARG001
    plan = ("gram", "plan", "log.parquet", "--reach", "1", "--for", "kernel-zscore", "--workers", "100", "--json")
    slow = gramline(*plan, "--read-bandwidth", "1kB/s").json
    assert slow["threads"] == 100
    way = slow["alternatives"][0]
    assert way["training_seconds"] >= slow["passes"] * way["stored_bytes"] / 1000
    answer = gramline("gram", "plan", "log.parquet", "--read-bandwidth", "1kB/s")
    assert (answer.code, "name the learner with --for" in answer.err) == (2, True)
    answer = gramline("gram", "plan", "log.parquet", "--inline", "--for", "zscore")
    assert (answer.code, "does not learn labels from a Gram matrix" in answer.err) == (2, True)


def test_a_corpus_that_grew_takes_the_tiles_of_the_store_beside(gramline: Any, corpus: Path) -> None:
    gramline(*BUILD, "-o", "first.zarr")
    generate_saleslog(20, seed=3).save(corpus)
    plan = ("gram", "plan", *BUILD[2:], "-o", "second.zarr")
    planned = gramline(*plan, "--json").json
    assert "of them lent by first.zarr" in " ".join(gramline(*plan).out.split())
    assert planned["lender"].endswith("first.zarr")
    assert planned["lent"] == planned["present"] > 0
    result = gramline(*BUILD, "-o", "second.zarr", "--json").json
    assert result["reused"] == planned["lent"]
    assert result["computed"] == result["n_tiles"] - result["reused"]
    assert gramline("gram", "verify", "second.zarr", "--inline").code == 0
