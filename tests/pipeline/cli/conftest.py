"""The command line as tests call it: in this process, with its exit code and what it wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from job_file_samples import JOB

from gramline.pipeline.cli.main import run
from gramline.pipeline.corpus.corpus import Corpus


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What --json wrote: one document and nothing else."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of an error."""
        assert self.err.startswith("gramline: error: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("gramline: error: ").rstrip("\n")


Gramline = Callable[..., Answer]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command writes beside itself stays in the test's folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def gramline(capfd: pytest.CaptureFixture[str]) -> Gramline:
    def call(*arguments: str | Path) -> Answer:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        written = capfd.readouterr()
        return Answer(code, written.out, written.err)

    return call


X = [
    ["the", "dog", "barks"],
    ["a", "cat", "sees", "the", "dog"],
    ["dog"],
    ["the", "mat"],
    ["a", "dog", "likes", "mats"],
]
Y = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N"], ["D", "N"], ["D", "N", "V", "N"]]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands have made a Gram matrix and a model once, for every test to copy."""
    folder = tmp_path_factory.mktemp("made")
    corpus, gram, model = (str(folder / name) for name in ("train.parquet", "train.gram.zarr", "model.zarr"))
    Corpus.from_sequences(X, Y).save(corpus)
    assert run(["gram", "build", corpus, "-o", gram, "--inline", "--block-rows", "5", "--c", "0.5"]) == 0
    assert run(["fit", gram, "-o", model, "--rounds", "5"]) == 0
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A labeled corpus of five short sentences."""
    path = tmp_path / "train.parquet"
    Corpus.from_sequences(X, Y).save(path)
    return path


@pytest.fixture
def gram(made: Path, corpus: Path, tmp_path: Path) -> Path:
    """Its Gram matrix in 5-row blocks."""
    assert corpus.is_file()
    return Path(shutil.copytree(made / "train.gram.zarr", tmp_path / "train.gram.zarr"))


@pytest.fixture
def model(made: Path, gram: Path, tmp_path: Path) -> Path:
    assert gram.is_dir()
    return Path(shutil.copytree(made / "model.zarr", tmp_path / "model.zarr"))


@pytest.fixture
def job(corpus: Path, tmp_path: Path) -> Path:
    """A job file beside its corpus."""
    found = Corpus.load(corpus)
    doubled = found.select([*range(len(found)), *range(len(found))])  # enough structures for folds inside folds
    doubled.with_column("id", list("abcdefghij")).with_column("half", [0] * 5 + [1] * 5).save(corpus)
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    return path
