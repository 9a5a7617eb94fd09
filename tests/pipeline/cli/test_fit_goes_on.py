"""`gramline fit` stopped by its own clock, by signals and by kill -9: the same command ends with the same model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ended_program import NOW, end_by, run_to_the_end

from gramline.pipeline import Corpus, Model, Ranker
from gramline.pipeline.models.trained import load_trained

GOING_ON = "going on after"
LEARNERS = {
    "labeling": ["--learner", "labeling-perceptron", "--rounds", "4"],
    "hidden Markov": ["--learner", "hidden-markov-perceptron", "--set", "dual=true", "--rounds", "4"],
    "Z-score": ["--learner", "kernel-zscore", "--set", "ridge=[0.1, 1.0]", "--set", "preconditioner=none"],
    "Gaussian process": ["--learner", "gaussian-process", "--set", "tolerance=1e-12", "--set", "max_sweeps=5"],
}


def bits(path: Path) -> Any:
    """Everything that the learner of a model has."""
    trained: Model | Ranker = load_trained(path)
    attributes, arrays = trained.learner.to_state()
    return attributes, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("keep", ["all", "none"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_training_stopped_again_and_again(gramline: Any, corpus: Path, tmp_path: Path, name: str, keep: str) -> None:
    store = tmp_path / "x.gram.zarr"
    built = gramline("gram", "build", corpus, "-o", store, "--inline", "--block-rows", "5", "--keep", keep)
    assert built.code == 0
    assert gramline("fit", store, "-o", tmp_path / "calm.zarr", *LEARNERS[name]).code == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    fit = ["fit", store, "-o", tmp_path / "model.zarr", *LEARNERS[name]]
    assert run_to_the_end(gramline, *fit, *NOW, last=GOING_ON) > 2
    assert bits(tmp_path / "model.zarr") == bits(tmp_path / "calm.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "model.zarr"])


def test_a_file_with_labels_is_trained_and_then_evaluated(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    fit = ["fit", corpus, "--learner", "labeling-perceptron", "--rounds", "3"]
    calm = gramline(*fit, "-o", tmp_path / "calm.zarr", "--json").json
    assert run_to_the_end(gramline, *fit, "-o", tmp_path / "model.zarr", *NOW, last=GOING_ON) >= 2
    assert bits(tmp_path / "model.zarr") == bits(tmp_path / "calm.zarr")
    assert calm["cross_validation"] is not None
    assert not list(tmp_path.glob("*.checkpoint"))


def test_a_ranker_goes_on(gramline: Any, tmp_path: Path) -> None:
    trees = [["S", [a, "x"], [b, "y"]] for a in "ABC" for b in "ABC"]
    candidates = Corpus.from_parses(trees * 2).with_column("group", [k // 3 for k in range(18)])
    candidates.with_column("score", [float(k % 3 == 1) for k in range(18)]).save(tmp_path / "trees.parquet")
    store = tmp_path / "trees.gram.zarr"
    gramline("gram", "build", tmp_path / "trees.parquet", "-o", store, "--inline", "--block-rows", "3")
    fit = ["fit", store, "--learner", "ranking-perceptron", "--rounds", "3", "--candidates", tmp_path / "trees.parquet"]
    assert gramline(*fit, "-o", tmp_path / "calm.zarr").code == 0
    assert run_to_the_end(gramline, *fit, "-o", tmp_path / "model.zarr", *NOW, last=GOING_ON) > 2
    assert bits(tmp_path / "model.zarr") == bits(tmp_path / "calm.zarr")


def test_json_says_where_it_stopped(gramline: Any, gram: Path, tmp_path: Path) -> None:
    answer = gramline("fit", gram, "-o", tmp_path / "model.zarr", *NOW, "--json")
    assert answer.code == 0
    path = str(tmp_path / "model.zarr.checkpoint")
    assert answer.json == {"stopped": True, "after": "block 1 of 4 in round 1 of 10", "checkpoint": path}


def test_another_training_begins_at_its_beginning(gramline: Any, gram: Path, tmp_path: Path) -> None:
    fit = ["fit", gram, "-o", tmp_path / "model.zarr"]
    gramline(*fit, "--rounds", "3", *NOW)
    answer = gramline(*fit, "--rounds", "4", "--json")
    assert answer.code == 0
    assert answer.err == (
        f"note: {tmp_path}/model.zarr.checkpoint is not used and will be replaced: it is of labeling-perceptron with "
        "other parameters (rounds is 3 instead of 4)\n"
    )
    assert len(answer.json["mistakes"]) <= 4


@pytest.mark.parametrize("option", ["--stop-after", "--checkpoint-every"])
def test_learners_that_train_in_one_go_refuse_the_options(gramline: Any, corpus: Path, option: str) -> None:
    answer = gramline("fit", corpus, "--learner", "zscore", option, "3h")
    assert answer.code == 2
    assert answer.error == f"{option} has no effect with zscore, which trains in one go; leave it out"


@pytest.mark.parametrize("wrong", ["soon", "-3", "3x", ""])
def test_a_time_that_is_none_is_refused(gramline: Any, gram: Path, wrong: str) -> None:
    answer = gramline("fit", gram, "-o", "m.zarr", f"--stop-after={wrong}")
    assert answer.code == 2
    assert "a time such as 90s, 45min or 3h" in answer.error


@pytest.mark.parametrize(
    ("number", "when", "code"),
    [(9, "within", -9), (9, "after", -9), (15, "after", 143), (2, "within", 130)],
    ids=["kill -9 within a write", "kill -9", "SIGTERM", "Ctrl-C within a write"],
)
def test_a_killed_program_goes_on(gramline: Any, gram: Path, tmp_path: Path, number: int, when: str, code: int) -> None:
    fit = ["fit", gram, "--checkpoint-every", "0", "--rounds", "3", "-o"]
    gramline(*fit, tmp_path / "calm.zarr")
    ended = end_by(number, when, 2, *fit, tmp_path / "model.zarr")
    assert ended.returncode == code
    left = sorted(path.name for path in tmp_path.iterdir() if "checkpoint" in path.name)
    assert left[-1:] == ["model.zarr.checkpoint"]
    assert len(left) == (2 if number == 9 and when == "within" else 1), "a killed writer leaves what it wrote so far"
    if number != 9:
        assert "is kept; the same command goes on from there" in ended.stderr
        assert ended.stderr.count("\n") == 1
    again = gramline(*fit, tmp_path / "model.zarr")
    assert again.code == 0
    assert "going on after block " in again.out
    assert bits(tmp_path / "model.zarr") == bits(tmp_path / "calm.zarr")
    assert not [path.name for path in tmp_path.iterdir() if "checkpoint" in path.name]
