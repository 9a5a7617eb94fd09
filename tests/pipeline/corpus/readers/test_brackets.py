"""Bracketed treebanks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramline.pipeline.corpus import Corpus, read_brackets
from gramline.pipeline.corpus.parses import bracketed, nested, parse_brackets, productions, words
from gramline.pipeline.corpus.readers.brackets import plain_label

symbols = st.text(st.sampled_from('aB-"[\u3000é'), min_size=1, max_size=3)
trees = st.recursive(
    symbols.map(lambda word: [word, word]),
    lambda below: st.builds(
        lambda label, rest: [label, *rest], symbols, st.lists(below | symbols, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
@settings(max_examples=100)
def test_there_and_back(tree):
    assert [found for _, found in parse_brackets(bracketed(tree))] == [tree]
    assert nested(*productions(tree)) == tree
    assert Corpus.from_parses([tree, bracketed(tree)]).trees == [tree, tree]


def test_trees_over_several_lines(write):
    corpus = read_brackets(write("t", "(S (NP they)\r\n   (VP run))\n\n( (S\u3000 stop) )(S)\n"))
    assert corpus.trees == [["S", ["NP", "they"], ["VP", "run"]], ["TOP", ["S\u3000", "stop"]], ["TOP"]]
    assert words(corpus.trees[0]) == ["they", "run"]


TREEBANK = """(TOP (S (NP-SBJ-1 (NNP Ann)) (VP (VBD was) (VP (VBN named) (S (NP-SBJ (-NONE- *-1)) (NP=2 (-LRB- -LRB-)
 (PRP$ her)))) (ADVP (-NONE- *) (-NONE- *T*)))))"""


def test_function_tags_and_empty_elements(write):
    path = write("t", TREEBANK)
    assert bracketed(read_brackets(path).trees[0]) == " ".join(TREEBANK.split())
    assert bracketed(read_brackets(path, strip_empty=True).trees[0]) == (
        "(TOP (S (NP-SBJ-1 (NNP Ann)) (VP (VBD was) (VP (VBN named) (S (NP=2 (-LRB- -LRB-) (PRP$ her)))))))"
    )
    assert bracketed(read_brackets(path, strip_empty=True, strip_functions=True).trees[0]) == (
        "(TOP (S (NP (NNP Ann)) (VP (VBD was) (VP (VBN named) (S (NP (-LRB- -LRB-) (PRP$ her)))))))"
    )
    assert "(NP (-NONE- *-1))" in bracketed(read_brackets(path, strip_functions=True).trees[0])


def test_plain_labels():
    labels = ("NP-SBJ-1", "NP=2", "-NONE-", "-LRB-", "PRP$", "ADVP|PRT", "NP")
    assert [plain_label(label) for label in labels] == ["NP", "NP", "-NONE-", "-LRB-", "PRP$", "ADVP|PRT", "NP"]


@pytest.mark.parametrize(
    ("text", "options", "place", "problem"),
    [
        ("", {}, (None, None, None), "the file has no trees"),
        (
            "(S a)\n(S (A b)\n",
            {},
            (2, None, None),
            "the tree that begins here is not closed",
        ),
        ("(S a)\n(S b))\n", {}, (2, None, None), "a closing bracket without an opening one"),
        ("(S a)\nb\n", {}, (2, None, None), "'b' is outside of all brackets"),
        ("(S\n ())", {}, (2, None, None), "an empty pair of brackets"),
        ("(S\n ((A b)))", {}, (2, None, None), "a node inside the tree has no label"),
        (
            "(S a)\n(S (-NONE- *))\n",
            {"strip_empty": True},
            (2, None, None),
            "the tree holds nothing but empty elements",
        ),
    ],
)
def test_refused(write, refused, text, options, place, problem):
    refused(lambda path: read_brackets(path, **options), write("t", text), place, problem)


def test_deep_trees(write):
    depth = 5_000
    deep = read_brackets(
        write("t", "(A-X " * depth + "(B x) (-NONE- *)" + ")" * depth), strip_functions=True, strip_empty=True
    )
    assert deep.n_positions == depth + 1
    assert deep.packed().vocabulary.symbols == ('["A", ["A"]]', '["A", ["B"]]', '["B", "x"]')
    assert len(bracketed(deep.trees[0])) == 4 * depth + 5
