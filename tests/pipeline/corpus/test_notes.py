"""What readers notice: every note has a kind, a sentence and a place (`heads`, `readers.columns` and others)."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.pipeline.corpus import Corpus, read_conll, read_conllu, read_jsonl
from gramline.pipeline.corpus.heads import children_of_heads
from gramline.pipeline.corpus.notes import Note
from gramline.pipeline.errors import CorpusError


def told(corpus: Corpus) -> list[tuple[str, int | None]]:
    return [(note.kind, note.line) for note in corpus.notes]


def test_a_note_is_a_record() -> None:
    note = Note("one label", "all alike", "look", "x.conll", 3)
    assert str(note) == "x.conll:3: all alike; look"
    assert note.to_dict() == {
        "kind": "one label",
        "problem": "all alike",
        "advice": "look",
        "path": "x.conll",
        "line": 3,
    }
    assert Note("a", "b").to_dict() == {"kind": "a", "problem": "b"}
    assert str(Note("a", "b")) == "b"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a X\nb Y\n", []),
        ("a X\nb X\n", ["one label"]),
        ("a ?\nb X\n", ["unknown mark"]),
        ("-DOCSTART- O\n\na X\n", ["document marks"]),
        ("# note\na X\n\nb Y\n", ["comments"]),
        ("#tag X\nb Y\n", []),
        ("# X\n12 Y\n\nb X\n", []),
        ("the DT\ndog NN\nruns VBZ\n. .\n", ["parts of speech"]),
        ("the O DT\nAnn B-PER NNP\nruns O VBZ\n", ["label column"]),
        ("the DT O\nAnn NNP B-PER\nruns VBZ O\n", []),
        ("1 the X\n2 dog Y\n\n1 runs X\n", ["numbered tokens"]),
        ("1 the X\n2 dog Y\n\n4 runs X\n", []),
    ],
)
def test_notes_on_columns(write: Any, text: str, kinds: list[str]) -> None:
    assert [note.kind for note in read_conll(write("c.conll", text)).notes] == kinds


def test_what_notes_on_columns_say(write: Any) -> None:
    path = write("c.conll", "the O DT\nAnn B-PER NNP\nruns O VBZ\n")
    advice = "column 1 holds labels like O, B-PER, but column 2 was taken; give --label-column 1 if it is the label"
    assert str(read_conll(path).notes[0]) == f"{path}: {advice}"
    assert read_conll(path, label_column=1).notes == ()
    marks = write("d.conll", "-DOCSTART- X\n\na O\n\n-DOCSTART- X\n")
    said = "2 lines (the first is line 1) begin with -DOCSTART- and were read as tokens; leave document marks out"
    assert said in str(read_conll(marks).notes[0])
    assert read_conll(write("e.conll", "# id 1\na O\nb B\n"), skip_comments=True, label_column=1).tokens == [["a", "b"]]


def test_the_note_on_numbers_says_how_to_read_the_words(write: Any) -> None:
    path = write("c.conll", "1 the X\n2 dog Y\n\n1 runs X\n")
    problem = "column 0, which is read as the word, counts the tokens of a sentence"
    assert str(read_conll(path).notes[0]) == f"{path}: {problem}; give --word-column 1 if the word comes next"
    assert read_conll(path, word_column=1).notes == ()


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("a X\n# sent_id = 3\nb Y\n", 2, "leave comments out (--skip-comments)"),
        ("# sent_id = 3\na X\nb Y\n", 1, "leave comments out (--skip-comments)"),
        ("a b X\n\n-DOCSTART-\n", 3, "leave document marks out (--skip-document-marks)"),
        ("a X\nb\n", 2, "every token needs the same"),
    ],
)
def test_lines_that_are_no_tokens(write: Any, text: str, line: int, advice: str) -> None:
    with pytest.raises(CorpusError) as error:
        read_conll(write("c.conll", text))
    assert (error.value.line, error.value.advice) == (line, advice)


WORD = "{}\tw\tw\t{}\t_\t_\t{}\tdep\t_\t_\n"


def test_notes_on_dependency_trees(write: Any) -> None:
    sentence = "# sent_id = a\n" + WORD.format(1, "N", 0) + WORD.format(2, "V", 0) + "\n"
    corpus = read_conllu(write("c.conllu", sentence * 2))
    assert told(corpus) == [("repeated id", 6), ("several roots", 2)]
    assert "the id 'a' is that of line 2 already; ids name predictions" in str(corpus.notes[0])
    assert "2 structures have several roots (here 2): a forest, not a tree" in str(corpus.notes[1])
    assert told(read_conllu(write("c.conllu", sentence), kind="sequences")) == []


def test_notes_on_json_lines(write: Any) -> None:
    lines = '{"tokens": ["a"], "lables": ["X"], "group": 1}\n{"id": "0", "tokens": ["a"], "words": ["a"]}\n'
    corpus = read_jsonl(write("c.jsonl", lines))
    assert told(corpus) == [("unknown keys", 1), ("ignored keys", 2), ("repeated id", 2)]
    assert str(corpus.notes[0]).endswith("decide nothing: 'lables'; 'lables': did you mean 'labels'?")
    tree = read_jsonl(write("t.jsonl", '{"tree": "(S a)", "tokens": ["a"]}'))
    assert told(tree) == [("ignored keys", 1)]
    marks = read_jsonl(write("c.jsonl", '{"tokens": ["a", "b"], "labels": ["?", "?"]}'))
    assert [note.kind for note in marks.notes] == ["one label", "unknown mark"]


def test_heads_from_one_or_from_zero(write: Any) -> None:
    expected = [[[], [0, 2], []]]
    for heads in ("[2, 0, 2]", "[1, -1, 1]", "[1, null, 1]"):
        corpus = read_jsonl(write("c.jsonl", f'{{"tokens": ["a", "b", "c"], "heads": {heads}}}'))
        assert corpus.kind == "trees"
        assert corpus.table["links"].to_pylist() == expected
    forest = read_jsonl(write("c.jsonl", '{"tokens": ["a", "b"], "heads": [0, 0]}'))
    assert told(forest) == [("several roots", 1)]


@pytest.mark.parametrize(
    ("heads", "place", "problem"),
    [
        ([[0, 3]], (0, 1), "the head 3 is not the number of a word"),
        ([[-1, 2]], (0, 1), "the head 2 is not the number of a word"),
        ([[0, "1"]], (0, 1), "the head '1' is not"),
        ([[0, 1.5]], (0, 1), "the head 1.5 is not"),
        ([[0], [-1]], (1, None), "heads count words from 0 here, and from 1 before"),
        (["01"], (0, None), "heads must be a list"),
    ],
)
def test_heads_that_do_not_fit(heads: Any, place: Any, problem: str) -> None:
    with pytest.raises(CorpusError) as error:
        children_of_heads(heads)
    assert (error.value.structure, error.value.position) == place
    assert problem in error.value.problem


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('{"tokens": ["a", "b"], "heads": [2, 1]}', "the node is its own ancestor's child"),
        ('{"tokens": ["a", "b"], "heads": [0]}', "2 positions but 1 lists of children"),
        ('{"tokens": ["a"], "heads": [0], "children": [[]]}', "both heads and children are given"),
    ],
)
def test_heads_of_a_file_that_do_not_fit(write: Any, record: str, problem: str) -> None:
    with pytest.raises(CorpusError) as error:
        read_jsonl(write("c.jsonl", record))
    assert (error.value.line, error.value.problem) == (1, problem)


def test_features_of_json_lines(write: Any) -> None:
    record = '{"tokens": ["Ann", "ran"], "labels": ["B", "O"], "children": [[], [0]]}'
    corpus = read_jsonl(write("c.jsonl", record), features="spelling", window=0)
    assert "capital[0]" in corpus.packed().vocabulary.features
    assert (corpus.kind, corpus.tokens) == ("trees", [["Ann", "ran"]])
    with pytest.raises(CorpusError, match="structure 0, position 0: a feature set describes words"):
        read_jsonl(write("c.jsonl", '{"tokens": [{"f": 1}]}'), features="spelling")
    with pytest.raises(CorpusError, match="parses have no features to choose"):
        read_jsonl(write("c.jsonl", '{"tree": "(S a)"}'), features="spelling")
