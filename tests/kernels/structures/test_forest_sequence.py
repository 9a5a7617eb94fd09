"""Every step of a forest sequence is the difference of two kernels, exactly, from one shared graph."""

import random

import numpy as np
import pytest
from oracles.packed_structures import pack_parses
from oracles.subset_tree import subset_tree_kernel
from tolerances import assert_close

from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.structures import forest_sequence
from gramline.kernels.structures.forest_loops import add_differences
from gramline.kernels.structures.forest_sequence import ForestSequence
from gramline.kernels.structures.subset_tree import SubsetTree

KERNELS = [SubsetTree(), SubsetTree(decay=0.4), SubsetTree(decay=0.6, max_depth=2), SubsetTree(0.5, None, True)]
ADDED, REMOVED = [0, 3, 0, 7, 7], [1, 4, 1, 2, 7]  # a repeated step, and one that changes nothing


def phrase(draw, depth):
    label = draw.choice("AB")
    if depth == 0:
        return [label, draw.choice("xy")] if draw.random() < 0.9 else [label]
    return [label, *(phrase(draw, depth - 1) for _ in range(draw.randint(1, 2)))]


@pytest.fixture(scope="module")
def corpora():
    draw = random.Random(11)
    codes = {}
    support, new = [phrase(draw, 3) for _ in range(8)], [phrase(draw, 3) for _ in range(9)]
    return support, new, pack_parses(support, codes), pack_parses(new, codes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_step_is_the_difference_of_two_kernels(corpora, kernel):
    support, new, packed, packed_new = corpora

    def value(one, other):
        return subset_tree_kernel(one, other, kernel.decay, kernel.max_depth, kernel.normalized)

    expected = [
        [value(support[a], tree) - value(support[b], tree) for tree in new] for a, b in zip(ADDED, REMOVED, strict=True)
    ]
    sequence = ForestSequence.of(kernel, packed, ADDED, REMOVED)
    changes, magnitudes = sequence.changes(packed_new)
    assert_close(changes, expected)
    assert (magnitudes >= np.abs(changes) * (1 - 1e-12)).all()
    assert not changes[4].any()
    assert sequence.size.n_trees == len({*ADDED, *REMOVED})
    assert sequence.size.n_subtrees < sequence.size.n_nodes


def test_what_two_trees_share_is_not_even_kept():
    codes = {}
    packed = pack_parses([["S", ["A", "x"], ["B", "y"]], ["T", ["A", "x"], ["B", "y"]], ["U", ["C", "z"]]], codes)
    sequence = ForestSequence.of(SubsetTree(), packed, [0], [1])
    assert len(sequence.weights) == 2  # the roots S and T; their children stay reachable, U is gone
    assert sequence.size.n_subtrees == 4
    same = ForestSequence.of(SubsetTree(), packed, [2], [2])
    assert same.size.n_subtrees == 0
    assert same.changes(packed)[0].tolist() == [[0.0, 0.0, 0.0]]


def test_no_step_and_a_round_trip_through_arrays(corpora):
    _, _, packed, packed_new = corpora
    assert ForestSequence.of(SubsetTree(), packed, [], []).changes(packed_new)[0].shape == (0, len(packed_new))
    sequence = ForestSequence.of(KERNELS[3], packed, ADDED, REMOVED)
    again = ForestSequence.from_arrays(KERNELS[3], sequence.to_arrays())
    assert again.changes(packed_new)[0].tolist() == sequence.changes(packed_new)[0].tolist()
    assert again.size == sequence.size


def test_a_tree_that_is_not_there_and_too_large_values_are_refused(corpora):
    packed = corpora[2]
    with pytest.raises(PackingError, match="names tree 8, but there are 8"):
        ForestSequence.of(SubsetTree(), packed, [0], [8])
    tree = ["A", "x"]
    for _ in range(12):
        tree = ["A", tree, tree]
    large = pack_parses([tree, ["A", "x"]], {})
    with pytest.raises(KernelOverflowError) as error:
        ForestSequence.of(SubsetTree(), large, [0], [1]).changes(large)
    assert (error.value.row, error.value.column, error.value.dtype) == (0, None, "float64")


def test_compiled_loops_equal_interpreted_ones(corpora, monkeypatch):
    _, _, packed, packed_new = corpora
    sequence = ForestSequence.of(KERNELS[1], packed, ADDED, REMOVED)
    compiled = sequence.changes(packed_new)
    monkeypatch.setattr(forest_sequence, "add_differences", add_differences.py_func)
    for one, other in zip(compiled, sequence.changes(packed_new), strict=True):
        assert_close(one, other)
