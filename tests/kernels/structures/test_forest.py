"""The compressed forest is the explicit weighted sum, exactly, and smaller."""

import random

import numpy as np
import pytest
from oracles.packed_structures import pack_parses
from oracles.subset_tree import subset_tree_kernel
from tolerances import assert_close

from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.structures.forest import WeightedForest
from gramline.kernels.structures.subset_tree import SubsetTree

KERNELS = [SubsetTree(), SubsetTree(decay=0.4), SubsetTree(decay=0.6, max_depth=2), SubsetTree(0.5, None, True)]


def phrase(draw, depth):
    label = draw.choice("AB")
    if depth == 0:
        return [label, draw.choice("xy")]
    return [label, *(phrase(draw, depth - 1) for _ in range(draw.randint(1, 2)))]


@pytest.fixture(scope="module")
def corpora():
    draw = random.Random(11)
    codes = {}
    support, new = [phrase(draw, 3) for _ in range(20)], [phrase(draw, 3) for _ in range(9)]
    return support, new, pack_parses(support, codes), pack_parses(new, codes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_the_explicit_weighted_sum(corpora, kernel):
    support, new, packed, packed_new = corpora
    weights = np.random.default_rng(2).integers(-3, 4, len(support)).astype(float)
    expected = [
        sum(
            weight * subset_tree_kernel(tree, other, kernel.decay, kernel.max_depth, kernel.normalized)
            for weight, tree in zip(weights, support, strict=True)
        )
        for other in new
    ]
    forest = WeightedForest.of(kernel, packed, weights)
    assert_close(forest.values(packed_new), expected)
    assert forest.size.n_trees == np.count_nonzero(weights)
    assert forest.size.n_subtrees < forest.size.n_nodes == packed.lengths[weights != 0].sum()
    assert forest.size.ratio > 1


def test_equal_trees_of_opposite_weight_leave_nothing(corpora):
    _, _, packed, packed_new = corpora
    twice = pack_parses([["A", ["B", "x"]], ["A", ["B", "x"]]])
    empty = WeightedForest.of(SubsetTree(), twice, [2.0, -2.0])
    assert empty.size.n_subtrees == 0
    assert empty.values(packed_new).tolist() == [0.0] * len(packed_new)
    assert WeightedForest.of(SubsetTree(), packed, np.zeros(len(packed))).values(packed).tolist() == [0.0] * 20


def test_a_shared_subtree_of_weight_zero_stays_for_its_parents():
    codes = {}
    packed = pack_parses([["S", ["A", "x"]], ["T", ["A", "x"]]], codes)
    forest = WeightedForest.of(SubsetTree(), packed, [1.0, -1.0])
    assert sorted(forest.weights.tolist()) == [-1.0, 0.0, 1.0]
    assert forest.values(pack_parses([["S", ["A", "x"]], ["A", "x"]], codes)).tolist() == [2.0, 0.0]


def test_survives_a_round_trip_through_arrays(corpora):
    _, _, packed, packed_new = corpora
    forest = WeightedForest.of(KERNELS[1], packed, np.linspace(-1, 1, len(packed)))
    again = WeightedForest.from_arrays(KERNELS[1], forest.to_arrays())
    assert again.values(packed_new).tolist() == forest.values(packed_new).tolist()
    assert again.size == forest.size


def test_wrong_weights_are_refused(corpora):
    packed = corpora[2]
    with pytest.raises(PackingError, match="one weight per tree: 20 trees"):
        WeightedForest.of(SubsetTree(), packed, [1.0])
    with pytest.raises(PackingError, match="weight is not a finite number") as error:
        WeightedForest.of(SubsetTree(), packed, [1.0] * 3 + [np.nan] + [1.0] * 16)
    assert error.value.structure == 3


def test_overflow_names_the_tree():
    wide = ["A", *(["B", "x"] for _ in range(1100))]
    packed = pack_parses([["B", "x"], wide])
    forest = WeightedForest.of(SubsetTree(), packed, [1.0, 1.0])
    with pytest.raises(KernelOverflowError, match="weighted sum for structure 1 does not fit float64") as error:
        forest.values(packed)
    assert (error.value.row, error.value.column) == (1, None)
