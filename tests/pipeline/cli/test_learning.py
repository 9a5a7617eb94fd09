"""fit, predict and evaluate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.parquet"
    labels = [["D", "N"], ["D", "N", "V", "D", "N"]]
    Corpus.from_sequences([["the", "cat"], ["a", "dog", "sees", "the", "mat"]], labels).save(path)
    return path


def test_fit_says_what_it_learned(gramline: Any, gram: Path, tmp_path: Path) -> None:
    answer = gramline("fit", gram, "-o", tmp_path / "m.zarr", "--rounds", "4", "--average", "--set", "early_stop=false")
    assert (answer.code, answer.err) == (0, "")
    assert "training on 15 rows in 10 tiles" in answer.out
    assert "model written to m.zarr" in answer.out
    told = gramline("fit", gram, "-o", tmp_path / "m.zarr", "--overwrite", "--rounds", "4", "--json").json
    assert (told["learner"], told["params"]["rounds"]) == ("labeling-perceptron", 4)
    assert told["labels"] == ["N", "D", "V"]
    assert len(told["mistakes"]) <= 4


def test_fit_keeps_a_model_that_is_there(gramline: Any, gram: Path, model: Path) -> None:
    answer = gramline("fit", gram, "-o", model)
    assert answer.code == 2
    assert "is there already; choose another path or give --overwrite" in answer.error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--learner", "labeling-perceptorn"], "did you mean 'labeling-perceptron'?"),
        (["--set", "roudns=3"], "has no parameter 'roudns'"),
        (["--set", "rounds"], "not of the form key=value"),
        (["--rounds", "0"], "rounds must be"),
    ],
)
def test_fit_refuses_what_it_does_not_know(
    gramline: Any, gram: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    answer = gramline("fit", gram, "-o", tmp_path / "m.zarr", *options)
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "m.zarr").exists()


def test_fit_wants_a_finished_matrix(gramline: Any, gram: Path, tmp_path: Path) -> None:
    (gram / "tiles" / "c" / "0" / "1").unlink()
    answer = gramline("fit", gram, "-o", tmp_path / "m.zarr")
    assert answer.code == 2
    assert "has 9 of 10 tiles; finish it with `gramline gram build`" in answer.error


def test_predictions_as_lines_and_columns(gramline: Any, model: Path, new: Path, tmp_path: Path) -> None:
    shown = gramline("predict", model, new)
    records = [json.loads(line) for line in shown.out.splitlines()]
    assert [record["tokens"] for record in records] == [["the", "cat"], ["a", "dog", "sees", "the", "mat"]]
    assert [len(record["labels"]) for record in records] == [2, 5]
    columns = tmp_path / "p.conll"
    answer = gramline("predict", model, new, "-o", columns)
    assert answer.out.startswith("2 structures and 7 positions labeled in")
    lines = columns.read_text().splitlines()
    assert lines[:3] == [f"the\t{records[0]['labels'][0]}", f"cat\t{records[0]['labels'][1]}", ""]
    told = gramline("predict", model, new, "--json").json
    assert [record["labels"] for record in told["predictions"]] == [record["labels"] for record in records]


def test_a_word_that_breaks_columns_is_refused(gramline: Any, model: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.parquet"
    Corpus.from_sequences([["New York", "the"]]).save(odd)
    answer = gramline("predict", model, odd, "-o", tmp_path / "p.conll")
    assert answer.code == 2
    assert "'New York' does not fit into a column" in answer.error
    assert sorted(path.name for path in tmp_path.glob("*p.conll*")) == []


@pytest.mark.parametrize("name", ["p.jsonl", "p.conll"])
def test_a_model_and_its_predictions_score_alike(
    gramline: Any, model: Path, new: Path, tmp_path: Path, name: str
) -> None:
    assert gramline("predict", model, new, "-o", tmp_path / name).code == 0
    by_model = gramline("evaluate", model, new, "--json").json
    by_file = gramline("evaluate", tmp_path / name, new, "--json").json
    for key in ("source", "cost"):
        assert by_model.pop(key) != by_file.pop(key)
    assert by_model == by_file
    assert (by_model["structures"], by_model["positions"]) == (2, 7)
    assert by_model["accuracy"] == pytest.approx(1 - by_model["hamming_loss"])


def test_evaluation_for_people(gramline: Any, model: Path, new: Path) -> None:
    answer = gramline("evaluate", model, new)
    assert (answer.code, answer.err) == (0, "")
    for expected in ("token accuracy", "Hamming loss", "precision", "all but O", "all spans"):
        assert expected in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "all labels" in gramline("evaluate", model, new, "--no-dummy").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no predictions"),
        ("the\n", ":1: a prediction needs two columns"),
        ('{"labels": ["D", "N"]}\n{"labels": 3}\n', ':2: a prediction is an object with a list of "labels"'),
        ('{"labels": ["D", "N"]\n', ":1: not valid JSON"),
        ('{"labels": ["D", "N"]}\n', "2 structures"),
        ('{"labels": ["D"]}\n{"labels": ["D", "N", "V", "D", "N"]}\n', "structure 0: there are 2 gold labels"),
        ('{"id": "x", "labels": ["D", "N"]}\n', "prediction 0 is for structure 'x'"),
    ],
)
def test_predictions_that_do_not_fit(gramline: Any, new: Path, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    answer = gramline("evaluate", path, new)
    assert answer.code == 2
    assert said in answer.error


@pytest.mark.parametrize("learner", ["labeling-perceptron", "zscore"])
def test_structures_of_which_a_model_knows_no_feature_are_told(
    gramline: Any, gram: Path, corpus: Path, new: Path, tmp_path: Path, learner: str
) -> None:
    model, other = tmp_path / "m.zarr", tmp_path / "other.parquet"
    assert gramline("fit", corpus if learner == "zscore" else gram, "--learner", learner, "-o", model).code == 0
    Corpus.from_sequences([[["U00:the", "U01:_"], ["U00:cat", "U01:the"]]], [["D", "N"]]).save(other)
    for command in ("predict", "evaluate"):
        assert gramline(command, model, other).err.startswith("note: the model knows none of the features of these")
        assert "note" not in gramline(command, model, new).err
