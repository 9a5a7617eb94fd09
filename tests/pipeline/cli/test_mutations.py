"""Right commands made wrong: an argument misspelt, dropped, repeated or of a wrong value. One line, no traceback."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from python_words import python_words

from gramline.pipeline import Corpus
from gramline.pipeline.cli.main import run

WRONG_VALUES = ("", "-1", "nan", "1e999", "[", "=", "none,", "0x", "nowhere/deep/x", "\u00e9\n")

# Every command with paths that are there (%), as it works.
RIGHT = {
    "import": ["corpus", "import", "%/train.conll", "-o", "%/new.parquet", "--features", "spelling", "--window", "1"],
    "generate": ["corpus", "generate", "saleslog", "--sentences", "3", "--seed", "1", "-o", "%/new.parquet"],
    "split": ["corpus", "split", "%/train.parquet", "%/new1.parquet=0.5", "%/new2.parquet=0.5", "--seed", "1"],
    "sample": ["corpus", "sample", "%/train.parquet", "-n", "2", "--seed", "1", "-o", "%/new.parquet"],
    "dedupe": ["corpus", "dedupe", "%/train.parquet", "-o", "%/new.parquet"],
    "plan": ["gram", "plan", "%/train.parquet", "--c", "0.5", "--block-rows", "8", "--inline"],
    "build": ["gram", "build", "%/train.parquet", "-o", "%/new.zarr", "--inline", "--observation", "linear"],
    "append": ["gram", "append", "%/train.gram.zarr", "%/train.parquet", "--inline"],
    "export": ["gram", "export", "%/train.gram.zarr", "%/new.npy"],
    "fit": ["fit", "%/train.conll", "-o", "%/new.zarr", "--rounds", "1", "--set", "average=true", "--no-evaluate"],
    "predict": ["predict", "%/model.zarr", "%/train.parquet", "-o", "%/new.jsonl"],
    "evaluate": ["evaluate", "%/model.zarr", "%/train.parquet"],
    "cv": [
        "cv",
        "%/train.gram.zarr",
        "--set",
        "rounds=1",
        "--folds",
        "2",
        "--seed",
        "1",
        "--inline",
        "-o",
        "%/new.run",
    ],
}


def mutations(command: list[str]) -> list[list[str]]:
    """Every argument after the names of the command, changed in each of a few ways."""
    first = next(k for k, word in enumerate(command) if word.startswith(("%", "-")) or word == "saleslog")
    changed = []
    for place in range(first, len(command)):
        word, before, after = command[place], command[:place], command[place + 1 :]
        if word.startswith("-"):
            changed += [[*before, word + "x", *after], [*before, word], [*before, word, word, *after]]
        else:
            changed += [[*before, wrong, *after] for wrong in WRONG_VALUES]
            changed.append([*before, *after])
    return changed


CASES = [(name, mutated) for name, command in RIGHT.items() for mutated in mutations(command)]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("right")
    X, Y = [["the", "dog"], ["a", "cat", "ran"], ["dog"]], [["D", "N"], ["D", "N", "V"], ["N"]]
    Corpus.from_sequences(X, Y).save(folder / "train.parquet")
    (folder / "train.conll").write_text("the D\ndog N\n\na D\ncat N\nran V\n\ndog N\n", "utf-8")
    gram, model = str(folder / "train.gram.zarr"), str(folder / "model.zarr")
    assert run(["gram", "build", str(folder / "train.parquet"), "-o", gram, "--inline"]) == 0
    assert run(["fit", gram, "-o", model, "--rounds", "2"]) == 0
    return folder


@pytest.fixture
def folder(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copied = tmp_path / "work"
    shutil.copytree(source, copied)
    monkeypatch.chdir(copied)
    return copied


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_command_works(gramline: Any, folder: Path, name: str) -> None:
    answer = gramline(*(word.replace("%", str(folder)) for word in RIGHT[name]))
    assert answer.code == 0, answer.err


def test_there_are_two_hundred_of_them() -> None:
    assert len(CASES) >= 200


@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_command_is_refused_in_words(gramline: Any, folder: Path, name: str) -> None:
    for mutated in (command for own, command in CASES if own == name):
        answer = gramline(*(word.replace("%", str(folder)) for word in mutated))
        assert answer.code in (0, 1, 2), mutated
        assert "Traceback" not in answer.err + answer.out, mutated
        assert not python_words(answer.err), (mutated, answer.err)
        if answer.code != 0:
            errors = [line for line in answer.err.splitlines() if line.startswith("gramline: error: ")]
            assert len(errors) == 1, (mutated, answer.err)
            assert len(errors[0]) > len("gramline: error: "), mutated
        for made in folder.glob("new*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
