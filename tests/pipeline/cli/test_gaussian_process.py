"""The Gaussian-process labeler through fit, predict, evaluate and cv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.model import Model


@pytest.mark.parametrize(
    "options", [["--set", "offsets=GPSL1", "--set", "decoding=viterbi"], ["--set", "max_sweeps=30"]]
)
def test_fit_predict_evaluate(gramline: Any, gram: Path, corpus: Path, tmp_path: Path, options: list[str]) -> None:
    model = tmp_path / "gp.zarr"
    fitted = gramline("fit", gram, "-o", model, "--learner", "gaussian-process", *options, "--json")
    assert (fitted.code, fitted.err) == (0, "")
    assert fitted.json["learner"] == "gaussian-process"
    params = {text.partition("=")[0]: text.partition("=")[2] for text in options if "=" in text}
    params = {key: int(value) if value.isdigit() else value for key, value in params.items()}
    stored = StoredGram.open(gram)
    expected = GaussianProcessLabeler(**params).fit(stored, stored.labels).predict(stored)
    predicted = gramline("predict", model, corpus)
    assert [json.loads(line)["labels"] for line in predicted.out.splitlines()] == expected
    scored = gramline("evaluate", model, corpus, "--json").json
    pairs = [
        (known, found)
        for row, other in zip(Corpus.load(corpus).labels, expected, strict=True)
        for known, found in zip(row, other, strict=True)
    ]
    assert scored["accuracy"] == pytest.approx(sum(known == found for known, found in pairs) / len(pairs))
    assert scored["accuracy"] > 0.8


def test_missing_labels_are_left_out(gramline: Any, tmp_path: Path) -> None:
    X = [["the", "dog"], ["a", "cat", "sees"], ["the", "cat"]]
    Corpus.from_sequences(X, [["D", None], ["D", "N", "V"], [None, "N"]]).save(tmp_path / "part.parquet")
    store, model = tmp_path / "part.gram.zarr", tmp_path / "gp.zarr"
    assert gramline("gram", "build", tmp_path / "part.parquet", "-o", store, "--inline").code == 0
    assert gramline("fit", store, "-o", model, "--learner", "gaussian-process").code == 0
    lines = gramline("predict", model, tmp_path / "part.parquet").out.splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [["D", "N"], ["D", "N", "V"], ["D", "N"]]


def test_cross_validation(gramline: Any, gram: Path, tmp_path: Path) -> None:
    answer = gramline(
        "cv", gram, "-o", tmp_path / "run", "--learner", "gaussian-process", "--folds", "2", "--inline", "--json"
    )
    assert (answer.code, answer.err) == (0, "")
    assert "gaussian-process" in answer.out


def test_offsets_are_listed_in_brackets(gramline: Any, gram: Path, tmp_path: Path) -> None:
    asked = ["--learner", "gaussian-process", "--set", "max_sweeps=2", "--json"]
    fitted = gramline("fit", gram, "-o", tmp_path / "gp.zarr", *asked, "--set", "offsets=[-1,2]")
    assert fitted.json["params"]["offsets"] == [-1, 2]
    grid = ["--set", "offsets=[-1],[-1,1],GPSL4", "--folds", "2", "--inline"]
    run = gramline("cv", gram, "-o", tmp_path / "run", *asked, *grid)
    assert [setting["params"]["offsets"] for setting in run.json["settings"]] == [[-1], [-1, 1], "GPSL4"]


def test_a_wrong_offset_is_one_line(gramline: Any, gram: Path, tmp_path: Path) -> None:
    answer = gramline(
        "fit", gram, "-o", tmp_path / "gp.zarr", "--learner", "gaussian-process", "--set", "offsets=GPSL3"
    )
    assert answer.code == 2
    assert "GPSL1, GPSL2, GPSL4" in answer.error


def test_a_plan_says_memory_and_time_and_writes_nothing(gramline: Any, gram: Path, tmp_path: Path) -> None:
    rows = len([label for structure in StoredGram.open(gram).labels for label in structure])
    asked = ["fit", gram, "--learner", "gaussian-process", "--plan"]
    plan = gramline(*asked, "--json").json
    assert (plan["n_rows"], plan["is_tiled"], plan["scratch_bytes"]) == (rows, False, 0)
    assert plan["peak_bytes"] > 16 * rows**2
    assert plan["seconds"] > plan["factor_seconds"] > 0
    tiled = gramline(*asked, "--factor-memory", "1kB").out
    assert "by tiles on disk: peak " in tiled
    assert "of scratch, about" in tiled
    assert [path.name for path in tmp_path.glob("*.zarr*")] == [gram.name]


@pytest.mark.parametrize("options", [["--plan"], ["-o", "gp.zarr"]], ids=["plan", "fit"])
def test_a_plan_is_made_of_good_values_only(gramline: Any, gram: Path, options: list[str]) -> None:
    low = ["--learner", "gaussian-process", "--set", "approximation=nystrom"]
    must = "rank must be a whole number of at least 1, got"
    for rank, said in (([], "needs a rank"), (["rank=abc"], f"{must} 'abc'"), (["rank=-5"], f"{must} -5")):
        answer = gramline("fit", gram, *options, *low, *(part for value in rank for part in ("--set", value)))
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.error


def test_fit_says_whether_the_bound_came_to_rest(gramline: Any, gram: Path, tmp_path: Path) -> None:
    asked = ["fit", gram, "-o", tmp_path / "gp.zarr", "--learner", "gaussian-process", "--overwrite"]
    summary = gramline(*asked, "--json").json
    assert summary["converged"]
    assert summary["elbo"] < 0 < summary["sweeps"]
    assert f"after {summary['sweeps']} sweeps\n" in gramline(*asked).out
    assert "after 1 sweep\n" in gramline(*asked, "--set", "max_sweeps=1").out


def test_factors_by_tiles_give_the_same_model(gramline: Any, gram: Path, corpus: Path, tmp_path: Path) -> None:
    predictions = []
    for name, options in (("a", []), ("b", ["--factor-memory", "1kB", "--inline", "--threads", "2"])):
        asked = ["fit", gram, "-o", tmp_path / f"{name}.zarr", "--learner", "gaussian-process", "--set", "max_sweeps=3"]
        answer = gramline(*asked, *options, "--json")
        assert answer.code == 0, answer.err
        assert answer.json["plan"]["is_tiled"] == (name == "b")
        predictions.append(gramline("predict", tmp_path / f"{name}.zarr", corpus).out)
    assert predictions[0] == predictions[1]
    assert not list(gram.parent.glob("*factor-*")) + list(gram.parent.glob("*claim-*"))


@pytest.mark.parametrize("options", [["--factor-memory", "1GB"], ["--plan"]])
def test_other_learners_have_no_factors(gramline: Any, gram: Path, tmp_path: Path, options: list[str]) -> None:
    answer = gramline("fit", gram, "-o", tmp_path / "m.zarr", *options)
    assert answer.code == 2
    assert "labeling-perceptron has none" in answer.error


def test_a_sweep_over_missing_labels(gramline: Any, gram: Path, tmp_path: Path) -> None:
    asked = ["cv", gram, "-o", tmp_path / "run", "--folds", "2", "--inline", "--json", "--missing", "0,0.3"]
    run = gramline(*asked, "--learner", "gaussian-process", "--set", "max_sweeps=3")
    assert run.code == 0, run.err
    assert [setting["params"]["missing"] for setting in run.json["settings"]] == [0, 0.3]
    refused = gramline(*asked, "--learner", "labeling-perceptron")
    assert refused.code == 2
    assert "missing" in refused.error


def test_what_did_not_converge_is_noted(gramline: Any, corpus: Path, gram: Path, tmp_path: Path) -> None:
    chosen = ["--learner", "gaussian-process", "--set", "max_sweeps=1", "--set", "max_refinements=1"]
    model = tmp_path / "gp.zarr"
    growing = (
        "note: the bound was still growing when training ended (max_sweeps=1); give more sweeps or a larger tolerance\n"
    )
    assert gramline("fit", gram, "-o", model, *chosen).err == growing
    unsettled = "note: the refined scores of some structures did not settle (max_refinements=1)"
    # Blocks of 5 rows: the same sentence from each of them is said once.
    for command in (["predict", model, corpus, "-o", tmp_path / "found.jsonl"], ["evaluate", model, corpus]):
        notes = gramline(*command, "--block-rows", "5").err
        assert notes.startswith(growing + unsettled)
        assert notes.count("\n") == 2
    validated = gramline("cv", gram, "-o", tmp_path / "run", *chosen, "--folds", "2", "--inline", "--json")
    assert list(validated.json["notes"].values()) == [2, 2]
    assert "note: in 2 of 2 problems: the bound was still growing" in validated.err


def test_predictions_with_the_probabilities_of_all_labels(
    gramline: Any, corpus: Path, gram: Path, model: Path, tmp_path: Path
) -> None:
    gaussian = tmp_path / "gp.zarr"
    assert gramline("fit", gram, "-o", gaussian, "--learner", "gaussian-process", "--set", "offsets=GPSL1").code == 0
    asked = ["predict", gaussian, corpus, "--probabilities"]
    records = [json.loads(line) for line in gramline(*asked).out.splitlines()]
    known = Model.load(gaussian)
    table = iter(known.predict_proba(Corpus.load(corpus)).tolist())
    for record in records:
        assert len(record["probabilities"]) == len(record["labels"])
        for label, found in zip(record["labels"], record["probabilities"], strict=True):
            assert found == dict(zip(known.label_names, next(table), strict=True))
            assert label == max(found, key=found.__getitem__)
    assert "probabilities" not in gramline("predict", gaussian, corpus).out
    assert gramline(*asked, "-o", tmp_path / "found.conll").code == 0
    word, confidence, label = (tmp_path / "found.conll").read_text().splitlines()[0].split("\t")
    assert (word, label) == (records[0]["tokens"][0], records[0]["labels"][0])
    assert confidence == f"{records[0]['probabilities'][0][label]:.4f}"
    answer = gramline("predict", model, corpus, "--probabilities")
    assert answer.code == 2
    assert "labeling-perceptron cannot tell probabilities" in answer.error
