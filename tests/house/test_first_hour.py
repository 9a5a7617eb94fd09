"""A new user's first hour with a file of their own: the commands that the README and `--help` name, nothing else.

The file is in no example: columns with a part of speech between word and label, entities of made-up people and places.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from gramline.pipeline import KernelLabeler
from gramline.pipeline.cli.main import run

Sentence = list[tuple[str, str, str]]

GIVEN, FAMILY = ["Ada", "Bruno", "Carla", "Dmitri", "Edda"], ["Vossen", "Quill", "Marek", "Ash"]
PLACES = [["Nordhavn"], ["San", "Berro"], ["Quill"], ["Port", "Ash"]]
VERBS, RESTS = (
    ["left", "reached", "praised", "avoided"],
    [[("yesterday", "ADV")], [("in", "ADP"), ("May", "PROPN")], []],
)


def entity(words: list[str], kind: str) -> Sentence:
    return [(word, "PROPN", f"{'I' if number else 'B'}-{kind}") for number, word in enumerate(words)]


def sentence(draw: random.Random) -> Sentence:
    who = [draw.choice(GIVEN), draw.choice(FAMILY)][: draw.choice([1, 2])]
    rest: Sentence = [(word, tag, "O") for word, tag in draw.choice(RESTS)]
    return [
        *entity(who, "PER"),
        (draw.choice(VERBS), "VERB", "O"),
        *entity(draw.choice(PLACES), "LOC"),
        *rest,
        (".", "PUNCT", "O"),
    ]


def write(path: Path, sentences: list[Sentence], n_columns: int = 3) -> None:
    blocks = ("\n".join(" ".join(row[:n_columns]) for row in sentence) for sentence in sentences)
    path.write_text("\n\n".join(blocks) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = random.Random(5)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write(tmp_path / "mine.conll", [sentence(draw) for _ in range(40)])
    write(tmp_path / "held.conll", [sentence(draw) for _ in range(15)])
    write(tmp_path / "new.conll", [sentence(draw) for _ in range(3)], n_columns=2)
    return tmp_path


def test_from_a_file_to_a_labeler_that_was_compared(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def said(command: str) -> str:
        assert run(command.split()) == 0, command
        shown = capfd.readouterr()
        assert max(map(len, shown.out.splitlines()), default=0) <= 80
        assert "Traceback" not in shown.err
        return shown.out

    fitted = " ".join(said("fit mine.conll").split())
    assert "right on structures it did not see" in fitted
    assert "if all were O" in fitted
    assert "constraints=iob2" in fitted
    assert "gramline predict mine.model.zarr NEW_FILE" in fitted

    said("corpus import mine.conll -o mine.parquet")
    assert "B-PER" in said("corpus show mine.parquet")

    scores = json.loads(said("evaluate mine.model.zarr held.conll --json"))
    assert scores["accuracy"] > 0.95
    assert scores["spans"]["f1"] > 0.9

    labeled = said("predict mine.model.zarr new.conll").splitlines()
    given = (folder / "new.conll").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in labeled if line] == [line for line in given if line]
    assert {line.rpartition(" ")[2] for line in labeled if line} >= {"B-PER", "O", "B-LOC"}

    table = said("cv mine.conll --set rounds=1,10 --folds 3 --seed 1 --inline")
    assert "majority label (O)" in table
    assert "gramline report mine.run" in table
    said("report mine.run")
    assert "<html" in (folder / "mine.run" / "report.html").read_text()

    assert "winner" in said("fit --from-run mine.run -o best.zarr")
    assert json.loads(said("evaluate best.zarr held.conll --json"))["accuracy"] > 0.95
    rows = [[line.split() for line in given[: given.index("")]]]
    assert KernelLabeler.load("best.zarr").predict(rows)[0] == [
        line.rpartition(" ")[2] for line in labeled[: labeled.index("")]
    ]
