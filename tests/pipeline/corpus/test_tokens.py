"""What a user calls a token: nested features as crfsuite takes them, letters by option, and what is no sentence."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.pipeline.corpus import Corpus
from gramline.pipeline.errors import CorpusError

NESTED = {
    "a": {"b": 1.0, "c": "d", "e": {"f": True, "g": ["h"]}},
    "tags": ["x", "y", "x"],
    "set": {"s"},
    "is": True,
    "weight": 0.5,
    "none": [],
}


def features(token: Any) -> dict[str, float]:
    packed = Corpus.from_sequences([[token]]).packed()
    values = packed.features.values
    numbers = [1.0] * len(packed.features.indices) if values is None else values.tolist()
    return dict(zip((packed.vocabulary.features[k] for k in packed.features.indices), numbers, strict=True))


def test_nested_features_have_the_names_of_crfsuite() -> None:
    crfsuite = pytest.importorskip("pycrfsuite")
    assert features(NESTED) == crfsuite.ItemSequence([NESTED]).items()[0]
    assert features({"a": {"b": False}}) == {}, "a feature of value 0 is none"


def test_nested_features_by_hand() -> None:
    expected = {
        "a:b": 1,
        "a:c:d": 1,
        "a:e:f": 1,
        "a:e:g:h": 1,
        "tags:x": 1,
        "tags:y": 1,
        "set:s": 1,
        "is": 1,
        "weight": 0.5,
    }
    assert features(NESTED) == expected
    assert features({"pos": "NN"}) == {"pos=NN": 1.0}, "as ever"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ({"a": {"b": None}}, "the value of feature 'a:b' must be a number or a string, got None"),
        ({"a": ["x", 3]}, "the list of feature 'a' must hold strings, got 3"),
        ({"a": {"b": 1.0}, "a:b": 2.0}, "feature 'a:b' is given twice"),
        ({"a:b": 2.0, "a": {"b": 1.0}}, "feature 'a:b' is given twice"),
        ({"a": {"b": float("nan")}}, "feature 'a:b' is nan"),
    ],
)
def test_nested_features_that_do_not_fit(token: Any, said: str) -> None:
    with pytest.raises(CorpusError, match=said) as error:
        Corpus.from_sequences([["ok"], ["ok", token]])
    assert (error.value.structure, error.value.position) == (1, 1)


def test_nesting_has_an_end() -> None:
    token: dict[str, Any] = {}
    token["self"] = token
    with pytest.raises(CorpusError, match="nested more than 20 times"):
        Corpus.from_sequences([[token]])


@pytest.mark.parametrize("sentence", [{"w": "dog", "pos": "NN"}, {"dog", "cat"}, frozenset(["dog"]), {"dog": 1}.keys()])
def test_a_mapping_is_no_sentence(sentence: Any) -> None:
    with pytest.raises(
        CorpusError, match=r"structure 1: tokens must be a list, got a .*; a mapping or a set is one token"
    ) as error:
        Corpus.from_sequences([["ok"], sentence])
    assert error.value.structure == 1


def test_labels_of_a_mapping_are_refused() -> None:
    with pytest.raises(CorpusError, match="structure 0: labels must be a list, got a dict"):
        Corpus.from_sequences([["a"]], [{"a": "X"}])


def test_letters_only_by_option() -> None:
    with pytest.raises(
        CorpusError, match=r"structure 0: tokens must be a list, got the string 'MKV'; split it .*\(letters\)"
    ):
        Corpus.from_sequences(["MKV"])
    corpus = Corpus.from_sequences(["MKV", ["A", "V"]], ["HHC", ["C", None]], letters=True)
    assert corpus.tokens == [["M", "K", "V"], ["A", "V"]]
    assert corpus.labels == [["H", "H", "C"], ["C", None]]
