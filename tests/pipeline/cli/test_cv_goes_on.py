"""`gramline cv` stopped by its own clock, by signals and by kill -9: the same command ends with the same results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from ended_program import NOW, end_by, run_to_the_end

from gramline.pipeline.crossval.run_folder import RunFolder

LEARNERS = {
    "perceptron": ["--learner", "labeling-perceptron", "--set", "rounds=1,3", "--set", "early_stop=false"],
    "Z-score": ["--learner", "kernel-zscore", "--set", "ridge=0.1,1.0", "--set", "preconditioner=none"],
    "random field": ["--learner", "kernel-crf", "--set", "penalty=0.3,5.0", "--set", "iterations=2"],
    "Gaussian process": ["--learner", "gaussian-process", "--set", "tolerance=1e-12", "--set", "max_sweeps=2"],
}
FOLDS = ["--folds", "2", "--inline", "--no-baselines"]


def results(run: Path) -> Any:
    """Everything that was predicted, with confidences, traces and scores."""
    folder = RunFolder(run)
    outcomes = {digest: (held.predicted, held.confidence, held.traces) for digest, held in folder.outcomes().items()}
    summary = folder.read_json("results.json")
    tables = [pq.read_table(run / name).to_pylist() for name in ("results.parquet", "predictions.parquet")]
    return outcomes, summary["settings"], tables


@pytest.mark.parametrize("name", LEARNERS)
def test_a_job_stopped_again_and_again(gramline: Any, corpus: Path, gram: Path, tmp_path: Path, name: str) -> None:
    cv = ["cv", gram, *LEARNERS[name], *FOLDS]
    assert gramline(*cv, "-o", tmp_path / "calm.run").code == 0
    assert run_to_the_end(gramline, *cv, "-o", tmp_path / "a.run", *NOW) >= 3
    assert results(tmp_path / "a.run") == results(tmp_path / "calm.run")
    assert not (tmp_path / "a.run" / "states").exists()
    assert corpus.is_file()


def test_a_job_that_builds_its_matrix_goes_on(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    cv = ["cv", corpus, "--block-rows", "8", "--learner", "labeling-perceptron", "--set", "rounds=1", *FOLDS]
    assert gramline(*cv, "-o", tmp_path / "calm.run", "--cache", tmp_path / "calm").code == 0
    assert run_to_the_end(gramline, *cv, "-o", tmp_path / "a.run", "--cache", tmp_path / "fire", *NOW) >= 3
    assert results(tmp_path / "a.run") == results(tmp_path / "calm.run")


def test_json_and_events_say_where_it_stopped(gramline: Any, gram: Path, tmp_path: Path) -> None:
    cv = ["cv", gram, "--set", "rounds=2", "-o", tmp_path / "a.run", *FOLDS, *NOW]
    answer = gramline(*cv, "--json", "--events", tmp_path / "events.jsonl")
    assert answer.json == {"stopped": True, "after": "0 of 2 problems", "checkpoint": str(tmp_path / "a.run")}
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    (written,) = [one for one in told if one["event"] == "checkpoint"]
    assert written["after"] == "block 1 of 4 in round 1 of 2"
    assert "going on after block 1 of 4 in round 1 of 2" in gramline(*cv).out


def a_state(gramline: Any, gram: Path, run: Path, *more: str) -> Path:
    """Of a job that was stopped in the middle of its stream."""
    assert gramline("cv", gram, "--set", "rounds=3", *more, "-o", run, *FOLDS, *NOW).code == 0
    (path,) = (run / "states").glob("*.checkpoint")
    return path


def damaged(path: Path) -> str:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return "is not used and will be replaced: it is damaged, "


def truncated(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-3])
    return "is not used and will be replaced: it is damaged, "


def of_another_version(path: Path) -> str:
    content = path.read_bytes()
    line, header, rest = content.split(b"\n", 2)
    import google_crc32c

    about = json.loads(header)
    about["about"]["identity"]["version"] = "0.0.1"
    header = json.dumps(about).encode()
    path.write_bytes(b"gramline-arrays 1 %d\n%s\n%s" % (google_crc32c.value(header), header, rest))
    assert line
    return "is not used and will be replaced: it is of gramline 0.0.1, and this is "


@pytest.mark.parametrize("harm", [damaged, truncated, of_another_version], ids=lambda harm: harm.__name__)
def test_a_state_that_is_no_good_is_never_used(
    gramline: Any, gram: Path, tmp_path: Path, harm: Callable[[Path], str]
) -> None:
    said = harm(a_state(gramline, gram, tmp_path / "a.run"))
    answer = gramline("cv", gram, "--set", "rounds=3", "-o", tmp_path / "a.run", *FOLDS)
    assert answer.code == 0
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert "going on" not in answer.out
    gramline("cv", gram, "--set", "rounds=3", "-o", tmp_path / "calm.run", *FOLDS)
    assert results(tmp_path / "a.run") == results(tmp_path / "calm.run")


def test_a_state_of_another_corpus_is_never_used(gramline: Any, gram: Path, tmp_path: Path) -> None:
    """Put where the other job looks for its own."""
    theirs = a_state(gramline, gram, tmp_path / "theirs.run")
    built = ["gram", "build", tmp_path / "train.parquet", "-o", tmp_path / "b.gram.zarr", "--inline", "--c", "0.7"]
    assert gramline(*built, "--block-rows", "5").code == 0
    ours = a_state(gramline, tmp_path / "b.gram.zarr", tmp_path / "ours.run")
    theirs.replace(ours)
    answer = gramline("cv", tmp_path / "b.gram.zarr", "--set", "rounds=3", "-o", tmp_path / "ours.run", *FOLDS)
    assert answer.code == 0
    assert f"note: {ours} is not used and will be replaced: it is of another Gram matrix" in " ".join(
        answer.err.split()
    )


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ("2,4", "is not used and was removed: it is of other settings, folds or structures"),
        ("3,4", "was not used: its settings were trained together with others"),
    ],
)
def test_states_of_an_edited_job_are_removed_with_a_word(
    gramline: Any, gram: Path, tmp_path: Path, rounds: str, said: str
) -> None:
    path = a_state(gramline, gram, tmp_path / "a.run")
    answer = gramline("cv", gram, "--set", f"rounds={rounds}", "-o", tmp_path / "a.run", *FOLDS)
    assert answer.code == 0
    assert f"note: {path} {said}" in " ".join(answer.err.split())
    assert not path.exists()


def test_what_a_killed_job_left_half_written_is_swept(gramline: Any, gram: Path, tmp_path: Path) -> None:
    a_state(gramline, gram, tmp_path / "a.run")
    left = [tmp_path / "a.run" / folder / f".x.{folder}.partial" for folder in ("units", "tiles", "states", ".")]
    for path in left:
        path.write_bytes(b"PAR1")
    old = tmp_path / f"{gram.name}.updates-0123.partial"
    old.mkdir()
    os.utime(old, (0, 0))
    assert gramline("cv", gram, "--set", "rounds=3", "-o", tmp_path / "a.run", *FOLDS).code == 0
    assert not [path for path in [*left, old] if path.exists()]


@pytest.mark.parametrize(
    ("number", "when", "code"),
    [(9, "within", -9), (15, "after", 143)],
    ids=["kill -9 within a write", "SIGTERM"],
)
def test_a_killed_program_goes_on(gramline: Any, gram: Path, tmp_path: Path, number: int, when: str, code: int) -> None:
    cv = ["cv", gram, "--checkpoint-every", "0", "--set", "rounds=2,3", *FOLDS, "-o"]
    gramline(*cv, tmp_path / "calm.run")
    ended = end_by(number, when, 3, *cv, tmp_path / "a.run")
    assert ended.returncode == code
    if number != 9:
        assert "the same command goes on where it was" in ended.stderr
        assert ended.stderr.count("\n") == 1
    again = gramline(*cv, tmp_path / "a.run")
    assert (again.code, again.err) == (0, "")
    n_before = 2 if number == 9 and when == "within" else 3
    assert f"going on after block {n_before} of 4 in round 1 of 3" in again.out, "at most one visit is repeated"
    assert results(tmp_path / "a.run") == results(tmp_path / "calm.run")


@pytest.mark.parametrize("option", ["--stop-after", "--checkpoint-every"])
def test_options_without_effect_are_refused(gramline: Any, corpus: Path, gram: Path, option: str) -> None:
    answer = gramline("cv", gram, "--plan", option, "3h")
    assert (answer.code, answer.error) == (2, f"{option} has no effect with --plan, which trains nothing; leave it out")
    answer = gramline("cv", corpus, "--learner", "zscore", "--checkpoint-every", "1min", *FOLDS)
    assert answer.code == 2
    assert answer.error == "--checkpoint-every has no effect with zscore, which trains in one go; leave it out"
