"""Built-in feature sets, against a slow reading of their definition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramline.pipeline.corpus import Corpus, read_conll
from gramline.pipeline.corpus.readers.features import shape, spelling
from gramline.pipeline.errors import CorpusError


def feature_names(corpus):
    return [[set(names) for names in structure] for structure in corpus.table.column("features").to_pylist()]


def test_words(write):
    corpus = read_conll(write("t", "a N X\nb V X\n"), features="words")
    assert feature_names(corpus) == [[{"w[0]=a", "pos[0]=N"}, {"w[0]=b", "pos[0]=V"}]]
    assert corpus.tokens == [["a", "b"]]
    wide = read_conll(write("t", "a X\nb X\nc X\n"), features="words", window=2)
    assert feature_names(wide)[0][0] == {"w-edge[-2]", "w-edge[-1]", "w[0]=a", "w[1]=b", "w[2]=c"}
    assert feature_names(wide)[0][2] == {"w[-2]=a", "w[-1]=b", "w[0]=c", "w-edge[1]", "w-edge[2]"}


def test_spelling_of_a_word():
    assert set(spelling("McRae-2")) == {
        "w=McRae-2", "lower=mcrae-2", "shape=AaAa-0", "prefix1=m", "prefix2=mc", "prefix3=mcr", "prefix4=mcra",
        "suffix1=2", "suffix2=-2", "suffix3=e-2", "suffix4=ae-2", "capital", "inner-capital", "digit", "hyphen",
    }  # fmt: skip
    assert "digits" in spelling("1984")
    assert "digit" not in spelling("1984")
    assert {"capital", "capitals"} <= set(spelling("NATO"))
    assert "capitals" not in spelling("I")
    assert "inner-capital" not in spelling("NATO")
    assert "inner-capital" in spelling("iPod")
    assert "prefix3=ab" not in spelling("ab")


def test_shape():
    assert [shape(word) for word in ("", "abc", "ABC", "Abc", "a1b22", "12,5", "Ça-va", "日本")] == [
        "", "a", "A", "Aa", "a0a0", "0,0", "Aa-a", "a"
    ]  # fmt: skip


words = st.text(st.sampled_from("aB1-\u3000é"), min_size=1, max_size=6)
sentences = st.lists(st.lists(st.tuples(words, st.sampled_from("NV")), min_size=1, max_size=4), min_size=1, max_size=4)


@given(sentences, st.integers(0, 2))
@settings(max_examples=50)
def test_windows_by_definition(tmp_path_factory, rows, window):
    path = tmp_path_factory.mktemp("columns") / "t"
    path.write_text("\n\n".join("\n".join(f"{w}\t{p}" for w, p in sentence) for sentence in rows), encoding="utf-8")
    corpus = read_conll(path, label_column=None, features="spelling", window=window)

    def at(sentence, position, offset):
        if not 0 <= position + offset < len(sentence):
            return {f"w-edge[{offset}]", f"pos-edge[{offset}]"}
        word, pos = sentence[position + offset]
        split = [item.partition("=") for item in [*spelling(word), f"pos={pos}"]]
        return {f"{name}[{offset}]{equals}{value}" for name, equals, value in split}

    expected = [
        [set().union(*(at(sentence, p, o) for o in range(-window, window + 1))) for p in range(len(sentence))]
        for sentence in rows
    ]
    assert feature_names(corpus) == expected
    assert corpus.packed().features.is_binary


def test_the_default_window_of_spelling_is_one(write):
    names = feature_names(read_conll(write("t", "a X\nb X\nc X\n"), features="spelling"))[0][0]
    assert "w[1]=b" in names
    assert not any("[2]" in name for name in names)


def test_feature_sets_are_for_words_with_a_name(write):
    with pytest.raises(CorpusError, match="there is no feature set 'S3'"):
        read_conll(write("t", "a X\n"), features="S3")
    assert Corpus.from_sequences([["a"]]).show()["features"] == 1
