"""Packed corpora of every kind as arrays and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramline.kernels.packing import Packed, Vocabulary
from gramline.pipeline import Corpus
from gramline.pipeline.corpus.packed import (
    packed_fingerprint,
    packed_from_arrays,
    packed_to_arrays,
    vocabulary_from_arrays,
    vocabulary_to_arrays,
)
from gramline.pipeline.errors import StoreError

KINDS = {
    "sequences": Corpus.from_sequences([["a", "ü"], ["\u3000"]], [["X", None], ["Y"]]),
    "features": Corpus.from_sequences([[{"w": 1.5, "v": -2.0}, {"w": 1.0}], [{"v": 3.0}]]),
    "trees": Corpus.from_trees([["a", "b", "c"]], [[[1, 2], [], []]], [["X", "Y", "X"]]),
    "dags": Corpus.from_dags([["a", "b", "c"]], [[(0, 1), (0, 2)]]),
    "parses": Corpus.from_parses(["(S (NP they) (VP (V run)))"]),
    "tagged": Corpus.from_tagged([[("they", "PRP"), ("run", "VB")]]),
    "prior": Corpus.from_sequences([["a", "b"]], prior=[[[0.25, 0.75], [1, 0]]], labels=["X", "Y"]),
}


def assert_same(left: Packed, right: Packed) -> None:
    assert type(left) is type(right)
    assert left.vocabulary == right.vocabulary
    assert left.arrays().keys() == right.arrays().keys()
    for name, array in left.arrays().items():
        assert array.dtype == right.arrays()[name].dtype
        np.testing.assert_array_equal(array, right.arrays()[name])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_whole(kind: str) -> None:
    packed = KINDS[kind].packed()
    attributes, arrays = packed_to_arrays(packed)
    assert_same(packed_from_arrays(attributes, arrays), packed)


def test_what_this_version_does_not_know_is_refused() -> None:
    attributes, arrays = packed_to_arrays(KINDS["sequences"].packed())
    with pytest.raises(StoreError, match="kind 'knots' are unknown"):
        packed_from_arrays({"kind": "knots"}, arrays)
    with pytest.raises(StoreError, match="lacks the array 'vocabulary_labels_utf8'"):
        packed_from_arrays(attributes, {k: v for k, v in arrays.items() if k != "vocabulary_labels_utf8"})
    with pytest.raises(StoreError, match="do not make up packed sequences"):
        packed_from_arrays(attributes, {k: v for k, v in arrays.items() if k != "symbols"})


def test_only_the_new_names_of_a_longer_vocabulary_are_kept() -> None:
    old = Vocabulary(symbols=("a", "b"), features=(), labels=("X",))
    new = Vocabulary(symbols=("a", "b", "ç"), features=("f",), labels=("X",))
    arrays = vocabulary_to_arrays(new, since=old)
    assert arrays["vocabulary_symbols_utf8"].tobytes().decode() == "ç"
    assert vocabulary_from_arrays(arrays, since=old) == new


def test_the_fingerprint_sees_every_change() -> None:
    packed = KINDS["sequences"].packed()
    again = packed_from_arrays(*packed_to_arrays(packed))
    assert packed_fingerprint(packed) == packed_fingerprint(again)
    changed = [
        replace(packed, labels=packed.labels[::-1]),
        replace(packed, starts=np.array([0, 1, 3])),
        replace(packed, vocabulary=replace(packed.vocabulary, labels=("Y", "X"))),
        replace(packed, prior=np.full((3, 2), 0.5)),
    ]
    assert len({packed_fingerprint(item) for item in [packed, *changed]}) == 5
