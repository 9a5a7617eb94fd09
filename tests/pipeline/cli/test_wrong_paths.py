"""A path of the wrong kind: one sentence of ours that names what is there, what is wanted, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import zarr

STORE = "give the path of a store that `gramline gram build` wrote"
MODEL = "give the path of a model that `gramline fit` wrote"
FILE = "give the path of a file"
CORPUS = "make one with `gramline corpus import` or `generate`"
# What a command that reads a store, or a model, says of each thing that is neither.
FOUND = {
    "nowhere": "does not exist",
    "notes.txt": "is not a {} but a file",
    "train.parquet": "is not a {} but a file",
    "empty": "is not a {} but an empty folder",
    "folder": "is not a {} but a folder of something else",
    "array.zarr": "is not a {} but a Zarr array",
    "broken.zarr": "is not a {} but something whose zarr.json cannot be read",
}


@pytest.fixture
def places(gram: Path, model: Path, tmp_path: Path) -> Path:
    """A folder with one of each kind."""
    shutil.copytree(gram, tmp_path / "store.zarr")
    assert model.is_dir()
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("hello\n")
    zarr.create_array(tmp_path / "array.zarr", shape=(2,), dtype="float64")
    zarr.create_group(tmp_path / "group.zarr", zarr_format=3)
    (tmp_path / "broken.zarr").mkdir()
    (tmp_path / "broken.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node')
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(gramline: Any, places: Path, command: list[str], name: str) -> str:
    """The one line that a command says about the path `name`, which stands for @; nothing may have changed."""
    before = contents(places)
    words = [str(places / name) if word == "@" else word.replace("%", str(places)) for word in command]
    answer = gramline(*words)
    assert (answer.code, answer.out) == (2, "")
    assert contents(places) == before
    line: str = answer.error
    assert str(places / name) in line
    assert "No group found" not in line
    assert "Store(" not in line
    return line


def test_every_command_that_reads_a_store(gramline: Any, places: Path) -> None:
    commands = [
        ["gram", "status", "@"],
        ["gram", "verify", "@", "--inline"],
        ["gram", "append", "@", "%/train.parquet", "--inline"],
        ["gram", "export", "@", "%/new.npy"],
        ["cv", "@", "--plan"],
    ]
    said = FOUND | {
        "model.zarr": "is not a {} but a model",
        "group.zarr": "is not a {} but a Zarr group of something else",
    }
    for command in commands:
        for name, found in said.items():
            if command[0] == "cv" and (places / name).is_file():
                continue  # they take files as well; see below
            if command[0] == "cv" and name == "nowhere":
                continue
            assert refused(gramline, places, command, name) == f"{places / name} {found.format('store')}; {STORE}"


def test_every_command_that_reads_a_model(gramline: Any, places: Path) -> None:
    said = FOUND | {
        "store.zarr": "is not a {} but a store",
        "group.zarr": "is not a {} but a Zarr group of something else",
    }
    for command in (["predict", "@", "%/train.parquet"], ["evaluate", "@", "%/train.parquet"]):
        for name, found in said.items():
            if command[0] == "evaluate" and (name == "nowhere" or (places / name).is_file()):
                continue  # it takes files as well; see below
            assert refused(gramline, places, command, name) == f"{places / name} {found.format('model')}; {MODEL}"


@pytest.mark.parametrize("name", ["nowhere", "empty", "folder", "store.zarr", "model.zarr", "array.zarr"])
def test_every_command_that_reads_a_corpus(gramline: Any, places: Path, name: str) -> None:
    for command in (
        ["corpus", "show", "@"],
        ["gram", "plan", "@"],
        ["gram", "build", "@", "-o", "%/new.zarr", "--inline"],
        ["gram", "build", "%/train.parquet", "--other", "@", "-o", "%/new.zarr", "--inline"],
        ["gram", "append", "%/store.zarr", "@", "--inline"],
        ["predict", "%/model.zarr", "@"],
        ["evaluate", "%/model.zarr", "@"],
        ["corpus", "import", "%/notes.txt", "--like", "@", "-o", "%/new.parquet"],
    ):
        assert refused(gramline, places, command, name) == f"there is no corpus file at {places / name}; {CORPUS}"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["gram", "build", "--job", "@", "-o", "%/new.zarr"], "a job file (TOML)"),
        (["fit", "--job", "@"], "a job file (TOML)"),
        (["corpus", "import", "@", "-o", "%/new.parquet"], "a conll file"),
        (["corpus", "candidates", "@", "--held-out", "2", "-o", "%/new.parquet"], "a file of bracketed trees"),
        (["cv", "%/store.zarr", "--corpus", "@", "--plan"], "a corpus"),
    ],
)
def test_every_command_that_reads_a_file(gramline: Any, places: Path, command: list[str], what: str) -> None:
    assert refused(gramline, places, command, "nowhere").startswith(
        f"{places / 'nowhere'} does not exist; give the path of {what}"
    )
    for name in ("empty", "model.zarr"):
        line = refused(gramline, places, command, name)
        assert line.startswith(f"{places / name} is not {what}")
        assert line.endswith(f"but a folder; {FILE}")


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        (["cv", "@"], "nowhere", "does not exist; give the path of a job file (.toml), a store that"),
        (["evaluate", "@", "%/train.parquet"], "nowhere", "or of a file of predictions"),
        (
            ["evaluate", "@", "%/train.parquet"],
            "train.parquet",
            "give a model that `gramline fit` wrote, or predictions",
        ),
        (["fit", "@", "-o", "%/new.zarr"], "nowhere", "give the path of a file with labels, a corpus or a store that"),
        (["fit", "@", "-o", "%/new.zarr"], "empty", "is not a store but an empty folder"),
        (["fit", "@", "-o", "%/new.zarr"], "model.zarr", "is not a store but a model"),
        (["fit", "@", "-o", "%/new.zarr", "--learner", "hidden-markov-perceptron"], "store.zarr", "path of a corpus"),
        (["gram", "build", "--job", "@", "-o", "%/new.zarr"], "train.parquet", ":1: not UTF-8 text; give the path of"),
    ],
)
def test_commands_that_take_several_kinds(
    gramline: Any, places: Path, command: list[str], name: str, said: str
) -> None:
    assert said in refused(gramline, places, command, name)


@pytest.mark.parametrize("name", ["notes.txt", "folder", "array.zarr", "group.zarr", "model.zarr", "broken.zarr"])
def test_a_build_replaces_nothing_else(gramline: Any, places: Path, name: str) -> None:
    for command in (["build", "%/train.parquet", "--inline"], ["plan", "%/train.parquet", "--inline"]):
        line = refused(gramline, places, ["gram", *command, "-o", "@"], name)
        assert line.startswith(f"{places / name} is not a store but ")
        assert line.endswith("; choose another path, or remove it")


@pytest.mark.parametrize("name", ["notes.txt", "folder", "array.zarr", "group.zarr", "store.zarr", "broken.zarr"])
def test_overwriting_is_for_models_alone(gramline: Any, places: Path, name: str) -> None:
    line = refused(gramline, places, ["fit", "%/store.zarr", "-o", "@", "--overwrite"], name)
    assert line.startswith(f"{places / name} is not a model but ")
    assert line.endswith("; choose another path, or remove it")
    assert gramline("fit", places / "store.zarr", "-o", places / "model.zarr", "--overwrite").code == 0


def test_an_object_store_without_a_group(gramline: Any) -> None:
    assert gramline("gram", "status", "memory://nowhere").error == f"there is no store at memory://nowhere; {STORE}"
