"""FASTA files: letters, labels beside or below them, and letters that need a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus import Corpus, read_fasta
from gramline.pipeline.corpus.readers.fasta import LetterRules
from gramline.pipeline.errors import CorpusError

THREE = ">a first\nMKVA\nHHC?\n\n; a remark\n>b\nAV\nCC\n"


def kinds(corpus: Corpus) -> list[str]:
    return [note.kind for note in corpus.notes]


def test_letters_in_several_lines(write: Any) -> None:
    corpus = read_fasta(write("p.fasta", ">a first\nMK\nVA\nC\n>b\nAV\n"))
    assert (corpus.ids, corpus.tokens) == (["a", "b"], [["M", "K", "V", "A", "C"], ["A", "V"]])
    assert (corpus.label_names, corpus.notes) == ([], ())


def test_the_three_line_format(write: Any) -> None:
    corpus = read_fasta(write("p.fasta", THREE), label_lines=True, missing_label="?")
    assert corpus.tokens == [["M", "K", "V", "A"], ["A", "V"]]
    assert corpus.labels == [["H", "H", "C", None], ["C", "C"]]
    assert corpus.label_names == ["C", "H"]
    assert kinds(read_fasta(write("p.fasta", THREE), label_lines=True)) == ["unknown mark"]


def test_labels_in_a_file_of_their_own(write: Any) -> None:
    labels = write("l.fasta", ">b\nCC\n>a\nHH\nCC\n>c\nH\n")
    corpus = read_fasta(write("p.fasta", ">a\nMKVA\n>b\nAV\n"), label_file=labels)
    assert corpus.labels == [["H", "H", "C", "C"], ["C", "C"]]
    assert [str(note) for note in corpus.notes] == [
        f"{labels}: 1 of its names are not in {labels.parent / 'p.fasta'}, such as 'c'"
    ]


def test_two_lines_of_one_length_are_told(write: Any) -> None:
    corpus = read_fasta(write("p.fasta", ">a\nMK\nHH\n>b\nA\nC\n"))
    assert corpus.tokens[0] == ["M", "K", "H", "H"]
    assert kinds(corpus) == ["label lines"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (LetterRules(), "MkXBZU-A"),
        (LetterRules("upper"), "MKXBZU-A"),
        (LetterRules("unknown"), "MXXBZU-A"),
        (LetterRules("keep", "drop"), "MkA"),
        (LetterRules("upper", "unknown"), "MKXXXXXA"),
    ],
)
def test_rules_of_letters(write: Any, rules: LetterRules, expected: str) -> None:
    letters, places = rules.apply("MkXBZU-A")
    assert "".join(letters) == expected
    assert len(places) == len(letters)
    corpus = read_fasta(write("p.fasta", ">a\nMkXBZU-A\n12345678\n"), label_lines=True, **rules.options())
    assert corpus.tokens == [list(expected)]
    assert corpus.labels == [[str(place + 1) for place in places]]


def test_unusual_letters_are_told(write: Any) -> None:
    path = write("p.fasta", ">a\nMkB\n>a\nAAB\n")
    first, second, third = read_fasta(path).notes
    assert (
        str(first)
        == f"{path}: 1 small letters are letters of their own; --lower-case upper or unknown reads them otherwise"
    )
    assert "unusual letters are kept (B 2)" in str(second)
    assert (third.kind, third.line) == ("repeated id", 3)
    assert kinds(read_fasta(path, lower_case="upper", unusual_letters="unknown")) == ["repeated id"]


def test_features_of_letters(write: Any) -> None:
    corpus = read_fasta(write("p.fasta", ">a\nMK\n"), features="words", window=1)
    assert "w[1]=K" in corpus.packed().vocabulary.features


@pytest.mark.parametrize(
    ("text", "options", "line", "problem"),
    [
        ("MKV\n", {}, 1, "letters before the first name"),
        (">a\n>b\nMK\n", {}, 1, "'a' has no letters"),
        (">a\nMK1\n", {}, 2, "a sequence is made of letters, got '1'"),
        (">a\nMK\nH\n", {"label_lines": True}, 3, "1 labels for 2 letters"),
        (">a\nMK\nHH\nMM\n", {"label_lines": True}, 1, "'a' has 3 lines"),
        (">a\nXX\n", {"unusual_letters": "drop"}, 1, "no letter of 'a' is left"),
        (">a\nMK\nHC\n", {"label_lines": True, "labels": ["H"]}, 1, "the label 'C' is not among"),
    ],
)
def test_refused(write: Any, text: str, options: Any, line: int, problem: str) -> None:
    with pytest.raises(CorpusError) as error:
        read_fasta(write("p.fasta", text), **options)
    assert error.value.line == line
    assert problem in error.value.problem


@pytest.mark.parametrize(
    ("labels", "name", "line", "problem"),
    [
        (">b\nHH\n", "p.fasta", 1, "has no labels of 'a'"),
        (">a\nH\n", "l.fasta", 1, "1 labels for the 2 letters of 'a'"),
        (">a\nHH\n>a\nHH\n", "l.fasta", 3, "the labels of 'a' are in line 1 already"),
    ],
)
def test_label_files_that_do_not_fit(
    write: Any, tmp_path: Path, labels: str, name: str, line: int, problem: str
) -> None:
    with pytest.raises(CorpusError) as error:
        read_fasta(write("p.fasta", ">a\nMK\n"), label_file=write("l.fasta", labels))
    assert (error.value.path, error.value.line) == (str(tmp_path / name), line)
    assert problem in error.value.problem


def test_an_empty_file(write: Any) -> None:
    with pytest.raises(CorpusError, match=r"p\.fasta has no sequences"):
        read_fasta(write("p.fasta", "\n"))
    with pytest.raises(CorpusError, match="give only one of the two"):
        read_fasta(write("p.fasta", THREE), label_lines=True, label_file="x")
