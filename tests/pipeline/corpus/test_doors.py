"""Corpora of what others hold: `Corpus.read`, data frames and rows of data sets (`frames`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus import Corpus, read_conll, read_fasta, read_jsonl
from gramline.pipeline.errors import CorpusError, InputError

COLUMNS = "The DT O\nold JJ O\nAnn NNP B\n\nAnn NNP B\nran VBD O\n"
CONLLU = "1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\tNER=B\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n"
Write = Callable[[str, str], Path]


class Column:
    """What a frame gives for a column name: something with `tolist`, as pandas and numpy have it."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def tolist(self) -> list[Any]:
        return self.values


class Frame:
    """As much of a data frame as is read: `columns`, and columns by their names."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name: str) -> Column:
        return Column(self._columns[name])


class ClassLabel:
    def __init__(self, names: list[str]) -> None:
        self.names = names


class Sequence:
    def __init__(self, feature: ClassLabel) -> None:
        self.feature = feature


class DataSet:
    """As much of a data set as is read: `features`, and rows one by one."""

    def __init__(self, rows: list[dict[str, Any]], names: list[str]) -> None:
        self.features = {"tokens": object(), "ner_tags": Sequence(ClassLabel(names))}
        self._rows = rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("c.conll", COLUMNS, {"features": "spelling", "window": 0, "label_column": 1}),
        ("c.data", COLUMNS, {"no_labels": True, "features": "words"}),
        ("c.txt", COLUMNS, {"format": "conll", "missing_label": "O", "labels": ["B"]}),
        ("c.jsonl", '{"tokens": ["Ann"], "labels": ["B"]}', {"features": "spelling"}),
        (
            "c.conllu",
            CONLLU,
            {"label": "NER", "kind": "sequences", "observation": ["FORM", "UPOS"], "features": "words"},
        ),
        ("c.mrg", "(S (NP-SBJ they) (VP run))", {"strip_functions": True}),
        ("c.fasta", ">a\nMK\nHH\n", {"label_lines": True}),
        ("c.FA", ">a\nMKx\n", {"lower_case": "upper", "unusual_letters": "drop"}),
    ],
)
def test_every_format_is_read_with_its_options(
    write: Write, tmp_path: Path, name: str, text: str, options: Any
) -> None:
    corpus = Corpus.read(write(name, text), **options)
    assert corpus.recipe is not None
    assert corpus.recipe.read(write(f"again-{name}", text)).packed().features.indices.tolist() == (
        corpus.packed().features.indices.tolist()
    )
    corpus.save(tmp_path / "c.parquet")
    assert Corpus.read(tmp_path / "c.parquet").fingerprint == corpus.fingerprint


def test_read_is_the_reader_of_the_format(write: Write) -> None:
    columns, template = write("c.data", COLUMNS), write("t", "U0:%x[0,0]\nU1:%x[0,1]\n")
    direct = read_conll(columns, template=template, minimum_count=2)
    assert Corpus.read(columns, features=f"template:{template}", minimum_count=2).fingerprint == direct.fingerprint
    assert Corpus.read(columns, template=template, minimum_count=2).fingerprint == direct.fingerprint
    new = Corpus.read(write("new.data", "Ann NNP X\n"), template=template, like=direct)
    assert new.label_names == ["O", "B", "X"]
    assert set(new.packed().vocabulary.features) <= set(direct.packed().vocabulary.features)
    assert (
        Corpus.read(write("c.jsonl", '{"tokens": ["a"]}')).fingerprint
        == read_jsonl(write("c.jsonl", '{"tokens": ["a"]}')).fingerprint
    )
    assert Corpus.read(write("c.faa", ">a\nMK\n")).fingerprint == read_fasta(write("c.faa", ">a\nMK\n")).fingerprint


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "c.conll",
            {"strip_empty": True},
            "strip_empty has no effect on conll files; leave it out or choose another format",
        ),
        ("c.conll", {"windwo": 2}, "there is no option windwo; did you mean 'window'?"),
        ("c.conll", {"format": "xml"}, "there is no format 'xml'"),
        ("c.parquet", {"window": 1}, "window has no effect on a corpus that was read already"),
        ("c.parquet", {"labels": ["A"]}, "labels has no effect on a corpus"),
        ("nowhere.conll", {}, "nowhere.conll"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, name: str, options: Any, said: str) -> None:
    (tmp_path / "c.conll").write_text(COLUMNS)
    Corpus.from_sequences([["a"]]).save(tmp_path / "c.parquet")
    with pytest.raises(InputError) as error:
        Corpus.read(tmp_path / name, **options)
    assert said in str(error.value)
    assert "--" not in str(error.value)


def test_a_frame_with_one_row_per_token() -> None:
    nan = float("nan")
    frame = Frame(
        sentence=["s1", nan, None, "s2", nan], word=["The", "old", "Ann", "Ann", "ran"],
        pos=["DT", "JJ", "NNP", "NNP", "VBD"], tag=["O", nan, "B", "B", "O"],
    )  # fmt: skip
    corpus = Corpus.from_pandas(frame, "word", "tag", sentence="sentence")
    assert (corpus.ids, corpus.tokens) == (["s1", "s2"], [["The", "old", "Ann"], ["Ann", "ran"]])
    assert corpus.labels == [["O", None, "B"], ["B", "O"]]
    described = Corpus.from_pandas(frame, "word", "tag", sentence="sentence", columns=["pos"], features="spelling")
    assert described.recipe is not None
    assert described.recipe.columns == 2
    assert "pos[0]=NNP" in described.packed().vocabulary.features
    ids = Corpus.from_pandas({"id": [3, 3, 1], "w": ["a", "b", "c"]}, "w", sentence="id")
    assert (ids.ids, ids.label_names) == (["3", "1"], [])


def test_a_frame_with_one_row_per_sentence() -> None:
    frame = Frame(tokens=[["Ann", "ran"], Column(["Bob"])], labels=[[1.0, 0], None], pos=[["N", "V"], ["N"]])
    corpus = Corpus.from_pandas(frame, labels="labels", label_names=["O", "B"])
    assert (corpus.tokens, corpus.labels) == ([["Ann", "ran"], ["Bob"]], [["B", "O"], [None]])
    assert corpus.label_names == ["O", "B"]
    words = Corpus.from_pandas(frame, columns=["pos"], features="words")
    assert words.packed().vocabulary.features == ("pos[0]=N", "pos[0]=V", "w[0]=Ann", "w[0]=Bob", "w[0]=ran")


def test_a_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"s": [1, None, 2], "w": ["a", "b", "c"], "t": ["X", None, "Y"]})
    corpus = Corpus.from_pandas(frame, "w", "t", sentence="s")
    assert (corpus.tokens, corpus.labels) == ([["a", "b"], ["c"]], [["X", None], ["Y"]])


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"w": ["a"]}, {"tokens": "word"}, "the frame has no column 'word'; "),
        (
            {"w": ["a"]},
            {"tokens": "w"},
            "structure 0: the column 'w' holds the string 'a' where a list is expected; name",
        ),
        (
            {"w": ["a", "b", "c"], "s": [1, 2, 1]},
            {"tokens": "w", "sentence": "s"},
            "begins in row 0 and comes back in row 2",
        ),
        ({"w": ["a"], "s": [None]}, {"tokens": "w", "sentence": "s"}, "row 0 has no 's'"),
        (
            {"w": [["a"]], "p": [["X", "Y"]]},
            {"tokens": "w", "columns": ["p"], "features": "words"},
            "structure 0: the column 'p' has 2",
        ),
        ({"w": [["a"]], "t": [[1]]}, {"tokens": "w", "labels": "t"}, "structure 0, position 0: the tag 1 has no name"),
        ({"w": [["a"]], "t": [["X", "Y"]]}, {"tokens": "w", "labels": "t"}, "2 labels for 1 positions"),
    ],
)
def test_frames_that_do_not_fit(columns: Any, options: Any, said: str) -> None:
    with pytest.raises(CorpusError) as error:
        Corpus.from_pandas(Frame(**columns), **options)
    assert said in str(error.value)


def test_rows_of_a_data_set() -> None:
    rows = [
        {"id": "0", "tokens": ["Ann", "ran", "off"], "ner_tags": [1, 0, -100]},
        {"tokens": ["Bob"], "ner_tags": [1]},
    ]
    names = ["O", "B-PER", "I-PER"]
    expected = [["B-PER", "O", None], ["B-PER"]]
    for corpus in (
        Corpus.from_rows(rows, labels="ner_tags", label_names=names),
        Corpus.from_rows(DataSet(rows, names), labels="ner_tags"),
    ):
        assert (corpus.labels, corpus.label_names) == (expected, names)
        assert corpus.tokens == [["Ann", "ran", "off"], ["Bob"]]
    text = [{"words": ["a", "b", "c"], "tags": ["Y", "X", "X"]}, {"words": ["a"], "tags": None}]
    strings = Corpus.from_rows(text, "words", "tags", features="spelling")
    assert (strings.labels, strings.label_names) == ([["Y", "X", "X"], [None]], ["X", "Y"])
    assert strings.recipe is not None
    assert strings.recipe.describe() == "lists, spelling features with a window of 1"
    assert Corpus.from_rows(text, "words").label_names == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"tokens": ["a"], "ner_tags": [3]}], "structure 0, position 0: the tag 3 is not among the 2 label names"),
        ([{"tokens": ["a"], "ner_tags": [-1]}], "the tag -1 is not among the 2 label names"),
        ([{"tokens": ["a"], "ner_tags": [0.5]}], "a tag is a string or a whole number, got 0.5"),
        (
            [{"tokens": ["a"], "ner_tags": [0]}, {"tokens": ["a"], "ner_tag": [0]}],
            "structure 1: the row has no 'ner_tags'; did",
        ),
        ([["a"]], "structure 0: a row is a mapping with the key 'tokens', got list"),
        ({"tokens": [["a"]], "ner_tags": [[0]]}, "rows must be a list of mappings, got dict"),
        ([{"tokens": "abc", "ner_tags": [0, 0, 0]}], "structure 0: tokens must be a list, got the string 'abc'"),
    ],
)
def test_rows_that_do_not_fit(rows: Any, said: str) -> None:
    with pytest.raises(CorpusError) as error:
        Corpus.from_rows(rows, labels="ner_tags", label_names=["O", "B"])
    assert said in str(error.value)
