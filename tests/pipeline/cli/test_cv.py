"""gramline cv: from a store, a corpus and job files; plans, refusals with lines, and going on."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest
from job_file_samples import JOB

from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.choices import Compression, CorpusFormat
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import FORMATS
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.validate import cross_validate, grid
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.storage.groups import COMPRESSIONS


def test_a_stored_gram_with_a_grid_of_settings(gramline: Any, gram: Path, tmp_path: Path) -> None:
    settings = ["--set", "rounds=1,4", "--set", "average=true,false", "--folds", "3", "--seed", "2"]
    first = gramline("cv", gram, *settings, "-o", tmp_path / "first.run", "--inline")
    assert "tile reads of 10 stored tiles" in first.out
    answer = gramline("cv", gram, *settings, "-o", tmp_path / "cv.run", "--inline", "--json")
    assert (answer.code, answer.err) == (0, "")
    stored = StoredGram.open(gram)
    choices = grid({"rounds": [1, 4], "average": [True, False]})
    expected = cross_validate(LabelingPerceptron(), stored, stored.labels, 3, choices, seed=2)
    assert [setting["params"] for setting in answer.json["settings"]] == choices
    for number, setting in enumerate(answer.json["settings"]):
        assert setting["scores"]["accuracy"]["folds"] == pytest.approx(expected.table()[number].tolist())
    told = gramline("cv", gram, *settings, "-o", tmp_path / "cv.run", "--inline")
    assert "this run was finished before; nothing was trained, these are its results" in told.out
    assert "* rounds=" in told.out
    assert "the features are not known: the run was made from a Gram matrix" in " ".join(told.out.split())
    assert "tile reads" not in told.out  # what an earlier session did is not told again
    words = pq.read_table(tmp_path / "cv.run" / "structures.parquet").column("tokens").to_pylist()
    assert words[0] == ["the", "dog", "barks"]


@pytest.mark.parametrize(
    ("metric", "titles"),
    [
        ("accuracy", ["accuracy", "F1"]),
        ("f1", ["accuracy", "F1"]),
        ("span_f1", ["accuracy", "span F1"]),
        ("hamming_loss", ["accuracy", "hamming loss"]),
    ],
)
def test_the_table_shows_what_decides(
    gramline: Any, gram: Path, tmp_path: Path, metric: str, titles: list[str]
) -> None:
    options = ["--set", "rounds=1,4", "--folds", "3", "--seed", "2", "--metric", metric, "--inline"]
    found = gramline("cv", gram, *options, "-o", tmp_path / "cv.run", "--json").json
    told = gramline("cv", gram, *options, "-o", tmp_path / "cv.run").out
    assert [title in told for title in titles] == [True, True]
    for setting in found["settings"]:
        score = setting["scores"][metric]
        assert f"{score['mean']:.4f} ± {score['deviation']:.4f}" in told
    has_p = any(setting["behind_best"]["p"] is not None for setting in found["settings"])
    assert ("p: paired t-test against it over the folds, two-sided" in told) == has_p


def test_a_job_file_from_the_plan_to_the_report(gramline: Any, job: Path, tmp_path: Path) -> None:
    plan = gramline("cv", job, "--plan", "--json").json
    assert (plan["settings"], plan["folds"], plan["inner_folds"], plan["problems"]) == (5, 2, 4, 30)
    assert [store["to_compute"] for store in plan["stores"]] == [store["tiles"] for store in plan["stores"]]
    assert plan["bytes"] > 0
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "gramline-cache").exists()
    spoken = gramline("cv", job, "--plan")
    assert "5 settings x 6 folds = 30 problems, 0 solved before" in spoken.out
    assert "at most 3 and 1 to predict" in spoken.out
    assert "of training at most, measured on a sample of the structures" in spoken.out
    assert [row["seconds"] > 0 for row in (*plan["training"], *plan["baselines"])] == [True] * 4
    done = gramline("cv", job)
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert done.err.startswith("note: 10 of 10 structures stand in more than one fold")
    assert "nested selection: f1" in done.out
    assert "30 of 30 problems solved" in done.out
    assert (tmp_path / "out" / "report.html").is_file()
    after = gramline("cv", job, "--plan", "--json").json
    assert (after["solved"], after["bytes"]) == (30, 0)
    assert ([row["seconds"] for row in after["training"]], after["baselines"]) == ([0.0, 0.0], [])
    assert [store["to_compute"] for store in after["stores"]] == [0, 0]
    again = gramline("cv", job, "--json").json
    assert again["problems"]["solved_before"] == 30
    assert json.loads((tmp_path / "out" / "run.json").read_text())["job_file"] == JOB


def test_options_win_over_the_file(gramline: Any, job: Path, tmp_path: Path) -> None:
    chosen = ["--learner", "labeling-perceptron", "--set", "rounds=2", "--folds", "5", "-o", tmp_path / "mine"]
    found = gramline("cv", job, *chosen, "--inner", "2", "--metric", "accuracy", "--json").json
    assert {json.dumps(setting["params"]) for setting in found["settings"]} == {'{"rounds": 2}'}
    assert (len(found["settings"]), len(found["folds"]["held_out"]), found["metric"]) == (2, 5, "accuracy")


def test_folds_of_every_kind(gramline: Any, job: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "folds.json").write_text("[[0, 1], [2]]")
    learner = ["--learner", "zscore", "--inline", "--json"]
    cases = [
        (["--folds-file", tmp_path / "folds.json"], [2, 1]),
        (["--group", "half", "--folds", "2"], [5, 5]),
        (["--group", "duplicates", "--folds", "5"], [2] * 5),
        (["--stratified", "--folds", "5"], [2] * 5),
        (["--folds", "2", "--seed", "3", "--repeats", "2"], [5] * 4),
    ]
    for number, (options, sizes) in enumerate(cases):
        found = gramline("cv", corpus, *options, *learner, "-o", tmp_path / f"run{number}")
        assert found.code == 0, found.err
        assert found.json["folds"]["held_out"] == sizes
        assert ("stand in more than one fold" in found.err) == (found.json["folds"]["duplicates"] > 0)
        assert (found.json["folds"]["duplicates"] == 0) == ("duplicates" in options)
    assert job.is_file()


def rows_of(told: str) -> list[str]:
    """The first line of every row of the table of settings."""
    lines = told.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip().startswith("──")) - 1
    last = next(number for number in range(first + 2, len(lines)) if not lines[number].strip())
    return [line for line in lines[first + 2 : last] if "±" in line or "failed" in line]


def test_the_table_has_the_best_first_and_the_majority_label(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    job = ["cv", corpus, "--learner", "labeling-perceptron", "--set", "rounds=1,2,4", "--folds", "2", "--inline"]
    job += ["--reach", "0.01,1", "-o", tmp_path / "run"]
    found = gramline(*job, "--json").json
    told = gramline(*job).out
    assert max(len(line) for line in told.splitlines() if " gramline " not in line) <= 80
    *settings, majority = [row for row in rows_of(told) if not row.strip().startswith(("= hidden Markov", "= CRF"))]
    means = [float(row.split("±")[0].split()[-1]) for row in settings]
    assert means == sorted(means, reverse=True)
    assert [row.strip().startswith("* ") for row in settings] == [True] + [False] * 5
    labels = ", ".join(dict.fromkeys(found["majority"]["labels"]))
    assert majority.strip().startswith(f"= majority label ({labels})")
    score = found["majority"]["scores"]["accuracy"]
    assert f"{score['mean']:.4f} ± {score['deviation']:.4f}" in majority


def test_settings_of_files_have_the_names_of_the_files(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    words = sorted({word for sentence in Corpus.load(corpus).tokens for word in sentence})
    for name, own in (("near.json", 2), ("far.json", 9)):
        matrix = [[own if a == b else 1 for b in words] for a in words]
        (tmp_path / name).write_text(json.dumps({"symbols": words, "matrix": matrix}))
    (tmp_path / "job.toml").write_text(
        '[corpus]\npath = "train.parquet"\n[kernel]\nc = 0.3\n'
        'observation = ["substitution:file=near.json", {name = "substitution", file = "far.json"}]\n'
        "[folds]\ncount = 2\n[cluster]\ninline = true\n[output]\nreport = true\n"
    )
    plan = gramline("cv", tmp_path / "job.toml", "--plan").out
    assert "substitution(file=near.json)" in plan
    told = gramline("cv", tmp_path / "job.toml").out
    assert "file=near.json" in told.replace("\n", "")
    assert "file=far.json" in told.replace("\n", "")
    assert "matrix=" not in told
    page = re.sub("<[^>]+>", "", (tmp_path / "job.run" / "report.html").read_text("utf-8"))
    assert "observation=substitution(file=near.json)" in page
    assert "majority label (" in page


OVERFLOW = """
[corpus]
path = "train.parquet"
[kernel]
reach = [0.5, 1e300]
[[learner]]
name = "labeling-perceptron"
rounds = [1, 2]
[[learner]]
name = "kernel-zscore"
[folds]
count = 2
[cluster]
inline = true
[output]
report = true
"""


def test_a_setting_that_overflows_is_a_failed_row_and_the_others_go_on(
    gramline: Any, corpus: Path, tmp_path: Path
) -> None:
    assert corpus.is_file()
    (tmp_path / "job.toml").write_text(OVERFLOW)
    answer = gramline("cv", tmp_path / "job.toml")
    assert answer.code == 1
    n_baselines = len(RunFolder(tmp_path / "job.run").read_json("results.json")["baselines"]["rows"])
    assert n_baselines >= 1
    assert [("failed" in row) for row in rows_of(answer.out)] == [False] * (4 + n_baselines) + [True] * 3
    names = [f"labeling-perceptron(reach=1e+300, rounds={n})" for n in (1, 2)] + ["kernel-zscore(reach=1e+300)"]
    said = f"failed: {', '.join(names)}: SequenceLabeling between structure 0 and structure 0 does not fit float64"
    assert said in " ".join(answer.out.split())
    kept = [entry.status() for entry in GramCache(tmp_path / "gramline-cache").entries()]
    assert [status.is_complete for status in kept if status is not None] == [True]  # no tiles that nobody can use
    plan = gramline("cv", tmp_path / "job.toml", "--plan", "--json").json
    assert ["failed" in store for store in plan["stores"]] == [False, True]
    assert "only what failed was tried again" in gramline("cv", tmp_path / "job.toml").out
    again = gramline("cv", tmp_path / "job.toml", "--json")
    assert again.code == 1
    assert (len(again.json["settings"]), len(again.json["failed"])) == (3, 3)
    assert [setting["kernel"]["reach"] for setting in again.json["failed"]] == [1e300] * 3
    assert all("does not fit float64" in setting["reason"] for setting in again.json["failed"])
    assert again.json["problems"] == {"total": 12, "solved_before": 6}
    page = re.sub("<[^>]+>", "", (tmp_path / "job.run" / "report.html").read_text("utf-8"))
    assert "kernel-zscore(reach=1e+300) failed: " in page


def test_where_every_setting_fails_the_error_is_told(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    answer = gramline(
        "cv",
        corpus,
        "--reach",
        "1e300",
        "--folds",
        "2",
        "--inline",
        "-o",
        tmp_path / "run",
        "--cache",
        tmp_path / "cache",
    )
    assert answer.code == 2
    assert "does not fit float64" in answer.error


def test_a_reach_of_the_corpus_and_a_grid_of_them(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        '[corpus]\npath = "train.parquet"\n[kernel]\nreach = "grid"\n[folds]\ncount = 2\n'
    )
    plan = gramline("cv", tmp_path / "job.toml", "--plan", "--json")
    assert plan.json["settings"] == 4
    shares = [line.split("make ")[1].split(" of")[0] for line in plan.err.splitlines() if "neighbours make" in line]
    made = [int(share.rstrip("%")) for share in shares]
    assert made[:2] == pytest.approx([5, 20], abs=1)
    assert made == sorted(made)  # the last ones as far as nothing grows too large
    auto = gramline("cv", corpus, "--reach", "auto", "--folds", "2", "--plan", "--json", "-o", tmp_path / "run")
    assert auto.json["settings"] == 1
    assert "neighbours make 50% of the matrix" in auto.err
    answer = gramline("cv", tmp_path / "job.toml", "--kernel", "position", "--reach", "auto")
    assert (answer.code, answer.error) == (
        2,
        "position has no parameter 'reach'; known are observation, prior, label_kernel, c",
    )


def test_structures_that_a_fold_file_holds_out_again_are_told(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "folds.json").write_text("[[0, 1, 2], [2, 3], [1, 4]]")
    options = ["--folds-file", tmp_path / "folds.json", "--learner", "zscore", "--inline", "-o", tmp_path / "run"]
    found = gramline("cv", corpus, *options)
    assert found.code == 0, found.err
    said = f"2 structures held out by more than one fold of {tmp_path / 'folds.json'}: counted once in each of them"
    assert "".join(said.split()) in "".join(found.out.split())  # a long path is folded
    assert gramline("cv", corpus, *options, "--json").json["folds"]["held_out_again"] == 2


def test_columns_are_read_with_the_features_of_the_job(gramline: Any, tmp_path: Path) -> None:
    lines = ["the D", "dog N", "", "a D", "cat N", "", "dogs N", "bark V", ""]
    (tmp_path / "train.conll").write_text("\n".join(lines))
    (tmp_path / "job.toml").write_text(
        '[corpus]\npath = "train.conll"\n[features]\nfeatures = "spelling"\nwindow = 1\n'
        '[kernel]\nobservation = "linear"\n[folds]\ncount = 3\n[cluster]\ninline = true\n'
    )
    found = gramline("cv", tmp_path / "job.toml", "--json")
    assert found.code == 0, found.err
    assert found.json["structures"] == 3
    features = Corpus.load(tmp_path / "job.run" / "corpus.parquet").packed().vocabulary.features
    assert any("dog" in name for name in features)
    assert len(features) > 10


@pytest.mark.parametrize("observation", ['"substitution:file=m.json"', '{ name = "substitution", file = "m.json" }'])
def test_files_that_a_job_names_are_found_beside_it(
    gramline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observation: str
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    (tmp_path / "train.conll").write_text("A D\nC N\n\nC D\nC N\n\n")
    (tmp_path / "template").write_text("U00:%x[0,0]\n")
    (tmp_path / "m.json").write_text('{"symbols": ["A", "C"], "matrix": [[4, 0], [0, 9]]}')
    job = tmp_path / "job.toml"
    rest = '[folds]\ncount = 2\n[cluster]\ninline = true\n[corpus]\npath = "train.conll"\n'
    job.write_text(f"[kernel]\nobservation = {observation}\n{rest}")
    assert gramline("cv", job, "--plan").err == ""
    job.write_text(f'[learner]\nname = "zscore"\n{rest}[features]\nfeatures = "template:template"\n')
    assert gramline("cv", job, "--plan").err == ""
    (tmp_path / "m.json").write_text("[[4, 0], [0, 9]]")
    job.write_text(f"[kernel]\nobservation = {observation}\n{rest}")
    said = f"{job}:2 [kernel]: {tmp_path / 'm.json'}: the observation kernel must be a JSON object with the parameters"
    assert gramline("cv", job, "--plan").error.startswith(said)


def test_a_kernel_that_learns_nothing_of_features_is_told_where_it_is_used(gramline: Any, tmp_path: Path) -> None:
    X = [[[f"w={name}", "all"]] for name in "abcdef"]
    Corpus.from_sequences(X, [["X"], ["Y"]] * 3).save(tmp_path / "x.parquet")
    plan = ["cv", tmp_path / "x.parquet", "--c", "1", "--folds", "2", "--plan", "-o", tmp_path / "run"]
    assert "and 6 of 6 positions have one that is nowhere else" in gramline(*plan).err
    assert gramline(*plan, "--learner", "zscore").err == ""


def test_choices_of_the_command_line_are_those_of_stores_and_readers() -> None:
    assert tuple(COMPRESSIONS) == get_args(Compression)
    assert tuple(FORMATS) == get_args(CorpusFormat)


def test_a_killed_program_goes_on_where_it_was(gramline: Any, tmp_path: Path) -> None:
    draw = random.Random(1)
    X = [[draw.choice("abc") for _ in range(12)] for _ in range(20)]
    Corpus.from_sequences(X, [[draw.choice(["B", "O"]) for _ in row] for row in X]).save(tmp_path / "noise.parquet")
    rounds = ",".join(str(200 + k) for k in range(4))  # noise is never learnt, so every round is run
    options = ["--learner", "hidden-markov-perceptron", "--set", f"rounds={rounds}", "--folds", "3", "--inline"]
    arguments = ["cv", str(tmp_path / "noise.parquet"), *options, "-o", str(tmp_path / "run")]
    code = "import sys; from gramline.pipeline.cli.main import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL) as program:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(RunFolder(tmp_path / "run").finished()) < 2:
            time.sleep(0.02)
        program.kill()
    before = RunFolder(tmp_path / "run").finished()
    assert 2 <= len(before) < 12
    found = gramline(*arguments, "--json")
    assert found.code == 0
    assert found.json["problems"] == {"total": 12, "solved_before": len(before)}
    whole = gramline(*arguments[:-1], tmp_path / "whole", "--json").json
    assert [s["scores"] for s in found.json["settings"]] == [s["scores"] for s in whole["settings"]]
