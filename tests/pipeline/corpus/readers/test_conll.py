"""Column files."""

import gzip

import pytest

from gramline.pipeline.corpus import read_conll
from gramline.pipeline.corpus.readers.columns import read_columns
from gramline.pipeline.errors import CorpusError

TEXT = "The DT O\nBig  NN\tB-X\n\n \n-DOCSTART- -X- O\n\n\u3000 S O\r\nx y I-X\n\n"


def test_columns_split_at_ascii_white_space_only(write):
    table = read_columns(write("t", TEXT), skip_document_marks=True)
    assert table.starts.tolist() == [0, 2, 4]
    assert table.sentences(0) == [["The", "Big"], ["\u3000", "x"]]
    assert table.sentences(-1) == [["O", "B-X"], ["O", "I-X"]]
    assert table.lines == (1, 7)
    assert len(read_columns(write("t", TEXT)).starts) == 4


def test_words_and_labels(write):
    for path in (write("t", TEXT), write("t.gz", gzip.compress(TEXT.encode()))):
        corpus = read_conll(path, skip_document_marks=True)
        assert corpus.tokens == [["The", "Big"], ["\u3000", "x"]]
        assert corpus.labels == [["O", "B-X"], ["O", "I-X"]]
        assert corpus.label_names == ["O", "B-X", "I-X"]
        assert corpus.packed().vocabulary.features == ("Big", "The", "x", "\u3000")


def test_choice_of_labels(write):
    path = write("t", "a N X\nb V ?\n")
    assert read_conll(path, label_column=1).labels == [["N", "V"]]
    assert read_conll(path, label_column=1, features="words").packed().vocabulary.features == (
        "pos[0]=?", "pos[0]=X", "w[0]=a", "w[0]=b"
    )  # fmt: skip
    assert read_conll(path, label_column=None).labels == [[None, None]]
    assert read_conll(path, missing_label="?").labels == [["X", None]]
    assert read_conll(path, labels=["?", "X", "Y"]).label_names == ["?", "X", "Y"]


@pytest.mark.parametrize(
    ("line", "options", "token", "label"),
    [
        ("7 1 Ann NNP B", {"word_column": 2}, ("Ann", "NNP"), "B"),
        ("7 1 Ann NNP B", {"word_column": -3}, ("Ann", "NNP"), "B"),
        ("7 1 Ann NNP B", {"word_column": 2, "label_column": 0}, ("Ann", "NNP", "B"), "7"),
        ("7 1 Ann NNP B", {"word_column": 2, "label_column": None}, ("Ann", "NNP", "B"), None),
        ("B Ann", {"label_column": 0}, ("Ann",), "B"),
        ("B Ann", {"word_column": 1, "label_column": 0}, ("Ann",), "B"),
        ("7 B Ann NNP", {"word_column": 2, "label_column": 1}, ("Ann", "NNP"), "B"),
    ],
)
def test_choice_of_words(write, line, options, token, label):
    """The file is read as if the columns before the word had been cut off, and so is a file to predict."""
    corpus = read_conll(write("t", f"{line}\n"), features="words", **options)
    cut = read_conll(write("cut", " ".join([*token, "X"]) + "\n"), features="words")
    assert (corpus.tokens, corpus.labels) == ([[token[0]]], [[label]])
    assert corpus.packed().vocabulary.features == cut.packed().vocabulary.features
    assert corpus.recipe.columns == len(token)

    again = corpus.recipe.read(write("again", f"{line}\n"))
    assert again.tokens == corpus.tokens
    assert again.packed().vocabulary.features == cut.packed().vocabulary.features
    without_label = [field for place, field in enumerate(line.split()) if field != label]
    bare = corpus.recipe.read(write("bare", " ".join(without_label) + "\n"))
    assert (bare.tokens, bare.labels) == (corpus.tokens, [[None]])
    assert bare.packed().vocabulary.features == cut.packed().vocabulary.features


@pytest.mark.parametrize(
    ("text", "options", "place", "problem"),
    [
        ("a X\nb\n", {}, (2, None, None), "1 columns, but line 1 has 2"),
        ("a X\n\nb Y Z\n", {}, (3, None, None), "3 columns, but line 1 has 2"),
        ("", {}, (None, None, None), "t has no tokens"),
        ("\n\n", {}, (None, None, None), "t has no tokens"),
        ("a X\n", {"label_column": 2}, (None, None, None), "t has 2 columns; there is no column 2"),
        ("a X\n", {"word_column": 2}, (None, None, None), "t has 2 columns; there is no column 2"),
        ("a X\n", {"word_column": 1}, (None, None, None), "cannot be both the word and the label"),
        (
            "a X\n",
            {"word_column": 0, "label_column": 0},
            (None, None, None),
            "cannot be both the word and the label",
        ),
        ("X\n", {}, (None, None, None), "t has one column and it is the label"),
        (
            "a X\n\nb Y\n",
            {"labels": ["X"]},
            (3, 1, 0),
            "the label 'Y' is not among the given labels",
        ),
        ("a X\n", {"features": "nonsense"}, (None, None, None), "there is no feature set 'nonsense'"),
        (
            "a X\n",
            {"features": "words", "window": -1},
            (None, None, None),
            "the window of a feature set is 0 or more neighbours, got -1",
        ),
    ],
)
def test_refused(write, refused, text, options, place, problem):
    refused(lambda path: read_conll(path, **options), write("t", text), place, problem)


def test_the_sentence_names_the_file_the_line_and_the_position(write):
    path = write("t", "a X\n\nb Y\n")
    with pytest.raises(CorpusError) as caught:
        read_conll(path, labels=["X"])
    assert str(caught.value).startswith(f"{path}:3: structure 1, position 0: the label 'Y' is not among the given")
