"""Bad input: one line that says what, where and what to do, exit code 2, and nothing half-written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.conll", "", "x.conll has no tokens; expected one token per line"),
        ("x.conll", "\n\n\n", "x.conll has no tokens"),
        ("x.conll", "the D\ndog N x\n", "x.conll:2: 3 columns, but line 1 has 2"),
        ("x.jsonl", "\n", "x.jsonl is empty"),
        ("x.jsonl", '{"tokens": ["a"]}\n{"tokens": []}\n', "x.jsonl:2: structure 1"),
        ("x.jsonl", '{"tokens": ["a"]}\n{"tokens": ["a"\n', "x.jsonl:2: not a JSON object"),
        ("x.jsonl", '{"tokens": ["a", "b"], "labels": ["A"]}\n', "x.jsonl:1: structure 0"),
        ("x.jsonl", '{"tokens": [{"f": NaN}]}\n', "x.jsonl:1: structure 0, position 0"),
        ("x.jsonl", '{"tokens": ["a"], "labels": ["A"], "prior": [[-0.5]]}\n', "x.jsonl:1: structure 0, position 0"),
        ("x.jsonl", '{"tokens": ["a"], "labels": ["A"], "prior": [[1.5]]}\n', "x.jsonl:1: structure 0, position 0"),
        ("x.conllu", "1\tdogs\n", "x.conllu:1: 2 tab-separated columns"),
        ("x.mrg", "(S (NP they)\n", "x.mrg"),
    ],
)
def test_files_that_are_not_well_formed(gramline: Any, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    answer = gramline("corpus", "import", tmp_path / name, "-o", tmp_path / "out.parquet")
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.error
    assert entries(tmp_path) == [name]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--c", "0"], "sequence-labeling: c must be"),
        (["--c", "-1"], "sequence-labeling: c must be"),
        (["--c", "nan"], "sequence-labeling: c must be"),
        (["--gap", "1.5"], "sequence-labeling: gap must be a number between 0 and 1"),
        (["--gap", "-0.1"], "sequence-labeling: gap must be a number between 0 and 1"),
        (["--observation", "polynomail"], "did you mean 'polynomial'?"),
        (["--observation", "polynomial:degre=2"], "has no parameter 'degre'"),
        (["--kernel", "uniform"], "'uniform' is not a kernel such as"),
        (["--kernel", "tree-labeling"], "trees"),
        (["--prior", "tabulated"], "tabulated reads a prior table, but the corpus carries none"),
        (["--label-kernel", "nowhere.json"], "the label kernel cannot be read"),
        (["--block-rows", "2"], "use a block size of at least 5"),
        (["--memory-limit", "310MB", "--block-rows", "2000"], "use smaller blocks"),
        (["--memory-limit", "lots"], "--memory-limit must be a size such as 2GiB or 500MB, got 'lots'"),
        (["--job", "nowhere.toml"], "nowhere.toml does not exist; give the path of a job file"),
    ],
)
def test_kernels_and_stores_that_cannot_be(
    gramline: Any, corpus: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    before = entries(tmp_path)
    answer = gramline("gram", "build", corpus, "-o", tmp_path / "x.gram.zarr", "--inline", *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.error
    assert entries(tmp_path) == before


@pytest.mark.parametrize("matrix", ["[[1, 2, 0], [2, 1, 0], [0, 0, 1]]", "[[1, 0], [0, 1]]", "[[1, 2, 3]]"])
def test_label_kernels_that_cannot_be(gramline: Any, corpus: Path, tmp_path: Path, matrix: str) -> None:
    (tmp_path / "labels.json").write_text(matrix)
    before = entries(tmp_path)
    options = ["--label-kernel", tmp_path / "labels.json", "--inline"]
    answer = gramline("gram", "build", corpus, "-o", tmp_path / "x.gram.zarr", *options)
    assert answer.code == 2
    assert "label" in answer.error
    assert entries(tmp_path) == before


def test_overflow_names_the_two_structures(gramline: Any, tmp_path: Path) -> None:
    long = tmp_path / "long.parquet"
    Corpus.from_sequences([["b"], ["a"] * 400, ["b"], ["a"] * 401]).save(long)
    answer = gramline("gram", "build", long, "-o", tmp_path / "x.gram.zarr", "--c", "10", "--inline")
    assert answer.code == 2
    assert "between structure 1 and structure" in answer.error
    assert "lower c" in answer.error
    assert entries(tmp_path) == ["long.parquet"]


def test_a_store_of_another_kernel_or_corpus(gramline: Any, gram: Path, corpus: Path, tmp_path: Path) -> None:
    kernel = gramline("gram", "build", corpus, "-o", gram, "--c", "0.7", "--inline")
    assert kernel.code == 2
    assert "holds another Gram matrix (kernel.c: 0.5 instead of 0.7)" in kernel.error
    other = tmp_path / "other.parquet"
    Corpus.from_sequences([["x"]]).save(other)
    content = gramline("gram", "build", other, "-o", gram, "--c", "0.5", "--inline")
    assert content.code == 2
    assert "corpus: it holds another one" in content.error
    assert gramline("gram", "verify", gram, "--inline").code == 0


def test_a_label_unknown_to_the_model(gramline: Any, model: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.parquet"
    Corpus.from_sequences([["the", "dog"]], [["D", "X"]]).save(new)
    answer = gramline("evaluate", model, new)
    assert answer.code == 2
    assert "structure 0, position 1: the label 'X' is unknown to the model (it knows N, D, V); rename" in answer.error
    assert gramline("evaluate", model, new, "--allow-unknown-labels", "--json").json["wrong"] >= 1


def test_an_unreachable_scheduler_says_so_within_seconds(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    before, start = entries(tmp_path), time.monotonic()
    answer = gramline("gram", "build", corpus, "-o", tmp_path / "x.zarr", "--scheduler", "tcp://127.0.0.1:1")
    assert time.monotonic() - start < 30
    assert (answer.code, answer.out) == (2, "")
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in answer.error
    assert entries(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--inline", "--scheduler", "tcp://127.0.0.1:1"], "choose one of them"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "choose one of them"),
        (["--workers", "2", "--inline"], "--workers has no effect with --inline"),
        (["--tls-ca", "ca.pem", "--inline"], "--tls-ca has no effect with --inline"),
        (["--tls-key", "client.key"], "--tls-key has no effect without --scheduler ADDRESS; leave it out"),
        (["--scheduler", "tls://127.0.0.1:1", "--tls-ca", "ca.pem"], "a CA, a certificate and a key"),
    ],
)
def test_places_that_contradict_each_other(
    gramline: Any, corpus: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    answer = gramline("gram", "build", corpus, "-o", tmp_path / "x.zarr", *options)
    assert answer.code == 2
    assert said in answer.error
    assert not (tmp_path / "x.zarr").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system with room for 2 MB; needs the right to mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(gramline: Any, tmp_path: Path, small_disk: Path) -> None:
    many = tmp_path / "many.parquet"
    Corpus.from_sequences([["the", "dog", "barks"]] * 300).save(many)
    target = small_disk / "x.gram.zarr"
    build = ["gram", "build", many, "-o", target, "--inline", "--block-rows", "300", "--c", "0.5"]
    answer = gramline(*build)
    assert answer.code == 2
    assert "gramline: error: " in answer.err
    assert str(target) in answer.err
    assert "as float32 would fit: take fewer, or another path" in answer.err
    assert not list(small_disk.rglob("*.partial"))


@pytest.mark.parametrize(
    "command",
    [
        ["corpus", "import", "x.conll", "-o"],
        ["corpus", "generate", "saleslog", "-o"],
        ["corpus", "candidates", "x.trees", "--held-out", "2", "-o"],
        ["predict", "model.zarr", "new.parquet", "-o"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_files_that_cannot_be_written_are_told_before_the_work(
    gramline: Any, tmp_path: Path, command: list[str]
) -> None:
    for path, said in (
        (tmp_path / "nowhere" / "new", f"cannot be written: there is no folder {tmp_path / 'nowhere'}; make it"),
        (tmp_path, "is a folder; give the path of a file"),
        ("s3://bucket/new", "is a url, but this is kept on this machine; give a path"),
    ):
        answer = gramline(*command, path)
        assert (answer.code, answer.out) == (2, "")
        assert answer.error.startswith(f"{path} {said}")


def test_folders_that_cannot_be_written_are_told_before_the_work(gramline: Any, corpus: Path) -> None:
    for path, said in ((corpus, "is a file; give the path of a folder"), ("s3://bucket/new", "is a url")):
        for command in (["demo", "--folder"], ["cv", corpus, "-o"], ["cv", corpus, "--cache"], ["reproduce", "-o"]):
            answer = gramline(*command, path)
            assert (answer.code, answer.out) == (2, "")
            assert answer.error.startswith(f"{path} {said}")


def test_what_else_people_get_wrong(gramline: Any, gram: Path, corpus: Path, tmp_path: Path) -> None:
    parses = tmp_path / "parses.parquet"
    assert gramline("corpus", "generate", "saleslog", "--kind", "parses", "--sentences", "3", "-o", parses).code == 0
    assert gramline("gram", "build", parses, "-o", tmp_path / "parses.zarr", "--inline").code == 0
    for command, said in (
        (["corpus", "import", corpus, "-o", tmp_path / "y.parquet"], "is a corpus already; import the file that it"),
        (["fit", tmp_path / "parses.zarr", "-o", tmp_path / "m.zarr"], "build it with a labeling kernel, or rank"),
        (["cv", gram, "--learner", "nope"], "there is no learner called 'nope'; known are"),
        (["reproduce", "--data", corpus], "is not a folder; name the one that holds the data sets"),
        (["cluster", "start", "nowhere.toml"], "nowhere.toml does not exist; give the path of a settings file (TOML)"),
        (["report", tmp_path, "-o", tmp_path], "is a folder; give the path of a file"),
    ):
        answer = gramline(*command)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.error


def test_an_export_replaces_exports_alone(gramline: Any, gram: Path, model: Path, tmp_path: Path) -> None:
    for name in ("x.npy", "x.zarr"):
        assert gramline("gram", "export", gram, tmp_path / name).code == 0
        assert "exists already" in gramline("gram", "export", gram, tmp_path / name).error
        assert gramline("gram", "export", gram, tmp_path / name, "--overwrite").code == 0
    answer = gramline("gram", "export", gram, model, "--overwrite")
    assert answer.code == 2
    assert answer.error == f"{model} is not an exported array; choose another path, or remove it"
    assert gramline("predict", model, tmp_path / "train.parquet").code == 0


def test_errors_leave_a_process_as_one_line(tmp_path: Path) -> None:
    program = "from gramline.pipeline.cli.main import main; main()"
    command = [sys.executable, "-c", program, "gram", "status", str(tmp_path / "nowhere.zarr")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gramline: error: ")
    assert done.stderr.count("\n") == 1
