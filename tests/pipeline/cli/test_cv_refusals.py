"""What `gramline cv` refuses: job files with the line that is wrong, options, places that cannot be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_file_samples import JOB


@pytest.mark.parametrize("place", ["output", "cache"])
def test_what_cannot_be_written_is_refused_before_any_work(
    gramline: Any, corpus: Path, tmp_path: Path, place: str
) -> None:
    answer = gramline("cv", corpus, f"--{place}", "/proc/nobody/run", "--folds", "2", "--inline")
    assert answer.code == 2
    assert answer.error.startswith("/proc/nobody/run cannot be written: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.parquet"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("count = 2", "cuont = 2", r"job.toml:15 [folds]: there is no 'cuont'; did you mean 'count'?"),
        ("[folds]", "[fodls]", r"job.toml:14: there is no 'fodls'; did you mean 'folds'?"),
        ("count = 2", 'count = "two"', "job.toml:15 [folds]: count must be a whole number of at least 2, got 'two'"),
        ("count = 2", "count = 50", "10 structures can be cut into 2 to 10 folds, not 50"),
        ("block_rows = 5", 'dtype = "float16"', "job.toml:20 [gram]: dtype must be one of float64, float32, got"),
        ("block_rows = 5", "compression = 1", "job.toml:20 [gram]: compression must be one of none, lz4, zstd, got 1"),
        ("inline = true", "inline = 1", "job.toml:23 [cluster]: inline must be true or false, got 1"),
        ("c = [0.5, 0.9]", "d = [0.5, 0.9]", "job.toml:6 [kernel]: sequence-labeling has no parameter 'd'"),
        ("c = [0.5, 0.9]", "c = [0.5, -1]", "job.toml:6 [kernel]: "),
        ("c = [0.5, 0.9]", "c = []", "job.toml:6 [kernel]: c is an empty list"),
        ("c = [0.5, 0.9]", 'name = "sequence-labelling"', "did you mean 'sequence-labeling'?"),
        ("rounds = [1, 3]", "round = [1, 3]", "job.toml:9 [learner]: labeling-perceptron has no parameter 'round'"),
        (
            "rounds = [1, 3]",
            "rounds = [1, 0]",
            "job.toml:9 [learner]: rounds must be a whole number of at least 1",
        ),
        ("rounds = [1, 3]", "average = 'no'", "job.toml:9 [learner]: average must be true or false, got 'no'"),
        ("rounds = [1, 3]", "average = true\nronds = 3", "job.toml:10 [learner]: labeling-perceptron has no parameter"),
        ("c = [0.5, 0.9]", "observation = 'polynomial:degree=0'", "job.toml:6 [kernel]: polynomial: degree must be"),
        (
            'name = "zscore"',
            'name = "gaussian-process"\nmissing = 2',
            "job.toml:13 [learner]: missing must be a number of at least 0 and below 1, got 2",
        ),
        (
            'name = "zscore"',
            'name = "zscoer"',
            "job.toml:12 [learner]: there is no learner called 'zscoer'; did you mean",
        ),
        ('path = "train.parquet"', 'path = "no.parquet"', "job.toml:3 [corpus]: there is no corpus file at"),
        ('metric = "f1"', 'metric = "f2"', "[output]: metric must be one of accuracy, "),
        (
            "[cluster]",
            '[cache]\npath = "train.parquet"\n[cluster]',
            "train.parquet is a file; give the path of a folder",
        ),
        ("[cluster]", '[cache]\npath = "s3://bucket/x"\n[cluster]', "job.toml:23 [cache]: s3://bucket/x is a url"),
        ("seed = 1", 'group = "nation"', "the corpus has no column 'nation'"),
        (
            "seed = 1",
            "seed = 1\nstratified = true\nfile = 'x'",
            "job.toml:14 [folds]: folds are stratified, grouped or",
        ),
        ("[corpus]", "[corpus", "not valid TOML"),
    ],
)
def test_bad_job_files_are_refused_with_their_line(
    gramline: Any, job: Path, tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in JOB
    job.write_text(JOB.replace(before, after))
    answer = gramline("cv", job)
    assert answer.code == 2
    assert said.replace("job.toml", str(job)) in answer.error
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "gramline-cache").exists()


def test_what_an_option_says_has_no_line(gramline: Any, job: Path, tmp_path: Path) -> None:
    said = "rounds must be a whole number of at least 1, got 0"
    assert gramline("cv", job, "--learner", "labeling-perceptron", "--set", "rounds=0").error == said
    assert gramline("cv", job, "--learner", "kernel-zscore", "--set", "width=x").error.startswith("width must be a")
    job.write_text(JOB.replace("c = [0.5, 0.9]", "gap = 2.0"))
    build = ["gram", "build", "--job", job, "-o", tmp_path / "g.zarr"]
    assert gramline(*build).error.startswith(f"{job}:6 [kernel]: sequence-labeling: gap must be")
    assert gramline(*build, "--gap", "0.5", "--c", "0").error.startswith("sequence-labeling: c must be")
    assert not (tmp_path / "g.zarr").exists()


def test_other_commands_take_one_kernel_only(gramline: Any, job: Path, tmp_path: Path) -> None:
    job.write_text(JOB.replace("[kernel]", "[[kernel]]\nc = 2.0\n[[kernel]]"))
    answer = gramline("gram", "build", "--job", job, "-o", tmp_path / "g.zarr")
    assert answer.code == 2
    assert "there are 2 [[kernel]] tables, but only `gramline cv` takes more than one" in answer.error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--learner", "zscore"], "zscore reads features; give it a corpus"),
        (["--set", "rounds"], "not of the form key=value"),
        (["--set", "rounds=5,0"], "rounds must be a whole number of at least 1, got 0"),
        (["--learner", "gaussian-process", "--missing", "0.5,2"], "missing must be a number of at least 0"),
        (["--group", "g"], "give its corpus with --corpus"),
        (["--group", "duplicates"], "give its corpus with --corpus"),
        (["--reach", "auto"], "is a Gram matrix, whose kernel is known; leave out what describes a kernel"),
        (["--folds", "1"], "'--folds': 1 is not in the range x>=2"),
        (["--metric", "beauty"], "'--metric': 'beauty' is not one of"),
    ],
)
def test_bad_options(gramline: Any, gram: Path, options: list[str], said: str) -> None:
    answer = gramline("cv", gram, *options)
    assert answer.code == 2
    assert said in answer.error


def test_a_store_that_is_not_finished_is_refused_by_everyone(gramline: Any, gram: Path, tmp_path: Path) -> None:
    next(path for path in (gram / "tiles" / "c").rglob("*") if path.is_file()).unlink()
    for command in (("cv", gram), ("fit", gram, "-o", tmp_path / "m"), ("gram", "export", gram, tmp_path / "x.npy")):
        answer = gramline(*command)
        assert answer.code == 2
        assert "finish it with `gramline gram build`" in answer.error
    assert not (tmp_path / "x.npy").exists()
