"""corpus import, show and generate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus

CONLL = "the D\ndog N\n\na D\ncat N\nbarks V\n"
CONLLU = "1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n"


@pytest.fixture
def columns(tmp_path: Path) -> Path:
    path = tmp_path / "x.data"
    path.write_text(CONLL)
    return path


def test_columns(gramline: Any, columns: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    answer = gramline("corpus", "import", columns, "-o", target)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        f"2 sequences, 5 positions, 5 features, 3 labels: {target}",
        "labels: D 2, N 2, V 1",
        "the/D dog/N",
        "a/D cat/N barks/V",
        "next    gramline fit x.parquet",
        "        gramline cv x.parquet",
    ]
    assert Corpus.load(target).labels == [["D", "N"], ["D", "N", "V"]]


def test_label_options(gramline: Any, columns: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    assert gramline("corpus", "import", columns, "-o", target, "--labels", "V,N,D").code == 0
    assert Corpus.load(target).label_names == ["V", "N", "D"]
    assert gramline("corpus", "import", columns, "-o", target, "--missing-label", "V").code == 0
    assert Corpus.load(target).labels == [["D", "N"], ["D", "N", None]]
    assert gramline("corpus", "import", columns, "-o", target, "--no-labels", "--json").json["labels"] == {}


def test_templates_keep_the_features_of_training(gramline: Any, columns: Path, tmp_path: Path) -> None:
    template, train, test = tmp_path / "template", tmp_path / "train.parquet", tmp_path / "test.parquet"
    template.write_text("U00:%x[0,0]\nU01:%x[-1,0]\n")
    answer = gramline("corpus", "import", columns, "--features", f"template:{template}", "-o", train, "--json")
    assert answer.json["features"] == 9
    new = tmp_path / "new.data"
    new.write_text("the D\nzebra N\n")
    options = ["--features", f"template:{template}", "--like", train, "--json"]
    assert gramline("corpus", "import", new, "-o", test, *options).json["features"] == 3
    assert Corpus.load(test).label_names == ["D", "N", "V"]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("NERR", "note: no word of {} has NERR in MISC or FEATS: all labels are O; there are NER, Number\n"),
        (
            "MISC.Numbr",
            "note: no word of {} has MISC.Numbr in MISC or FEATS: all labels are O; there are NER, Number\n",
        ),
        ("Number", ""),
        ("XPOS", ""),
    ],
)
def test_a_label_that_no_word_has_is_told(gramline: Any, tmp_path: Path, label: str, said: str) -> None:
    file = tmp_path / "x.conllu"
    words = ("1\tdogs\tdog\tN\tNN\tNumber=O\t2\tnsubj\t_\tNER=B", "2\tbark\tbark\tV\tVB\tNumber=P\t0\troot\t_\t_")
    file.write_text("\n".join(words))
    answer = gramline("corpus", "import", file, "--label", label, "-o", tmp_path / "x.parquet")
    assert (answer.code, answer.err) == (0, said.format(file))


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (["S", ["NP", "they"], ["VP", "run"]], "(S (NP they) (VP run))"),
        (["S", ["NP", "New York"], ["VP", "runs"]], '["S", ["NP", "New York"], ["VP", "runs"]]'),
    ],
)
def test_parses_are_shown_as_trees(gramline: Any, tmp_path: Path, tree: list[Any], said: str) -> None:
    Corpus.from_parses([tree]).save(tmp_path / "x.parquet")
    assert gramline("corpus", "show", tmp_path / "x.parquet").out.splitlines()[-1] == said


def test_labels_that_training_does_not_have_come_last(gramline: Any, columns: Path, tmp_path: Path) -> None:
    train, test, new = tmp_path / "train.parquet", tmp_path / "test.parquet", tmp_path / "new.data"
    assert gramline("corpus", "import", columns, "-o", train).code == 0
    new.write_text("the Z\nzebra N\n\nyes A\n")
    answer = gramline("corpus", "import", new, "-o", test, "--like", train)
    assert answer.code == 0
    assert answer.err.startswith(f"note: {train} has no label A, Z: ")
    assert Corpus.load(test).label_names == ["D", "N", "V", "A", "Z"]
    assert Corpus.load(test).labels == [["Z", "N"], ["A"]]
    assert gramline("corpus", "import", columns, "-o", test, "--like", train).err == ""


@pytest.mark.parametrize(
    ("name", "text", "options", "kind"),
    [
        ("x.jsonl", '{"tokens": ["a", "b"], "labels": ["A", null]}\n', [], "sequences"),
        ("x.conllu", CONLLU, [], "trees"),
        ("x.conllu", CONLLU, ["--kind", "sequences", "--label", "DEPREL"], "sequences"),
        ("x.mrg", "(S (NP-SBJ they) (VP run))\n", ["--strip-functions"], "parses"),
        ("x.trees", "(S (NP they) (VP run))\n", [], "parses"),
        ("x.txt", "(S (NP they) (VP run))\n", ["--format", "brackets"], "parses"),
    ],
)
def test_other_formats(gramline: Any, tmp_path: Path, name: str, text: str, options: list[str], kind: str) -> None:
    (tmp_path / name).write_text(text)
    answer = gramline("corpus", "import", tmp_path / name, "-o", tmp_path / "out.parquet", "--json", *options)
    assert (answer.code, answer.json["kind"]) == (0, kind)
    assert Corpus.load(tmp_path / "out.parquet").kind == kind


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--strip-empty"], "--strip-empty has no effect on conll files"),
        (["--minimum-count", "2"], "--minimum-count counts the features of a template"),
        (["--features", "spellings"], "there is no feature set 'spellings'"),
        (["--features", "template:nowhere"], "cannot read nowhere"),
        (["--label-column", "5"], "there is no column 5"),
        (["--labels", "A,B"], "the label 'D' is not among the given labels (A, B); add it to them (--labels)"),
        (["--labels", "D,D"], "the label 'D' is listed twice; list each label once"),
        (["--like", "nowhere.parquet"], "there is no corpus file at nowhere.parquet"),
    ],
)
def test_options_that_do_not_fit(gramline: Any, columns: Path, tmp_path: Path, options: list[str], said: str) -> None:
    answer = gramline("corpus", "import", columns, "-o", tmp_path / "x.parquet", *options)
    assert answer.code == 2
    assert said in answer.error
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.data", "D\nN\n", "has one column and it is the label; read words alone without labels (--no-labels)"),
        ("x.jsonl", '{"tokens": ["a"], "labels": "X"}', "got the string 'X'; give each its own entry"),
        ("x.jsonl", '{"tokens": ["a"], "labels": [3]}', "position 0: the label is 3; labels are strings"),
        (
            "x.jsonl",
            '{"tokens": ["a"], "labels": [null], "prior": [[1]]}',
            "give label names in their order (--labels)",
        ),
        ("x.jsonl", '{"tokens": ["a"], "g": 1}\n{"tokens": ["b"], "g": "2"}', ":2: structure 1: the column 'g' cannot"),
    ],
)
def test_files_that_do_not_fit(gramline: Any, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    answer = gramline("corpus", "import", tmp_path / name, "-o", tmp_path / "x.parquet")
    assert answer.code == 2
    assert said in answer.error
    assert not (tmp_path / "x.parquet").exists()


def test_show(gramline: Any, corpus: Path) -> None:
    told = gramline("corpus", "show", corpus, "--json").json
    assert (told["structures"], told["positions"], told["labels"]) == (5, 15, {"D": 5, "N": 7, "V": 3})
    spoken = gramline("corpus", "show", corpus).out
    assert "the/D dog/N barks/V" in spoken
    assert max(map(len, spoken.splitlines())) <= 80


def test_generate_is_seeded(gramline: Any, tmp_path: Path) -> None:
    def made(seed: str, name: str) -> Any:
        options = ["--sentences", "12", "--seed", seed, "-o", tmp_path / name, "--json"]
        answer = gramline("corpus", "generate", "saleslog", *options)
        assert (answer.code, answer.err) == (0, "")
        return answer.json

    first, again, other = made("1", "a.parquet"), made("1", "b.parquet"), made("2", "c.parquet")
    assert first["structures"] == 12
    assert "O" in first["labels"]
    assert first["fingerprint"] == again["fingerprint"] != other["fingerprint"]
    assert json.dumps(first["labels"]) != "{}"


def test_only_what_is_there_can_be_generated(gramline: Any, tmp_path: Path) -> None:
    answer = gramline("corpus", "generate", "poems", "-o", tmp_path / "x.parquet")
    assert answer.code == 2
    assert "there is no corpus 'poems' to generate; there is saleslog" in answer.error


def test_letters(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "p.fasta").write_text(">a\nMkB\nHHC\n")
    target = tmp_path / "p.parquet"
    answer = gramline("corpus", "import", tmp_path / "p.fasta", "-o", target, "--label-lines")
    assert answer.code == 0
    assert answer.out.splitlines()[1:3] == ["labels: H 2, C 1", "M/H k/H B/C"]
    assert "note: " in answer.err
    options = ["--label-lines", "--lower-case", "upper", "--unusual-letters", "drop", "--features", "words", "--json"]
    told = gramline("corpus", "import", tmp_path / "p.fasta", "-o", target, *options).json
    assert (told["notes"], Corpus.load(target).tokens) == (
        [{"kind": "one label", "problem": "every labeled position has the label 'H': there is nothing to learn",
          "path": str(tmp_path / "p.fasta")}],
        [["M", "K"]],
    )  # fmt: skip


def test_features_of_json_lines_and_what_was_noticed(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"tokens": ["Ann", "ran"], "labels": ["B", "O"], "lable": 1}\n')
    target = tmp_path / "x.parquet"
    answer = gramline("corpus", "import", tmp_path / "x.jsonl", "-o", target, "--features", "spelling")
    assert (answer.code, answer.err.count("\n")) == (0, 1)
    assert answer.err.startswith(f"note: {tmp_path / 'x.jsonl'}:1: unknown keys are kept as columns and decide nothing")
    spoken = gramline("corpus", "show", target).out
    assert "made from    jsonl, spelling features with a window of 1" in spoken


def test_many_labels_fit_into_a_few_lines(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "x.data").write_text("".join(f"w label-{k:03}\n" for k in range(200)))
    spoken = gramline("corpus", "import", tmp_path / "x.data", "-o", tmp_path / "x.parquet").out.splitlines()
    assert max(map(len, spoken[1:8])) <= 80
    assert spoken[1].startswith("labels: label-000 1, label-001 1")
    assert spoken[6].endswith(" ...")
    assert len(spoken) == 8 + len(["fit", "cv"])
