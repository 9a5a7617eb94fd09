"""`predict` and `evaluate` by workers: the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.saleslog import generate_saleslog


@pytest.fixture
def model(gramline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    generate_saleslog(12, seed=1).save("train.parquet")
    generate_saleslog(9, seed=2).save("new.parquet")
    assert gramline("fit", "train.parquet", "--rounds", "2", "--no-evaluate").code == 0
    return "train.model.zarr"


def test_workers_answer_as_this_process_does(gramline: Any, model: str) -> None:
    here = gramline("predict", model, "new.parquet", "--block-rows", "100", "--json").json["predictions"]
    there = gramline("predict", model, "new.parquet", "--block-rows", "100", "--workers", "1", "--json")
    assert there.json["predictions"] == here
    scores = [gramline("evaluate", model, "new.parquet", *more, "--json").json for more in ((), ("--workers", "1"))]
    assert scores[0]["accuracy"] == scores[1]["accuracy"]
    assert not list(Path().glob("*.partial"))


def test_a_scheduler_that_is_not_there_is_an_error(gramline: Any, model: str) -> None:
    for command in (("predict", model, "new.parquet"), ("evaluate", model, "new.parquet")):
        answer = gramline(*command, "--scheduler", "tcp://127.0.0.1:1")
        assert answer.code == 2
        assert "no Dask scheduler answers" in answer.error


def test_what_comes_line_by_line_is_labeled_here(gramline: Any, model: str) -> None:
    answer = gramline("predict", model, "--stdin", "--workers", "2")
    assert (answer.code, answer.error) == (2, "--workers has no effect with --stdin; leave it out")
