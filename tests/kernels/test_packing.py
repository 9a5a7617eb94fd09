"""Packed structures: slices, pairs, arrays there and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import pack, packed_sequences, real_bags, words

from gramline.kernels import packing
from gramline.kernels.errors import PackingError
from gramline.kernels.packing import Features, PackedSequences, concatenate, pack_pair, place


def as_lists(packed):
    return {name: array.tolist() for name, array in packed.arrays().items()}


@given(packed_sequences(bags=real_bags), st.data())
@settings(max_examples=40)
def test_slices_join_to_the_whole(packed, data):
    cut = data.draw(st.integers(0, len(packed)))
    parts = [packed.structures(0, cut), packed.structures(cut, len(packed))]
    assert len(parts[0]) + len(parts[1]) == len(packed)
    assert as_lists(concatenate(parts)) == as_lists(packed)


@given(packed_sequences(bags=real_bags))
@settings(max_examples=20)
def test_arrays_there_and_back(packed):
    again = PackedSequences.from_arrays(packed.arrays(), packed.vocabulary)
    assert as_lists(again) == as_lists(packed)
    assert again.vocabulary == packed.vocabulary


def test_binary_and_real_parts_join_as_real():
    binary = pack(words("ab"))
    real = pack([[{"a": 2.0}]], like=binary)
    assert concatenate([binary, real]).features.values.tolist() == [1.0, 1.0, 2.0]


def test_arrays_are_read_only():
    packed = pack(words("ab"))
    for array in packed.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_taking_rows_of_features():
    features = Features(np.array([0, 2, 2, 3]), np.array([1, 4, 0]), np.array([0.5, 2.0, 3.0]))
    taken = features.take(np.array([2, 0, 1, 2]))
    assert taken.indptr.tolist() == [0, 1, 3, 3, 4]
    assert taken.indices.tolist() == [0, 1, 4, 0]
    assert taken.values.tolist() == [3.0, 0.5, 2.0, 3.0]


@given(packed_sequences(bags=real_bags), st.data())
@settings(max_examples=20)
def test_many_structures_are_taken_a_part_at_a_time(packed, data):
    chosen = np.array(data.draw(st.lists(st.integers(0, len(packed) - 1), min_size=1, max_size=12)))
    at_once = as_lists(packed.take(chosen))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "TAKEN_AT_ONCE", data.draw(st.integers(1, 6)))
        assert as_lists(packed.take(chosen)) == at_once


def test_a_place_counts_from_the_structure():
    starts = pack(words("abc de f")).starts
    places = [place(starts, position) for position in (0, 2, 3, 5)]
    assert [(found["structure"], found["position"]) for found in places] == [(0, 0), (0, 2), (1, 0), (2, 0)]
    sentence = "structure 0, position 2: it is wrong; put it right"
    assert str(PackingError("it is wrong", advice="put it right", **places[1])) == sentence


class TestPairs:
    def test_labels_come_from_the_side_that_has_them(self):
        rows, cols = pack(words("ab"), label_names=()), pack(words("a"))
        left, right = pack_pair(rows, cols)
        assert left.vocabulary.labels == right.vocabulary.labels == ("B", "I", "O")

    def test_different_labels(self):
        with pytest.raises(
            PackingError, match=r"different label sets \(2 and 3 labels\); pack the second one with like="
        ):
            pack_pair(pack(words("a"), label_names=("X", "Y")), pack(words("a")))

    def test_different_kinds(self):
        class Other(PackedSequences):
            kind = "trees"

        packed = pack(words("a"))
        other = Other(packed.starts, packed.symbols, packed.features, packed.labels, packed.vocabulary)
        with pytest.raises(PackingError, match="rows are sequences but columns are trees"):
            pack_pair(packed, other)

    def test_lists_are_no_corpus(self):
        for pair in ((words("a"), None), (None, None), (pack(words("a")), words("a"))):
            with pytest.raises(PackingError, match=r"expected a corpus, got (list|NoneType); make one of lists"):
                pack_pair(*pair)

    def test_packable_sides_share_a_vocabulary(self):
        class Corpus:
            def packed(self, like=None):
                return pack(words("xa"), like=like)

        known = pack(words("ab"))
        left, right = pack_pair(known, Corpus())
        assert (left.symbols.tolist(), right.symbols.tolist()) == ([0, 1], [2, 0])
        left, right = pack_pair(Corpus(), known)
        assert left.symbols.tolist() == [2, 0]
        left, nothing = pack_pair(Corpus(), None)
        assert left.symbols.tolist() == [1, 0]
        assert nothing is None
