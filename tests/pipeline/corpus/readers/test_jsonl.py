"""JSON lines there and back, for every kind of structure."""

import pytest

from gramline.pipeline.corpus import Corpus, generate_saleslog, read_jsonl, write_jsonl
from gramline.pipeline.errors import CorpusError

SAMPLES = {
    "words": lambda: Corpus.from_sequences([["a", "\u3000\u2028"], [""]], [["X", None], ["Y"]]),
    "mixed": lambda: Corpus.from_sequences([["a", {"f": 0.1, "g": 1}], [{}, ["h", "i"]]], [["X", "X"], None]),
    "prior": lambda: Corpus.from_sequences([["a"], ["b"]], [["X"], ["Y"]], prior=[[[0.1, 0.9]], [[1, 0]]]),
    "trees": lambda: generate_saleslog(4, kind="trees", features="spelling").with_column("group", list("abba")),
    "dags": lambda: generate_saleslog(4, kind="dags").with_column("weight", [1, 2, 3, 4]),
    "parses": lambda: generate_saleslog(4, kind="parses").with_column("id", list("wxyz")),
    "tagged": lambda: Corpus.from_tagged([[("a", "X")], [("b", "Y"), ("a", "Z")]]),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_there_and_back(sample, tmp_path):
    corpus = SAMPLES[sample]()
    write_jsonl(corpus, tmp_path / "c.jsonl")
    again = read_jsonl(tmp_path / "c.jsonl", labels=corpus.label_names or None)
    assert again.table.equals(corpus.table.select(again.table.column_names))
    assert set(again.table.column_names) == set(corpus.table.column_names)
    assert again.fingerprint == corpus.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


def test_a_graph_by_hand(write):
    lines = (
        '{"tokens": ["a", {"f": 2}, ["g", "h"]], "edges": [[0, 2], [1, 2]], "labels": ["X", null, "Y"], "group": "p"}\n'
        "\n"
        '{"id": "second", "tokens": ["a"], "edges": [], "group": "q"}\n'
    )
    corpus = read_jsonl(write("c.jsonl", lines), labels=["Y", "X"])
    assert (corpus.kind, corpus.ids, corpus.column("group")) == ("dags", ["0", "second"], ["p", "q"])
    assert corpus.labels == [["X", None, "Y"], [None]]
    assert corpus.label_names == ["Y", "X"]
    assert corpus.packed().link_targets.tolist() == [2, 2]


def test_nested_trees(write, tmp_path):
    corpus = read_jsonl(write("c.jsonl", '{"tree": ["S", ["A", "two words"]]}\n{"tree": "(S (A b))"}\n'))
    assert corpus.trees == [["S", ["A", "two words"]], ["S", ["A", "b"]]]
    with pytest.raises(CorpusError, match="a bracketed tree cannot hold the symbol 'two words'"):
        write_jsonl(corpus, tmp_path / "never-written.jsonl")
    assert not (tmp_path / "never-written.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", (None, None, None), "c.jsonl is empty"),
        ('{"tokens": ["a"]}\n{"tokens": ["a"\n', (2, None, None), "not a JSON object"),
        ("[" * 100_000 + "\n", (1, None, None), "not a JSON object"),
        ("[1]\n", (1, None, None), "expected a JSON object with the key 'tokens'"),
        ('{"words": ["a"]}\n', (1, 0, None), "the key 'tokens' must hold a list"),
        ('{"tokens": "ab"}\n', (1, 0, None), "the key 'tokens' must hold a list"),
        ('{"tokens": ["a"]}\n\n{"tokens": []}\n', (3, 1, None), "no positions"),
        ('{"tokens": ["a"]}\n\n{"tokens": [3]}\n', (3, 1, 0), "a token is a string"),
        ('{"tokens": [{"f": NaN}]}\n', (1, 0, 0), "feature 'f' is nan"),
        ('{"tokens": ["a"], "labels": []}\n', (1, 0, None), "0 labels for 1 positions"),
        (
            '{"tokens": ["a"]}\n{"tokens": ["a"], "edges": []}\n',
            (2, 1, None),
            "the structure is of kind dags, the first is",
        ),
        ('{"tokens": [["f"]], "words": []}\n', (1, 0, None), "'words' must hold one word per token"),
        ('{"tokens": ["a"], "labels": ["X"], "prior": [[2]]}\n', (1, 0, 0), "the prior row has values from 2 to 2"),
        ('{"tree": "(S (A b)"}\n', (1, 0, None), "line 1 of the tree: the tree that begins here is not closed"),
    ],
)
def test_refused(write, refused, text, place, problem):
    refused(lambda path: read_jsonl(path), write("c.jsonl", text), place, problem)


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(CorpusError, match=r"cannot write .*c\.jsonl: No such file or directory"):
        write_jsonl(Corpus.from_sequences([["a"]]), tmp_path / "nowhere" / "c.jsonl")
