"""Equal content, equal fingerprint, in every process; any content that decides numbers changes it."""

import subprocess
import sys

import pytest

from gramline.pipeline.corpus import Corpus, generate_saleslog

GOLDEN = "d4834ddf65cf19aa9d50713a6777d6a06f643d1d168dc3f57b5938e9b91d5479"  # make().fingerprint
MAKE = """
from gramline.pipeline.corpus import Corpus
corpus = Corpus.from_trees(
    [["a", {"f", "g", "h"}, {"x": 0.5, "y": 2}], ["\\u3000"]],
    [[[2, 1], [], []], [[]]],
    [["L", None, "M"], ["L"]],
    prior=[[[0.5, 0.5], [1, 0], [0, 1]], [[0.25, 0.75]]],
)
"""


def make():
    namespace = {}
    exec(MAKE, namespace)
    return namespace["corpus"]


def test_the_same_in_every_process_and_version():
    assert make().fingerprint == GOLDEN
    command = [sys.executable, "-c", MAKE + "print(corpus.fingerprint)"]
    environment = {"PYTHONHASHSEED": "1"}  # the order of a set of names must not matter
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == GOLDEN


def test_history_does_not_matter():
    corpus = make()
    assert corpus.select([1, 0]).select([1, 0]).fingerprint == corpus.fingerprint
    assert corpus.with_column("group", ["a", "b"]).with_column("id", ["x", "y"]).fingerprint == corpus.fingerprint
    small = Corpus.from_sequences([["a"]])
    assert Corpus.from_sequences([["a"], ["b"]]).select([0]).fingerprint == small.fingerprint
    assert small.with_labels([[None]]).fingerprint == small.fingerprint
    spelled = Corpus.from_sequences([[{"f": 1.0, "g": 0.0}]], [["X"]], labels=["X"])
    assert spelled.fingerprint == Corpus.from_sequences([[["f", "f"]]], [["X"]]).fingerprint


DIFFERENT = {
    "plain": lambda: Corpus.from_sequences([["a", "b"], ["c"]]),
    "order": lambda: Corpus.from_sequences([["c"], ["a", "b"]]),
    "boundaries": lambda: Corpus.from_sequences([["a"], ["b", "c"]]),
    "words": lambda: Corpus.from_sequences([["a", "b"], ["d"]]),
    "as features": lambda: Corpus.from_sequences([[["a"], "b"], ["c"]]),
    "values": lambda: Corpus.from_sequences([[{"a": 2.0}, "b"], ["c"]]),
    "other values": lambda: Corpus.from_sequences([[{"a": 3.0}, "b"], ["c"]]),
    "labels": lambda: Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], ["X"]]),
    "other labels": lambda: Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], ["Y"]]),
    "missing label": lambda: Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], [None]]),
    "label order": lambda: Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], ["X"]], labels=["Y", "X"]),
    "more labels": lambda: Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], ["X"]], labels=["X", "Y", "Z"]),
    "prior": lambda: Corpus.from_sequences([["a", "b"], ["c"]], prior=[[[1], [1]], [[1]]], labels=["X"]),
    "label names only": lambda: Corpus.from_sequences([["a", "b"], ["c"]], labels=["X"]),
    "forest": lambda: Corpus.from_trees([["a", "b"], ["c"]], [[[], []], [[]]]),
    "tree": lambda: Corpus.from_trees([["a", "b"], ["c"]], [[[1], []], [[]]]),
    "other tree": lambda: Corpus.from_trees([["a", "b"], ["c"]], [[[], [0]], [[]]]),
    "graph": lambda: Corpus.from_dags([["a", "b"], ["c"]], [[(0, 1)], []]),
    "tagged": lambda: Corpus.from_tagged([[("a", "X"), ("b", "X")], [("c", "X")]]),
    "other tags": lambda: Corpus.from_tagged([[("a", "X"), ("b", "X")], [("c", "Y")]]),
    "parse": lambda: Corpus.from_parses(["(a b)", "(c d)"]),
    "other parse": lambda: Corpus.from_parses(["(a (b c))", "(c d)"]),
}


def test_content_matters():
    seen = {}
    for name, build in DIFFERENT.items():
        assert seen.setdefault(build().fingerprint, name) == name


@pytest.mark.parametrize("kind", ["sequences", "trees", "dags", "parses"])
def test_packed_arrays_depend_on_content_alone(kind):
    corpus = generate_saleslog(5, seed=2, kind=kind)
    shuffled = corpus.select([4, 2, 0, 1, 3]).select([2, 3, 1, 4, 0])
    assert shuffled.fingerprint == corpus.fingerprint
    assert shuffled.packed().vocabulary == corpus.packed().vocabulary
    for name, array in corpus.packed().arrays().items():
        assert array.tobytes() == shuffled.packed().arrays()[name].tobytes()
