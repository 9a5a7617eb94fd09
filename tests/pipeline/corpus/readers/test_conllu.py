"""Dependency files."""

import pytest

from gramline.pipeline.corpus import read_conllu

TEXT = """\
# newdoc id = d1
# sent_id = s1
# text = We don't go .
1\tWe\twe\tPRON\tPRP\tCase=Nom|Number=Plur\t4\tnsubj\t_\tNER=O
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tghost\tghost\tNOUN\t_\t_\t_\t_\t_\t_
4\tgo\tgo\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No|NER=B-X
5\t.\t.\tPUNCT\t.\t_\t0\troot\t_\t_

# sent_id = s2
1\t_\t_\tSYM\tX\t_\t0\troot\t_\tNER=I-X
"""


def row(number, head, form="w"):
    return f"{number}\t{form}\t_\tX\tX\t_\t{head}\tdep\t_\t_\n"


def test_trees_with_several_roots(write):
    corpus = read_conllu(write("t.conllu", TEXT))
    assert (corpus.kind, corpus.ids, corpus.column("group")) == ("trees", ["s1", "s2"], ["d1", "d1"])
    assert corpus.tokens == [["We", "do", "n't", "go", "."], ["_"]]
    assert corpus.table.column("links").to_pylist() == [[[], [], [], [0, 1, 2], []], [[]]]
    assert corpus.labels == [["PRON", "AUX", "PART", "VERB", "PUNCT"], ["SYM"]]


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"label": "XPOS"}, [["PRP", "VBP", "RB", None, "."], ["X"]]),
        ({"label": "DEPREL"}, [["nsubj", "aux", "advmod", "root", "root"], ["root"]]),
        ({"label": "NER"}, [["O", "O", "O", "B-X", "O"], ["I-X"]]),
        ({"label": "MISC.NER", "absent": None}, [["O", None, None, "B-X", None], ["I-X"]]),
        ({"label": "FEATS.Number", "absent": "none"}, [["Plur", "none", "none", "none", "none"], ["none"]]),
        ({"label": "FEATS.NER", "absent": "none"}, [["none"] * 5, ["none"]]),
        ({"label": None}, [[None] * 5, [None]]),
    ],
)
def test_choice_of_labels(write, options, labels):
    assert read_conllu(write("t.conllu", TEXT), **options).labels == labels


def test_choice_of_observation(write):
    path = write("t.conllu", TEXT)
    assert read_conllu(path, observation=("LEMMA",)).tokens[0] == ["we", "do", "not", "go", "."]
    words = read_conllu(path, observation=("FORM", "UPOS", "DEPREL"), features="words")
    assert words.table.column("features").to_pylist()[1] == [["column2[0]=root", "pos[0]=SYM", "w[0]=_"]]
    sequence = read_conllu(path, kind="sequences", label="NER", labels=["O", "B-X", "I-X"])
    assert sequence.kind == "sequences"
    assert sequence.label_names == ["O", "B-X", "I-X"]


def test_files_without_documents_have_no_groups(write):
    assert read_conllu(write("t.conllu", row(1, 0))).show()["columns"] == []


@pytest.mark.parametrize(
    ("text", "options", "place", "problem"),
    [
        ("# nothing\n\n", {}, (None, None, None), "t.conllu has no sentences"),
        ("1\tw\n", {}, (1, None, None), "2 tab-separated columns, CoNLL-U has 10"),
        (row(1, 0) + row(3, 1), {}, (2, None, None), "word number '3' where 2 was expected"),
        (row(1, 2), {}, (1, None, None), "the head '2' is not the number of a word of this sentence"),
        (row(1, "x"), {}, (1, None, None), "the head 'x' is not"),
        (row(1, 0) + "\n" + row(1, 2) + row(2, 1), {}, (3, 1, 0), "the node is its own"),
        (row(1, 0), {"kind": "dags"}, (None, None, None), "a dependency file gives trees or sequences, not 'dags'"),
        (
            row(1, 0),
            {"observation": ("FORM", "UPOS")},
            (None, None, None),
            "seeing words by FORM, UPOS needs a feature set",
        ),
        (row(1, 0), {"labels": ["Y"]}, (1, 0, 0), "the label 'X' is not among"),
    ],
)
def test_refused(write, refused, text, options, place, problem):
    refused(lambda path: read_conllu(path, **options), write("t.conllu", text), place, problem)
