"""Mistakes of newcomers where corpora are made of lists and frames: one sentence each, with the place."""

from __future__ import annotations

import numpy as np
from wrong_calls import CORPUS, LABELS, WORDS, Calls, cases, check_refused

from gramline.pipeline import Corpus

SURE = [[[1.0, 0.0, 0.0]] * length for length in (2, 3, 2)]  # a prior
FRAME = {"id": [1, 1, 2], "word": ["a", "b", "c"], "tag": ["A", "B", "A"]}
TAGGED = {"id": [1, 2], "word": ["a", "b"], "tag": [0, 1]}
ROWS = [{"tokens": ["a"], "tags": [0]}]
NAN = float("nan")


DOORS: Calls = {
    "from_sequences": {
        "X a number": (lambda: Corpus.from_sequences(3), "X must be a list of structures, got int"),
        "sentence a string": (
            lambda: Corpus.from_sequences([["a"], "the cat"]),
            "structure 1: tokens must be a list, got the string 'the cat'",
        ),
        "word a number": (lambda: Corpus.from_sequences([["a"], ["b", 3]]), "structure 1, position 1: a token is a"),
        "feature None": (lambda: Corpus.from_sequences([[{"a": None}]]), "structure 0, position 0: the value of"),
        "feature infinite": (
            lambda: Corpus.from_sequences([["a", {"b": float("inf")}]]),
            "structure 0, position 1: feature 'b' is inf",
        ),
        "feature named by a number": (
            lambda: Corpus.from_sequences([[{1: 2}]]),
            "structure 0, position 0: the feature name must be a string, got 1",
        ),
        "y a number": (lambda: Corpus.from_sequences(WORDS, 3), "labels must be one list of strings per structure,"),
        "y short": (lambda: Corpus.from_sequences(WORDS, LABELS[:2]), "there are 3 structures, but labels for 2"),
        "labels a string": (
            lambda: Corpus.from_sequences(WORDS, LABELS, labels="DNV"),
            "labels must be a list of label names, got 'DNV'",
        ),
        "labels a number": (
            lambda: Corpus.from_sequences(WORDS, LABELS, labels=3),
            "labels must be a list of label names, got 3",
        ),
        "labels a mapping": (
            lambda: Corpus.from_sequences(WORDS, LABELS, labels={"D": 0, "N": 1, "V": 2}),
            "labels must be a list of label names, got {'D': 0, 'N': 1, 'V': 2}",
        ),
        "labels too few": (
            lambda: Corpus.from_sequences(WORDS, LABELS, labels=["D", "N"]),
            "structure 1, position 2: the label 'V' is not among the given labels (D, N)",
        ),
        "labels of numbers": (
            lambda: Corpus.from_sequences(WORDS, labels=[1, 2]),
            "label names must be strings, got 1",
        ),
        "prior a number": (
            lambda: Corpus.from_sequences(WORDS, LABELS, prior=3),
            "prior must be a list with one table per structure, got int",
        ),
        "prior short": (
            lambda: Corpus.from_sequences(WORDS, LABELS, prior=SURE[:1]),
            "3 structures but 1 prior tables",
        ),
        "prior of another shape": (
            lambda: Corpus.from_sequences(WORDS, LABELS, prior=[SURE[0], SURE[0], SURE[2]]),
            "structure 1: the prior has shape (2, 3), not (3, 3)",
        ),
        "prior of words": (
            lambda: Corpus.from_sequences(WORDS, LABELS, prior=[SURE[0], SURE[1], [["a", "b", "c"]] * 2]),
            "structure 2: the prior must be a table of numbers",
        ),
        "prior of no distribution": (
            lambda: Corpus.from_sequences(WORDS, LABELS, prior=[SURE[0], SURE[1], [[1.0, 1.0, 0.0]] * 2]),
            "structure 2, position 0: the prior row has values from 0 to 1 and the sum 2",
        ),
        "prior without labels": (
            lambda: Corpus.from_sequences(WORDS, prior=SURE),
            "a prior needs labels to name its columns",
        ),
        "not a table": (lambda: Corpus(WORDS, "sequences"), "a corpus is made of an Arrow table, got list"),
        "kind unknown": (lambda: Corpus(CORPUS.table, "lists"), "a corpus holds sequences, trees, dags, parses,"),
        "kind a list": (lambda: Corpus(CORPUS.table, []), "a corpus holds sequences, trees, dags, parses, tagged,"),
    },
    "from_trees": {
        "children None": (lambda: Corpus.from_trees([["a"]], None), "children must be a list with one entry per"),
        "children short": (lambda: Corpus.from_trees([["a"], ["b"]], [[[]]]), "2 structures but children of 1"),
        "children of a structure short": (
            lambda: Corpus.from_trees([["a", "b"]], [[[1]]]),
            "structure 0: 2 positions but 1 lists of children",
        ),
        "heads": (lambda: Corpus.from_trees([["a", "b"]], [[0, 1]]), "structure 0, position 0: children must be a"),
        "out of range": (lambda: Corpus.from_trees([["a", "b"]], [[[5], []]]), "structure 0, position 0: the child"),
        "a cycle": (lambda: Corpus.from_trees([["a", "b"]], [[[1], [0]]]), "structure 0, position 0: the node is"),
        "two parents": (
            lambda: Corpus.from_trees([["a", "b", "c"]], [[[2], [2], []]]),
            "structure 0, position 2: the node has 2 parents",
        ),
        "by word": (lambda: Corpus.from_trees([["a", "b"]], [[["b"], []]]), "structure 0, position 0: children"),
        "by fraction": (lambda: Corpus.from_trees([["a", "b"]], [[[1.5], []]]), "structure 0, position 0: children"),
        "a mapping": (lambda: Corpus.from_trees([["a", "b"]], [{0: [1]}]), "structure 0: children must be a list,"),
        "labels long": (
            lambda: Corpus.from_trees([["a"]], [[[]]], [["A", "B"]]),
            "structure 0: 2 labels for 1 positions",
        ),
    },
    "from_dags": {
        "edges None": (lambda: Corpus.from_dags([["a", "b"]], None), "edges must be a list with one entry per"),
        "edges flat": (lambda: Corpus.from_dags([["a", "b"]], [(0, 1)]), "structure 0: edges must be a list of"),
        "edges short": (lambda: Corpus.from_dags([["a", "b"]], []), "1 structures but edges of 0"),
        "triples": (lambda: Corpus.from_dags([["a", "b"]], [[(0, 1, 2)]]), "structure 0: edges must be a list of"),
        "by word": (lambda: Corpus.from_dags([["a", "b"]], [[("a", "b")]]), "structure 0: edges must be a list of"),
        "out of range": (lambda: Corpus.from_dags([["a", "b"]], [[(0, 5)]]), "structure 0: the edge (0, 5) is out"),
        "a loop": (lambda: Corpus.from_dags([["a", "b"]], [[(1, 1)]]), "structure 0, position 1: the node has an"),
        "a cycle": (lambda: Corpus.from_dags([["a", "b"]], [[(0, 1), (1, 0)]]), "structure 0, position 0: the node"),
        "by fraction": (lambda: Corpus.from_dags([["a", "b"]], [[(0, 1.5)]]), "structure 0: edges must be a list"),
    },
    "from_pandas": {
        "None": (lambda: Corpus.from_pandas(None), "expected a data frame with named columns, got NoneType"),
        "a path": (lambda: Corpus.from_pandas("a.csv"), "expected a data frame with named columns, got str"),
        "lists": (lambda: Corpus.from_pandas(WORDS), "expected a data frame with named columns, got list"),
        "an array": (lambda: Corpus.from_pandas(np.zeros((2, 2))), "expected a data frame with named columns, got"),
        "a corpus": (lambda: Corpus.from_pandas(CORPUS), "expected a data frame with named columns, got Corpus"),
        "no such column": (lambda: Corpus.from_pandas(FRAME, "wrd"), "the frame has no column 'wrd'"),
        "no such column of an Arrow table": (
            lambda: Corpus.from_pandas(CORPUS.table, "token"),
            "the frame has no column 'token'",
        ),
        "no such labels": (
            lambda: Corpus.from_pandas(FRAME, "word", "tags", sentence="id"),
            "the frame has no column 'tags'",
        ),
        "a row per token": (lambda: Corpus.from_pandas(FRAME, "word", "tag"), "structure 0: the column 'word'"),
        "columns a string": (
            lambda: Corpus.from_pandas(FRAME, "word", sentence="id", columns="tag"),
            "columns must be a list of names of columns, got 'tag'",
        ),
        "columns None": (
            lambda: Corpus.from_pandas(FRAME, "word", sentence="id", columns=None),
            "columns must be a list of names of columns, got None",
        ),
        "columns unknown": (
            lambda: Corpus.from_pandas(FRAME, "word", sentence="id", columns=["pos"]),
            "the frame has no column 'pos'",
        ),
        "features unknown": (
            lambda: Corpus.from_pandas(FRAME, "word", sentence="id", features="speling"),
            "there is no feature set 'speling'",
        ),
        "window a word": (
            lambda: Corpus.from_pandas(FRAME, "word", sentence="id", features="words", window="1"),
            "the window of a feature set is 0 or more neighbours, got '1'",
        ),
        "ids short": (
            lambda: Corpus.from_pandas(FRAME | {"id": [1, 2]}, "word", sentence="id"),
            "the column 'id' has 2 rows, but 'word' has 3",
        ),
        "tags short": (
            lambda: Corpus.from_pandas(FRAME | {"tag": ["A"]}, "word", "tag", sentence="id"),
            "the column 'tag' has 1 rows, but 'word' has 3",
        ),
        "further column short": (
            lambda: Corpus.from_pandas(FRAME | {"tag": ["A"]}, "word", sentence="id", columns=["tag"]),
            "the column 'tag' has 1 rows, but 'word' has 3",
        ),
        "a column of one value": (
            lambda: Corpus.from_pandas({"word": 3}, "word"),
            "the column 'word' must be a list, got 3",
        ),
        "word missing": (
            lambda: Corpus.from_pandas({"id": [1, 1], "word": ["a", None]}, "word", sentence="id"),
            "structure 0, position 1: a token is a string, a mapping from feature name to value or a collection",
        ),
        "sentences mixed": (
            lambda: Corpus.from_pandas(FRAME | {"id": [1, 2, 1]}, "word", sentence="id"),
            "the sentence '1' begins in row 0 and comes back in row 2",
        ),
        "tags without names": (
            lambda: Corpus.from_pandas(TAGGED, "word", "tag", sentence="id"),
            "structure 0, position 0: the tag 0 has no name",
        ),
        "names short": (
            lambda: Corpus.from_pandas(TAGGED, "word", "tag", sentence="id", label_names=["A"]),
            "structure 1, position 0: the tag 1 is not among the 1 label names",
        ),
        "names a string": (
            lambda: Corpus.from_pandas(TAGGED, "word", "tag", sentence="id", label_names="AB"),
            "label_names must be a list of label names, got 'AB'",
        ),
        "names a number": (
            lambda: Corpus.from_pandas(TAGGED, "word", "tag", sentence="id", label_names=3),
            "label_names must be a list of label names, got 3",
        ),
        "nothing": (lambda: Corpus.from_pandas({"tokens": []}), "the corpus is empty"),
    },
    "from_rows": {
        "None": (lambda: Corpus.from_rows(None), "rows must be a list of mappings, got NoneType"),
        "a mapping": (lambda: Corpus.from_rows({"tokens": [["a"]]}), "rows must be a list of mappings, got dict"),
        "lists": (lambda: Corpus.from_rows(WORDS), "structure 0: a row is a mapping with the key 'tokens', got list"),
        "nothing": (lambda: Corpus.from_rows([]), "the corpus is empty"),
        "no such key": (lambda: Corpus.from_rows(ROWS, "words"), "structure 0: the row has no 'words'"),
        "key a list": (lambda: Corpus.from_rows(ROWS, ["tokens"]), "tokens must be the key of a row, got ['tokens']"),
        "labels a list": (lambda: Corpus.from_rows(ROWS, labels=["tags"]), "labels must be the key of a row, got"),
        "tokens a string": (lambda: Corpus.from_rows([{"tokens": "a b"}]), "structure 0: tokens must be a list,"),
        "tags without names": (lambda: Corpus.from_rows(ROWS, labels="tags"), "structure 0, position 0: the tag 0"),
        "names a number": (
            lambda: Corpus.from_rows(ROWS, labels="tags", label_names=3),
            "label_names must be a list of label names, got 3",
        ),
        "tags short": (
            lambda: Corpus.from_rows([{"tokens": ["a", "b"], "tags": ["A"]}], labels="tags"),
            "structure 0: 1 labels for 2 positions",
        ),
        "window a fraction": (
            lambda: Corpus.from_rows(ROWS, features="words", window=2.5),
            "the window of a feature set is 0 or more neighbours, got 2.5",
        ),
    },
    "of a corpus": {
        "select out of range": (lambda: CORPUS.select([9]), "structure 9: out of range, the corpus has 3 structures"),
        "select a word": (lambda: CORPUS.select(["a"]), "structures are chosen by a list of their numbers, got"),
        "select a number": (lambda: CORPUS.select(1), "structures are chosen by a list of their numbers, got 1"),
        "select by fraction": (lambda: CORPUS.select([1.5]), "structures are chosen by a list of their numbers,"),
        "select by mask": (lambda: CORPUS.select([True, False, True]), "structures are chosen by a list of their"),
        "select nothing": (lambda: CORPUS.select([]), "the corpus is empty"),
        "split 2": (lambda: CORPUS.split(2), "a fraction of 2 leaves a part of 3 structures empty"),
        "split a word": (lambda: CORPUS.split("half"), "fraction must be a number, got 'half'"),
        "split NaN": (lambda: CORPUS.split(NAN), "fraction must be a finite number, got nan"),
        "seed a list": (lambda: CORPUS.split(0.5, seed=[1]), "seed must be a whole number, got [1]"),
        "labels None": (lambda: CORPUS.with_labels(None), "labels must be one list of strings per structure, got"),
        "label names a number": (lambda: CORPUS.with_labels(LABELS, 3), "labels must be a list of label names, got"),
        "features unknown": (lambda: CORPUS.with_features("speling"), "there is no feature set 'speling'"),
        "features a list": (lambda: CORPUS.with_features(["words"]), "there is no feature set ['words']"),
        "window a word": (lambda: CORPUS.with_features("words", "1"), "the window of a feature set is 0 or more"),
        "column short": (lambda: CORPUS.with_column("group", [1]), "the column 'group' has 1 values for 3"),
        "column None": (lambda: CORPUS.with_column("group", None), "the column 'group' must be a list with one"),
        "column named by a number": (lambda: CORPUS.with_column(3, [1, 2, 3]), "the name of a column is a string,"),
        "column mixed": (lambda: CORPUS.with_column("group", [1, "a", []]), "structure 1: the column 'group'"),
        "no such column": (lambda: CORPUS.column("group"), "the corpus has no column 'group'"),
    },
}


@cases(DOORS)
def test_one_sentence_says_what_and_where(group: str, case: str) -> None:
    check_refused(DOORS, group, case)
