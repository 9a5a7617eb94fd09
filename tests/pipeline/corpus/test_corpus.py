"""The corpus as users make it, and what comes back out."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramline.kernels.packing import PackedDags, PackedParses, PackedSequences, PackedTagged, PackedTrees
from gramline.pipeline.corpus import Corpus
from gramline.pipeline.errors import CorpusError

names = st.text(min_size=0, max_size=4, alphabet=st.characters(codec="utf-8"))
values = st.floats(-1e6, 1e6).filter(lambda value: value != 0)
tokens = names | st.dictionaries(names, values, max_size=4) | st.sets(names, max_size=4) | st.lists(names, max_size=4)
structures = st.lists(st.lists(tokens, min_size=1, max_size=5), min_size=1, max_size=5)


def meaning(token):
    """What a token says: its features by name."""
    if isinstance(token, str):
        return {token: 1.0}
    return dict(token) if isinstance(token, dict) else dict.fromkeys(token, 1.0)


def read_back(packed):
    """The features of every position by name, from the packed arrays alone."""
    found = []
    for position in range(packed.n_positions):
        low, high = packed.features.indptr[position : position + 2]
        indices = packed.features.indices[low:high]
        assert (np.diff(indices) > 0).all()
        numbers = np.ones(high - low) if packed.features.values is None else packed.features.values[low:high]
        feature_names = [packed.vocabulary.features[index] for index in indices]
        found.append(dict(zip(feature_names, numbers.tolist(), strict=True)))
    return found


@given(structures)
@settings(max_examples=80)
def test_packing_keeps_every_feature(X):
    packed = Corpus.from_sequences(X).packed()
    flat = [token for structure in X for token in structure]
    assert read_back(packed) == [meaning(token) for token in flat]
    assert packed.lengths.tolist() == [len(structure) for structure in X]
    for first, symbol in zip(flat, packed.symbols, strict=True):
        if isinstance(first, str):
            assert packed.vocabulary.symbols[symbol] == first
    for first, a in zip(flat, packed.symbols, strict=True):
        for second, b in zip(flat, packed.symbols, strict=True):
            alike = isinstance(first, str) == isinstance(second, str) and meaning(first) == meaning(second)
            assert (a == b) == alike


@given(structures, structures)
@settings(max_examples=50)
def test_like_extends_the_vocabulary(X, X_new):
    first = Corpus.from_sequences(X).packed()
    second = Corpus.from_sequences(X_new).packed(like=first)
    for kind in ("symbols", "features"):
        old, new = getattr(first.vocabulary, kind), getattr(second.vocabulary, kind)
        assert new[: len(old)] == old
        assert len(set(new)) == len(new)
    assert read_back(second) == [meaning(token) for structure in X_new for token in structure]
    again = Corpus.from_sequences(X).packed(like=second)
    assert again.vocabulary == second.vocabulary
    assert again.symbols.tolist() == first.symbols.tolist()


def test_labels_of_like_decide():
    train = Corpus.from_sequences([["a", "b"]], [["Y", "X"]])
    test = Corpus.from_sequences([["a", "c", "b"]], [["Z", "X", None]])
    packed = test.packed(like=train.packed())
    assert packed.vocabulary.labels == ("X", "Y")
    assert packed.labels.tolist() == [-1, 0, -1]
    unlabeled = Corpus.from_sequences([["a", "b"]])
    assert test.packed(like=unlabeled.packed()).vocabulary.labels == ("X", "Z")


def test_a_prior_can_be_given_to_a_corpus_that_is_there():
    corpus = Corpus.from_sequences([["a", "b"], ["c"]], [["X", "Y"], ["X"]])
    table = np.array([[0.25, 0.75], [1, 0], [0.5, 0.5]])
    for prior in (table, [table[:2], table[2:]]):
        carrying = corpus.with_prior(prior, labels=["Y", "Z"])
        assert (carrying.labels, carrying.label_names) == (corpus.labels, ["X", "Y", "Z"])
        np.testing.assert_array_equal(carrying.packed().table, np.column_stack([np.zeros(3), table]))
    again = carrying.with_prior([[[1, 0, 0]] * 2, [[0, 0, 1]]])
    np.testing.assert_array_equal(again.packed().table.argmax(axis=1), [0, 0, 2])
    assert corpus.packed().table is None
    bare = corpus.without_labels().with_labels([None, None], labels=["X", "Y"])
    for prior, labels, problem in (
        (table[:2], None, "2 structures but 2|has shape"),
        ([[[0.25, 0.75]] * 2], None, "2 structures but 1 prior tables"),
        (table * 2, None, "the prior row has values from"),
        (table, ["Y"], r"the prior has shape \(2, 2\), not \(2, 1\)"),
    ):
        with pytest.raises(CorpusError, match=problem):
            bare.with_prior(prior, labels)


def test_prior_columns_follow_the_labels_of_like():
    train = Corpus.from_sequences([["a"]], labels=["Y", "W", "X"])
    test = Corpus.from_sequences([["a"]], prior=[[[0.25, 0.75]]], labels=["X", "Y"])
    assert test.packed(like=train.packed()).table.tolist() == [[0.75, 0.0, 0.25]]
    assert test.packed().table.tolist() == [[0.25, 0.75]]
    with pytest.raises(CorpusError, match="the prior gives weight to label 'X', which") as caught:
        test.packed(like=Corpus.from_sequences([["a"]], labels=["Y"]).packed())
    assert (caught.value.structure, caught.value.position) == (0, 0)


def test_kinds_do_not_meet():
    tree = Corpus.from_trees([["a"]], [[[]]])
    with pytest.raises(CorpusError, match="the corpus holds trees but is to be compared with sequences"):
        tree.packed(like=Corpus.from_sequences([["a"]]).packed())


def test_packed_is_made_once():
    corpus = Corpus.from_sequences([["a"]])
    assert corpus.packed() is corpus.packed()


def test_what_a_corpus_says():
    corpus = Corpus.from_sequences([["a", "b"], [{"f": 2.0}]], [["L", None], ["K"]], labels=["L", "K", "M"])
    assert (corpus.kind, len(corpus), corpus.n_positions, corpus.lengths.tolist()) == ("sequences", 2, 3, [2, 1])
    assert corpus.labels == [["L", None], ["K"]]
    assert corpus.label_names == ["L", "K", "M"]
    assert corpus.tokens == [["a", "b"], [None]]
    assert corpus.ids == ["0", "1"]
    told = corpus.show()
    assert told["labels"] == {"L": 1, "K": 1, "M": 0}
    assert (told["unlabeled"], told["features"], told["longest"], told["prior"]) == (1, 3, 2, False)
    assert repr(corpus) == "Corpus(2 sequences, 3 positions, 3 labels)"


def test_label_names_are_sorted_unless_given():
    assert Corpus.from_sequences([["a", "b", "c"]], [["Z", "B", "A"]]).label_names == ["A", "B", "Z"]
    assert Corpus.from_sequences([["a"]]).label_names == []
    assert Corpus.from_sequences([["a"], ["b"]], [["X"], None]).labels == [["X"], [None]]


def test_binary_features_have_no_values():
    assert Corpus.from_sequences([[{"f": 1, "g": True}, ["h", "h"]]]).packed().features.values is None
    zero = Corpus.from_sequences([[{"f": 0.0, "g": 2}, {}]]).packed()
    assert zero.vocabulary.features == ("g",)
    assert read_back(zero) == [{"g": 2.0}, {}]


def test_string_values_are_binary_features():
    packed = Corpus.from_sequences([[{"pos": "NN", "bias": 1.0}]]).packed()
    assert packed.vocabulary.features == ("bias", "pos=NN")


def test_trees_and_dags_keep_their_links():
    tree = Corpus.from_trees([["a", "b", "c"], ["d"]], [[[], [2, 0], []], [[]]]).packed()
    assert isinstance(tree, PackedTrees)
    assert tree.link_indptr.tolist() == [0, 0, 2, 2, 2]
    assert tree.link_targets.tolist() == [2, 0]
    dag = Corpus.from_dags([["a", "b", "c"], ["d", "e"]], [[(0, 2), (0, 1), (0, 2)], [(1, 0)]]).packed()
    assert isinstance(dag, PackedDags)
    assert dag.link_indptr.tolist() == [0, 2, 2, 2, 2, 3]
    assert dag.link_targets.tolist() == [1, 2, 0]


def test_parses_become_productions():
    corpus = Corpus.from_parses(["(S (NP they) (VP (V run) (NP)))", ["NP", "they"]])
    packed = corpus.packed()
    assert isinstance(packed, PackedParses)
    productions = [packed.vocabulary.symbols[code] if code >= 0 else None for code in packed.symbols]
    assert productions == [
        '["S", ["NP"], ["VP"]]', '["NP", "they"]', '["VP", ["V"], ["NP"]]', '["V", "run"]', None, '["NP", "they"]'
    ]  # fmt: skip
    assert packed.link_targets.tolist() == [1, 2, 3, 4]
    assert corpus.trees == [["S", ["NP", "they"], ["VP", ["V", "run"], ["NP"]]], ["NP", "they"]]
    with pytest.raises(CorpusError, match="nested trees come from a corpus of parses"):
        _ = Corpus.from_sequences([["a"]]).trees


def test_words_and_nonterminals_of_one_spelling_differ():
    packed = Corpus.from_parses([["A", "B"], ["A", ["B"]]]).packed()
    assert packed.symbols[0] != packed.symbols[1]


def test_tagged_sentences():
    packed = Corpus.from_tagged([[("a", "X"), ("b", "Y")], [("a", "Y")]]).packed()
    assert isinstance(packed, PackedTagged)
    assert packed.symbols.tolist() == [0, 1, 0]
    assert packed.tags.tolist() == [0, 1, 1]
    assert packed.vocabulary.features == ("X", "Y")
    more = Corpus.from_tagged([[("c", "A"), ("a", "Y")]]).packed(like=packed)
    assert more.tags.tolist() == [2, 1]
    assert more.symbols.tolist() == [2, 0]


def test_deep_trees_need_no_recursion():
    depth = 20_000
    chain = Corpus.from_trees([["a"] * depth], [[[k + 1] for k in range(depth - 1)] + [[]]])
    assert chain.packed().n_positions == depth
    line = Corpus.from_dags([["a"] * depth], [[(k + 1, k) for k in range(depth - 1)]])
    assert len(line.packed().link_targets) == depth - 1
    parse = Corpus.from_parses(["(A " * depth + "x" + ")" * depth])
    assert parse.n_positions == depth
    node = parse.trees[0]
    for _ in range(depth - 1):
        node = node[1]
    assert node == ["A", "x"]


def test_selecting_keeps_label_names():
    corpus = Corpus.from_sequences([["a"], ["b", "c"], ["d"]], [["X"], ["Y", "Z"], [None]])
    part = corpus.select([2, 0])
    assert (part.ids, part.labels, part.label_names) == (["2", "0"], [[None], ["X"]], ["X", "Y", "Z"])
    assert part.packed().vocabulary.symbols == ("a", "d")
    assert corpus.select([-1]).tokens == [["d"]]
    with pytest.raises(CorpusError, match="out of range, the corpus has 3 structures") as caught:
        corpus.select([0, 3])
    assert caught.value.structure == 3


def test_most_of_a_corpus_is_a_view_and_a_few_are_a_copy():
    words = [[f"w{k}", {"a": 1.0, "b": k}] for k in range(40)]
    corpus = Corpus.from_sequences(words, [["X", None]] * 20 + [["Y", "Z"]] * 20)
    part, few = corpus.select(range(3, 38)), corpus.select(range(3, 8))
    own = Corpus.from_sequences(words[3:38], [["X", None]] * 17 + [["Y", "Z"]] * 18, labels=corpus.label_names)
    assert part.fingerprint == own.fingerprint
    assert (part.tokens, part.labels, part.ids[0]) == (own.tokens, own.labels, "3")
    assert part.select(range(5)).fingerprint == few.fingerprint

    def place(chosen):
        return chosen.table.column("tokens").chunk(0).values.buffers()[1].address

    assert place(part) == place(corpus) != place(few)


def test_splitting():
    corpus = Corpus.from_sequences([[str(k)] for k in range(10)])
    first, second = corpus.split(0.7)
    assert (first.ids, second.ids) == (list("0123456"), list("789"))
    drawn, rest = corpus.split(0.7, seed=3)
    assert sorted(drawn.ids + rest.ids) == list("0123456789")
    assert drawn.ids != first.ids
    assert corpus.split(0.7, seed=3)[0].ids == drawn.ids
    with pytest.raises(CorpusError, match=r"a fraction of 0.01 leaves a part of 10 structures empty"):
        corpus.split(0.01)


def test_changing_labels():
    corpus = Corpus.from_sequences([["a", "b"]], [["X", "Y"]])
    assert corpus.with_labels([["Y", None]]).labels == [["Y", None]]
    assert corpus.without_labels().labels == [[None, None]]
    assert corpus.without_labels().label_names == ["X", "Y"]
    assert corpus.with_labels([["Q", "P"]], labels=["P", "Q"]).label_names == ["P", "Q"]
    with pytest.raises(CorpusError, match="the label 'Q' is not among the given labels"):
        corpus.with_labels([["Q", "P"]])


def test_carried_columns():
    corpus = Corpus.from_sequences([["a"], ["b"]]).with_column("group", ["g", "h"]).with_column("id", ["one", "two"])
    assert (corpus.column("group"), corpus.ids, corpus.show()["columns"]) == (["g", "h"], ["one", "two"], ["group"])
    assert corpus.select([1]).column("group") == ["h"]
    with pytest.raises(CorpusError, match="the corpus has no column 'fold'"):
        corpus.column("fold")
    with pytest.raises(CorpusError, match="the column 'labels' holds the content"):
        corpus.with_column("labels", ["a", "b"])
    with pytest.raises(CorpusError, match="the column 'group' has 1 values for 2 structures"):
        corpus.with_column("group", ["a"])


def test_a_corpus_made_of_a_checked_one_is_not_checked_again(checks, tmp_path):
    corpus = Corpus.from_dags([["a", "b"], ["c"]], [[(0, 1)], []], [["X", "Y"], ["X"]])
    first, second = corpus.split(0.5)
    derived = [corpus.select([1]), first, second, corpus.without_labels(), corpus.with_column("group", [1, 2])]
    derived += [corpus.with_labels([["Y", None], None]), corpus.with_labels([["Z", None], None], labels=["Z"])]
    assert all(len(part.packed()) for part in derived)
    assert checks == ["dags"]
    corpus.save(tmp_path / "c.parquet")
    Corpus.load(tmp_path / "c.parquet")  # a file comes from outside
    assert checks == ["dags", "dags"]


def test_what_is_new_in_a_derived_corpus_is_checked():
    corpus = Corpus.from_sequences([["a"]], [["X"]], prior=[[[0.25, 0.75]]], labels=["X", "Y"])
    with pytest.raises(CorpusError, match="the corpus is empty"):
        corpus.select([])
    with pytest.raises(CorpusError, match="the label 'Z' is listed twice"):
        corpus.with_labels([["Z"]], labels=["Z", "Z"])
    with pytest.raises(CorpusError, match="the prior has 2 columns, but there are 1 labels"):
        corpus.with_labels([["Z"]], labels=["Z"])


def test_a_carried_column_leaves_the_packed_arrays_and_the_fingerprint():
    corpus = Corpus.from_sequences([["a"], ["b"]])
    packed, fingerprint = corpus.packed(), corpus.fingerprint
    carried = corpus.with_column("group", [1, 2])
    assert carried.packed() is packed
    assert carried.fingerprint == fingerprint
    assert "group" not in corpus.table.column_names


def test_a_generator_will_do():
    X, y = [["a", "b"], ["c"]], [["X", "Y"], ["X"]]
    corpus = Corpus.from_sequences(map(iter, X), map(iter, y))
    assert isinstance(corpus.packed(), PackedSequences)
    assert corpus.labels == y


def test_labels_are_ordered_by_frequency_then_name() -> None:
    X, y = [["a", "b", "c"], ["d", "e", "f"]], [["O", "B", "O"], ["A", None, "B"]]
    corpus = Corpus.from_sequences(X, y)
    assert corpus.label_names == ["B", "O", "A"]
    assert Corpus.from_sequences(X).with_labels(y).label_names == ["B", "O", "A"]
    assert Corpus.from_sequences(X, y, labels=["A", "B", "O"]).label_names == ["A", "B", "O"]
    assert corpus.with_labels([["A"] * 3] * 2).label_names == ["B", "O", "A"], "a corpus keeps the order it has"
    assert corpus.packed().labels.tolist() == [1, 0, 1, 2, -1, 0]


def test_the_columns_of_a_prior_do_not_depend_on_frequencies() -> None:
    prior = [[[0.9, 0.1], [0.2, 0.8]]]
    corpus = Corpus.from_sequences([["a", "b"]], [["O", "O"]], prior=prior, labels=["B", "O"])
    named = Corpus.from_sequences([["a", "b"], ["c"]], [["O", "O"], ["B"]], prior=[*prior, [[0.5, 0.5]]])
    assert named.label_names == corpus.label_names == ["B", "O"]
    np.testing.assert_array_equal(named.packed().table, [*prior[0], [0.5, 0.5]])


def test_a_stored_corpus_keeps_the_order_it_was_saved_with(tmp_path: Path) -> None:
    corpus = Corpus.from_sequences([["a", "b", "c"]], [["X", "Y", "Y"]], labels=["X", "Y"])
    corpus.save(tmp_path / "old.parquet")
    assert Corpus.load(tmp_path / "old.parquet").label_names == ["X", "Y"]
