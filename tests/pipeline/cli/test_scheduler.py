"""A scheduler that is named is used, or the command says why not; one that is not there ends every command at once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

NOWHERE = "tcp://127.0.0.1:1"


def commands(corpus: Path, gram: Path, tmp_path: Path) -> dict[str, list[str | Path]]:
    return {
        "build": ["gram", "build", corpus, "-o", gram, "--block-rows", "5", "--c", "0.5"],
        "plan": ["gram", "plan", corpus, "-o", gram, "--block-rows", "5", "--c", "0.5"],
        "cv": ["cv", gram, "--set", "rounds=1", "--folds", "2", "-o", tmp_path / "a.run"],
        "cv plan": ["cv", gram, "--set", "rounds=1", "--folds", "2", "-o", tmp_path / "b.run", "--plan"],
        "fit": ["fit", gram, "-o", tmp_path / "a.zarr", "--rounds", "1"],
        "export": ["gram", "export", gram, tmp_path / "a.npy"],
        "fit file": ["fit", corpus, "-o", tmp_path / "b.zarr", "--no-evaluate"],
    }


@pytest.mark.parametrize("name", ["build", "plan", "cv", "cv plan", "fit", "export", "fit file"])
def test_one_that_cannot_be_reached_is_an_error_in_seconds(
    gramline: Any, corpus: Path, gram: Path, tmp_path: Path, name: str
) -> None:
    begin = time.monotonic()
    answer = gramline(*commands(corpus, gram, tmp_path)[name], "--scheduler", NOWHERE)
    assert answer.code == 2
    assert f"no Dask scheduler answers at {NOWHERE}" in answer.error
    assert time.monotonic() - begin < 20
    assert not (tmp_path / "a.run").exists()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("build", "all tiles were there already"),
        ("plan", "there was nothing to measure there"),
        ("cv", "the problems of labeling-perceptron share one pass over them, in this process"),
        ("cv", "15 rows of 6,000 from which on workers help"),
        ("cv plan", "a plan asks only for its threads and memory"),
        ("fit", "this training runs in this process"),
        ("fit file", "this training runs in this process"),
    ],
)
def test_one_that_is_not_used_is_told_with_the_reason(
    gramline: Any, dask_client: Any, corpus: Path, gram: Path, tmp_path: Path, name: str, why: str
) -> None:
    address = dask_client.scheduler.address
    answer = gramline(*commands(corpus, gram, tmp_path)[name], "--scheduler", address)
    assert answer.code == 0
    assert f"note: the scheduler at {address} was reached but not used: " in answer.err
    assert why in answer.err


def test_one_that_is_used_is_not_told_of(gramline: Any, dask_client: Any, corpus: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    target = tmp_path / "new.gram.zarr"
    scheduler = ["--scheduler", dask_client.scheduler.address, "--events", events]
    answer = gramline("gram", "build", corpus, "-o", target, "--block-rows", "5", *scheduler)
    assert (answer.code, answer.err) == (0, "")
    told = [json.loads(line) for line in events.read_text().splitlines()]
    names = [one["event"] for one in told]
    assert (names[0], names[1], names[-2], names[-1]) == ("start", "plan", "built", "done")
    assert names.count("tile") == told[1]["n_tiles"]
    assert len({one["worker"] for one in told if one["event"] == "tile"} - {""}) >= 1


def test_an_export_is_written_by_workers(gramline: Any, dask_client: Any, gram: Path, tmp_path: Path) -> None:
    for name, more in (("here.npy", []), ("there.npy", ["--scheduler", dask_client.scheduler.address])):
        answer = gramline("gram", "export", gram, tmp_path / name, *more)
        assert (answer.code, answer.err) == (0, "")
    assert (tmp_path / "there.npy").read_bytes() == (tmp_path / "here.npy").read_bytes()


def test_events_of_training(gramline: Any, gram: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    assert gramline("fit", gram, "-o", tmp_path / "m.zarr", "--rounds", "2", "--events", events).code == 0
    assert gramline("cv", gram, "--folds", "2", "-o", tmp_path / "c.run", "--events", events, "--json").code == 0
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert [one["command"] for one in told if one["event"] == "start"] == ["gramline fit", "gramline cv"]
    names = [one["event"] for one in told]
    assert names.count("round") >= 2
    assert names.count("done") == 2
    assert {"job", "training", "solved"} <= set(names)


def test_a_plan_beyond_the_memory_of_a_worker_names_the_worker(
    gramline: Any, dask_client: Any, corpus: Path, tmp_path: Path
) -> None:
    options = ["--block-rows", "11000", "--scheduler", dask_client.scheduler.address]
    answer = gramline("gram", "build", corpus, "-o", tmp_path / "big.gram.zarr", *options)
    assert answer.code == 2
    assert "a thread of the worker tcp://127.0.0.1:" in answer.error
    assert "(memory limit 2,147 MB, 1 thread) may use" in answer.error
    assert not (tmp_path / "big.gram.zarr").exists()
