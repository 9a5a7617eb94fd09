"""Tagging against the enumeration of all runs, contiguous and gapped."""

import random

import numpy as np
import pytest
from oracles.packed_structures import pack_parses, pack_tagged
from oracles.tagging import tagging_kernel
from tolerances import assert_close

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.structures import tagging_loops
from gramline.kernels.structures.tagging import Tagging


@pytest.fixture(scope="module")
def sentences():
    draw = random.Random(5)
    return [[(draw.choice("xyz"), draw.choice("AB")) for _ in range(draw.randint(1, 5))] for _ in range(12)]


@pytest.mark.parametrize(("decay", "gap"), [(1.0, None), (0.4, None), (0.5, 0.0), (0.7, 0.3), (1.0, 1.0)])
def test_equals_the_enumeration_of_runs(sentences, decay, gap):
    kernel = Tagging(decay=decay, gap=gap)
    packed = pack_tagged(sentences)
    expected = [[tagging_kernel(a, b, decay, gap) for b in sentences] for a in sentences]
    gram = kernel.gram(packed)
    assert_close(gram, expected)
    assert_close(gram, gram.T)
    assert_close(kernel.diagonal(packed), np.diagonal(expected))
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * gram.max()


def test_a_known_pair():
    one, two = [("the", "D"), ("man", "N")], [("the", "D"), ("dog", "N")]
    # D, the/D, N, and D N, the/D N
    assert Tagging().gram(pack_tagged([one, two]))[0, 1] == 5


def test_no_gap_is_the_contiguous_kernel(sentences):
    packed = pack_tagged(sentences)
    assert_close(Tagging(decay=0.8, gap=0.0).gram(packed), Tagging(decay=0.8).gram(packed))
    assert_close(Tagging(decay=0.8, gap=1e-13).gram(packed), Tagging(decay=0.8).gram(packed))


@pytest.mark.parametrize("gap", [None, 0.5])
def test_any_tiling_gives_the_same_matrix(sentences, gap):
    packed = pack_tagged(sentences)
    kernel = Tagging(decay=0.6, gap=gap)
    pieces = [packed.structures(0, 5), packed.structures(5, 6), packed.structures(6, len(sentences))]
    assert_close(np.block([[kernel.tile(a, b) for b in pieces] for a in pieces]), kernel.gram(packed))


@pytest.mark.parametrize("gap", [None, 0.5])
def test_renaming_words_and_tags_changes_nothing(sentences, gap):
    renamed = pack_tagged(sentences, {"z": 0, "y": 1, "x": 2}, {"B": 0, "A": 1})
    assert_close(Tagging(gap=gap).gram(renamed), Tagging(gap=gap).gram(pack_tagged(sentences)))


@pytest.mark.parametrize("gap", [None, 0.5])
def test_tags_unknown_to_the_columns_match_nothing(gap):
    words, tags = {}, {}
    cols = pack_tagged([[("x", "A")]], words, tags)
    rows = pack_tagged([[("x", "B"), ("x", "A"), ("y", "B")], [("x", "B")], [("x", "A")]], words, tags)
    assert Tagging(gap=gap).tile(rows, cols).tolist() == [[2.0], [0.0], [2.0]]


@pytest.mark.parametrize("gap", [None, 0.5])
def test_overflow_names_the_two_structures(gap):
    packed = pack_tagged([[("x", "B")], [("x", "A")] * 1100])
    with pytest.raises(KernelOverflowError) as error:
        Tagging(gap=gap).gram(packed)
    assert (error.value.row, error.value.column, error.value.dtype) == (1, 1, "float64")
    assert error.value.advice.startswith("lower decay")
    assert np.isfinite(Tagging(decay=0.2).gram(packed)).all()


@pytest.mark.parametrize("gap", [None, 0.5])
def test_interpreted_loops_give_the_compiled_numbers(sentences, gap, monkeypatch):
    packed = pack_tagged(sentences[:4])
    kernel = Tagging(decay=0.6, gap=gap)
    compiled = kernel.gram(packed)
    for name in ("contiguous_runs", "gapped_runs"):
        monkeypatch.setattr(f"gramline.kernels.structures.tagging.{name}", getattr(tagging_loops, name).py_func)
    assert_close(kernel.gram(packed), compiled)


def test_other_structures_are_refused():
    with pytest.raises(PackingError, match="Tagging compares tagged, but the corpus holds parses"):
        Tagging().gram(pack_parses([["A", "x"]]))


def test_travels_as_a_dictionary():
    kernel = Tagging(decay=0.3, gap=0.5)
    assert from_dict(kernel.to_dict(), Kernel) == kernel
