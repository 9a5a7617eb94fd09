"""The command line as tests call it: in this process, with its exit code and what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A labeled corpus of five short sentences."""
    path = tmp_path / "train.parquet"
    Corpus.from_sequences(X, Y).save(path)
    return path


@pytest.fixture
def gram(gramline: Gramline, corpus: Path, tmp_path: Path) -> Path:
    """Its Gram matrix in 5-row blocks."""
    path = tmp_path / "train.gram.zarr"
    assert gramline("gram", "build", corpus, "-o", path, "--inline", "--block-rows", "5", "--c", "0.5").code == 0
    return path


@pytest.fixture
def model(gramline: Gramline, gram: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model.zarr"
    assert gramline("fit", gram, "-o", path, "--rounds", "5").code == 0
    return path
