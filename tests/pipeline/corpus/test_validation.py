"""Everything that is not well formed is refused in one line with the structure and the position."""

import numpy as np
import pyarrow as pa
import pytest

from gramline.pipeline.corpus import Corpus
from gramline.pipeline.errors import CorpusError, UnknownLabelError

BAD = float("nan")
NOWHERE = (None, None)


def sequences(X, y=None, **options):
    return lambda: Corpus.from_sequences(X, y, **options)


def trees(X, children):
    return lambda: Corpus.from_trees(X, children)


def dags(X, edges):
    return lambda: Corpus.from_dags(X, edges)


REFUSED = {
    "empty corpus": (sequences([]), NOWHERE, "the corpus is empty"),
    "empty structure": (sequences([["a"], []]), (1, None), "no positions"),
    "not a list": (sequences("abc"), NOWHERE, "X must be a list of structures, got str"),
    "bytes": (sequences(b"abc"), NOWHERE, "X must be a list of structures, got bytes"),
    "children by number": (
        trees([["a"]], {0: [[]]}),
        NOWHERE,
        "children must be a list with one entry per structure, got dict",
    ),
    "children are missing": (
        trees([["a"]], None),
        NOWHERE,
        "children must be a list with one entry per structure, got None",
    ),
    "edges are missing": (
        dags([["a"]], None),
        NOWHERE,
        "edges must be a list with one entry per structure, got NoneType",
    ),
    "sentences are missing": (
        lambda: Corpus.from_tagged(None),
        NOWHERE,
        "sentences must be a list of structures, got None",
    ),
    "one tree": (lambda: Corpus.from_parses("(S a)"), NOWHERE, "trees must be a list of structures, got str"),
    "structure is a string": (sequences([["a"], "abc"]), (1, None), "tokens must be a list, got the string 'abc'"),
    "structure is a number": (sequences([5]), (0, None), "tokens must be a list, got int"),
    "token is a number": (sequences([["a", 7]]), (0, 1), "a token is a string, a mapping"),
    "token is bytes": (sequences([[b"ab"]]), (0, 0), "a token is a string, a mapping"),
    "name is a number": (sequences([["a"], ["b", ["f", 3]]]), (1, 1), "the feature name must be a"),
    "name is a list": (sequences([[["f"], [["g"]]]]), (0, 1), "the feature name must be a string"),
    "key is a number": (
        sequences([[{"a": 1}, {3: 1.0}]]),
        (0, 1),
        "the feature name must be a string",
    ),
    "value is nan": (sequences([["a"], ["b", {"f": BAD}]]), (1, 1), "feature 'f' is nan"),
    "value is infinite": (sequences([[{"f": 1.0, "g": -np.inf}]]), (0, 0), "feature 'g' is -inf"),
    "value is None": (sequences([[{"f": None}]]), (0, 0), "the value of feature 'f' must be a number"),
    "feature twice": (sequences([[{"f=x": 1, "f": "x"}]]), (0, 0), "feature 'f=x' is given twice"),
    "half a letter": (sequences([["\ud800"]]), NOWHERE, "the name '\\ud800' is not valid Unicode"),
    "too few label lists": (sequences([["a"], ["b"]], [["X"]]), NOWHERE, "there are 2 structures, but labels for 1"),
    "too few labels": (sequences([["a"], ["b", "c"]], [["X"], ["Y"]]), (1, None), "1 labels for 2 positions"),
    "label is a number": (sequences([["a", "b"]], [["X", 2]]), (0, 1), "the label is 2"),
    "labels are a string": (sequences([["a", "b"]], ["XY"]), (0, None), "labels must be a list, got the string 'XY'"),
    "label not given": (
        sequences([["a"], ["b"]], [["X"], ["Z"]], labels=["X", "Y"]),
        (1, 0),
        "the label 'Z' is not among the given labels (X, Y)",
    ),
    "label listed twice": (sequences([["a"]], labels=["X", "Y", "X"]), NOWHERE, "the label 'X' is listed twice"),
    "label name is a number": (sequences([["a"]], labels=["X", 3]), NOWHERE, "label names must be strings, got 3"),
    "prior without labels": (sequences([["a"]], prior=[[[1.0]]]), NOWHERE, "a prior needs labels to name its columns"),
    "too few priors": (
        sequences([["a"], ["b"]], prior=[[[1.0]]], labels=["X"]),
        NOWHERE,
        "2 structures but 1 prior tables",
    ),
    "prior of another shape": (
        sequences([["a"], ["b"]], prior=[[[0.5, 0.5]], [[1.0]]], labels=["X", "Y"]),
        (1, None),
        "the prior has shape (1, 1), not (1, 2)",
    ),
    "prior of words": (sequences([["a"]], prior=[[["x"]]], labels=["X"]), (0, None), "the prior must be a table"),
    "negative prior": (
        sequences([["a"], ["b", "c"]], prior=[[[1, 0]], [[0.5, 0.5], [-0.5, 1.5]]], labels=["X", "Y"]),
        (1, 1),
        "the prior row has values from -0.5 to 1.5 and the sum 1",
    ),
    "prior above one": (
        sequences([["a"]], prior=[[[0.0, 1.5]]], labels=["X", "Y"]),
        (0, 0),
        "the prior row has values from 0 to 1.5 and the sum 1.5",
    ),
    "prior is nan": (
        sequences([["a"]], prior=[[[BAD]]], labels=["X"]),
        (0, 0),
        "the prior row has values from nan to nan",
    ),
    "prior sum": (
        sequences([["a"]], prior=[[[0.5, 0.4]]], labels=["X", "Y"]),
        (0, 0),
        "the prior row has values from 0.4 to 0.5 and the sum 0.9",
    ),
    "too few trees": (trees([["a"], ["b"]], [[[]]]), NOWHERE, "2 structures but children of 1"),
    "too few nodes": (trees([["a", "b"]], [[[1]]]), (0, None), "2 positions but 1 lists of children"),
    "child is a word": (trees([["a", "b"]], [[["b"], []]]), (0, 0), "children must be a list of node"),
    "children are a number": (
        trees([["a", "b"]], [[1, []]]),
        (0, 0),
        "children must be a list of node",
    ),
    "child too high": (
        trees([["a"], ["a", "b"]], [[[]], [[2], []]]),
        (1, 0),
        "the child index 2 is out",
    ),
    "child negative": (
        trees([["a", "b"]], [[[-1], []]]),
        (0, 0),
        "the child index -1 is out of range",
    ),
    "child enormous": (trees([["a", "b"]], [[[2**40], []]]), (0, 0), "the child index"),
    "two parents": (trees([["a", "b", "c"]], [[[2], [2], []]]), (0, 2), "the node has 2 parents"),
    "child listed twice": (trees([["a", "b"]], [[[1, 1], []]]), (0, 1), "the node has 2 parents"),
    "own parent": (trees([["a"]], [[[0]]]), (0, 0), "the node is its own ancestor"),
    "tree cycle": (
        trees([["a"], ["a", "b", "c", "d"]], [[[]], [[], [2], [3], [1]]]),
        (1, 1),
        "the node is its own ancestor",
    ),
    "too few graphs": (dags([["a"], ["b"]], [[]]), NOWHERE, "2 structures but edges of 1"),
    "edge is a number": (dags([["a"]], [[0]]), (0, None), "edges must be a list of pairs"),
    "edge to a word": (dags([["a", "b"]], [[(0, "b")]]), (0, None), "edges must be a list of pairs"),
    "edge too high": (dags([["a"], ["a", "b"]], [[], [(0, 2)]]), (1, None), "the edge (0, 2) is out of range"),
    "edge negative": (dags([["a", "b"]], [[(-1, 0)]]), (0, None), "the edge (-1, 0) is out of range"),
    "loop": (dags([["a", "b"]], [[(1, 1)]]), (0, 1), "the node has an edge to itself"),
    "graph cycle": (
        dags([["a"], ["a", "b", "c"]], [[], [(0, 1), (1, 2), (2, 1)]]),
        (1, 1),
        "the node lies on a cycle",
    ),
    "tagged is a word": (
        lambda: Corpus.from_tagged([[("a", "X"), "b"]]),
        (0, 1),
        "a tagged word is a pair",
    ),
    "tag is None": (lambda: Corpus.from_tagged([[("a", None)]]), (0, 0), "a tagged word is a pair"),
    "tagged is empty": (lambda: Corpus.from_tagged([[("a", "X")], []]), (1, None), "no positions"),
    "parse is a number": (
        lambda: Corpus.from_parses([5]),
        (0, None),
        "a tree is a nested list or a bracketed string",
    ),
    "parse without label": (lambda: Corpus.from_parses([["S", "a"], [["S"]]]), (1, 0), "a tree is a list"),
    "parse of numbers": (lambda: Corpus.from_parses([["S", ["A", 3]]]), (0, 1), "a child is a word or"),
    "two trees": (lambda: Corpus.from_parses(["(S a) (S b)"]), (0, None), "one bracketed tree per string, got 2"),
    "tree not closed": (
        lambda: Corpus.from_parses(["(S a)", "(S (A b)"]),
        (1, None),
        "line 1 of the tree: the tree that begins",
    ),
    "tree closed twice": (
        lambda: Corpus.from_parses(["(S a))"]),
        (0, None),
        "line 1 of the tree: a closing bracket without",
    ),
    "no tree": (
        lambda: Corpus.from_parses(["word"]),
        (0, None),
        "line 1 of the tree: 'word' is outside of all brackets",
    ),
    "empty brackets": (
        lambda: Corpus.from_parses(["(S ())"]),
        (0, None),
        "line 1 of the tree: an empty pair of brackets",
    ),
    "no label inside": (
        lambda: Corpus.from_parses(["(S ((A b)))"]),
        (0, None),
        "line 1 of the tree: a node inside the tree has no",
    ),
    "no parses": (lambda: Corpus.from_parses([]), NOWHERE, "the corpus is empty"),
    "unknown kind": (
        lambda: Corpus(pa.table({"id": ["0"]}), "maps"),
        NOWHERE,
        "a corpus holds sequences, trees, dags, parses, tagged",
    ),
    "no tokens": (
        lambda: Corpus(pa.table({"id": ["0"]}), "sequences"),
        NOWHERE,
        "a corpus of sequences needs a column 'tokens'",
    ),
    "no links": (
        lambda: Corpus(pa.table({"id": ["0"], "tokens": [["a"]]}), "trees"),
        NOWHERE,
        "needs a column 'links'",
    ),
    "null token": (
        lambda: Corpus(pa.table({"id": ["0"], "tokens": [["a", None]]}), "sequences"),
        (0, 1),
        "the token has neither text nor features",
    ),
    "columns of other lengths": (
        lambda: Corpus(pa.table({"id": ["0"], "tokens": [["a"]], "labels": [["X", "Y"]]}), "sequences", ["X", "Y"]),
        (0, None),
        "the column 'labels' and the tokens differ in length",
    ),
    "columns of other types": (
        lambda: Corpus(pa.table({"id": ["0"], "tokens": [[1]]}), "sequences"),
        NOWHERE,
        "the column 'tokens' has the type list<item: int64>",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, place, problem = REFUSED[case]
    with pytest.raises(CorpusError) as caught:
        make()
    assert (caught.value.structure, caught.value.position) == place
    assert problem in caught.value.problem
    assert "\n" not in str(caught.value)


def test_the_sentence_names_the_structure_and_the_position():
    with pytest.raises(CorpusError) as caught:
        Corpus.from_trees([["a"], ["a", "b"]], [[[]], [[2], []]])
    assert str(caught.value) == (
        "structure 1, position 0: the child index 2 is out of range; the structure has 2 positions, counted from 0"
    )


def test_unknown_labels_are_listed():
    with pytest.raises(UnknownLabelError) as caught:
        Corpus.from_sequences([["a"], ["b", "c"]], [["X"], ["Z", "Y"]], labels=["X"])
    assert (caught.value.names, caught.value.structure, caught.value.position) == (("Y", "Z"), 1, 0)
    assert str(caught.value) == (
        "structure 1, position 0: the label 'Z' is not among the given labels (X); add it to them (--labels), or leave "
        "the position without a label"
    )


def test_what_may_be_strange():
    assert len(Corpus.from_sequences([[{}, [], "", ("",)]]).packed().features.indices) == 2
    assert Corpus.from_trees([["a", "b"]], [[[], []]]).show()["links"] == 0
    assert Corpus.from_dags([["a", "b"]], [[]]).show()["links"] == 0
    single_precision = np.full((1, 3), 1 / 3, np.float32)
    assert Corpus.from_sequences([["a"]], prior=[single_precision], labels=["X", "Y", "Z"]).show()["prior"]
    assert Corpus.from_parses(["((S a))"]).trees == [["TOP", ["S", "a"]]]
