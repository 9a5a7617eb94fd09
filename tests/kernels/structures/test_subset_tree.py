"""SubsetTree against the enumeration of all fragments, and what it promises about tiles, depth and overflow."""

import random

import numpy as np
import pytest
from oracles.packed_structures import pack_parses
from oracles.subset_tree import nodes_of, subset_tree_kernel
from tolerances import assert_close

import gramline.kernels.structures.subset_tree as module
from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.structures import subset_tree_loops
from gramline.kernels.structures.distinct_subtrees import DistinctSubtrees, number_subtrees
from gramline.kernels.structures.subset_tree import SubsetTree

SETTINGS = [(1.0, None, False), (0.4, None, False), (0.7, 1, False), (0.7, 2, False), (0.7, 9, True), (0.3, None, True)]


def random_tree(draw, depth=3):
    """A small tree over few labels and words, so that fragments repeat; some nodes have no children."""
    label = draw.choice("AB")
    if depth == 0 or draw.random() < 0.2:
        return [label, *draw.choices("AB", k=draw.randint(0, 1))]  # a word may be spelled like a label
    children = [
        draw.choice("xA") if draw.random() < 0.3 else random_tree(draw, depth - 1) for _ in range(draw.randint(1, 2))
    ]
    return [label, *children]


@pytest.fixture(scope="module")
def trees():
    draw = random.Random(3)
    return [random_tree(draw) for _ in range(14)] + [["A"], ["A", "x"], ["A", ["A"], ["A"]]]


@pytest.mark.parametrize(("decay", "max_depth", "normalized"), SETTINGS)
def test_equals_the_enumeration_of_fragments(trees, decay, max_depth, normalized):
    expected = [[subset_tree_kernel(a, b, decay, max_depth, normalized) for b in trees] for a in trees]
    kernel = SubsetTree(decay=decay, max_depth=max_depth, normalized=normalized)
    packed = pack_parses(trees)
    gram = kernel.gram(packed)
    assert_close(gram, expected)
    assert_close(kernel.diagonal(packed), np.diagonal(expected))
    assert_close(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * gram.max()


def test_counts_common_fragments_of_a_known_pair():
    one = ["NP", ["D", "the"], ["N", "man"]]
    two = ["NP", ["D", "the"], ["N", "dog"]]
    # NP with D cut or expanded, and D -> the
    assert SubsetTree().gram(pack_parses([one, two])).tolist() == [[6.0, 3.0], [3.0, 6.0]]
    assert SubsetTree(decay=0.5).gram(pack_parses([one, two]))[0, 1] == 0.5 + 0.25 + 0.5


@pytest.mark.parametrize("cells", [1, 40, 1 << 18])
def test_any_tiling_and_any_strips_give_the_same_matrix(trees, monkeypatch, cells):
    packed = pack_parses(trees)
    kernel = SubsetTree(decay=0.6)
    whole = kernel.tile(packed, packed)
    monkeypatch.setattr(module, "STRIP_CELLS", cells)
    pieces = [packed.structures(0, 1), packed.structures(1, 9), packed.structures(9, len(trees))]
    assert_close(np.block([[kernel.tile(a, b) for b in pieces] for a in pieces]), whole)


def test_a_production_unknown_to_the_columns_matches_nothing():
    codes = {}
    cols = pack_parses([["A", "x"]], codes)
    rows = pack_parses([["B", ["A", "x"], ["C", "y"]], ["D", "z"]], codes)
    assert SubsetTree().tile(rows, cols).tolist() == [[1.0], [0.0]]
    assert SubsetTree().tile(cols, rows).tolist() == [[1.0, 0.0]]


def test_words_and_nonterminals_of_the_same_spelling_differ():
    packed = pack_parses([["A", "B"], ["A", ["B", "x"]]])
    assert SubsetTree().gram(packed)[0, 1] == 0


def test_relabeling_productions_changes_nothing(trees):
    codes = {}
    pack_parses(reversed(trees), codes)
    renamed = pack_parses(trees, codes)
    assert renamed.symbols.tolist() != pack_parses(trees).symbols.tolist()
    assert_close(SubsetTree(decay=0.5).gram(renamed), SubsetTree(decay=0.5).gram(pack_parses(trees)))


def test_tiles_of_float32_are_rounded_values(trees):
    packed = pack_parses(trees)
    single = SubsetTree(decay=0.5).tile(packed, packed, np.float32)
    assert single.dtype == np.float32
    assert_close(single, SubsetTree(decay=0.5).gram(packed))


def deep_chain(n):
    node = ["A", "x"]
    for _ in range(n - 1):
        node = ["A", node]
    return node


def test_deep_chain_runs_without_recursion():
    long, short = 5000, 7
    gram = SubsetTree(decay=0.5).gram(pack_parses([deep_chain(long), deep_chain(short)]))
    # runs of s productions A -> A at any two places, and the runs that end in the word
    inside = sum((long - s) * (short - s) * 0.5**s for s in range(1, short))
    assert np.isclose(gram[0, 1], inside + sum(0.5**s for s in range(1, short + 1)))


def test_wide_node_runs():
    wide = ["A", *(["B", "x"] for _ in range(500))]
    gram = SubsetTree(decay=0.01).gram(pack_parses([wide, wide]))
    assert_close(gram, np.full((2, 2), 0.01 * 1.01**500 + 0.01 * 500**2))


@pytest.mark.parametrize("normalized", [False, True])
def test_overflow_names_the_two_structures(normalized):
    wide = ["A", *(["B", "x"] for _ in range(1100))]
    packed = pack_parses([["A", "x"], wide, ["B", "x"], wide])
    with pytest.raises(KernelOverflowError) as error:
        SubsetTree(normalized=normalized).gram(packed)
    assert (error.value.row, error.value.column) == (1, 1)
    assert error.value.advice.startswith("lower decay or set max_depth")
    with pytest.raises(KernelOverflowError) as error:
        SubsetTree().diagonal(packed)
    assert (error.value.row, error.value.column) == (1, 1)


def test_overflow_of_float32_alone_is_found():
    wide = ["A", *(["B", "x"] for _ in range(200))]
    packed = pack_parses([["A", "x"], wide])
    assert np.isfinite(SubsetTree().gram(packed)).all()
    with pytest.raises(KernelOverflowError) as error:
        SubsetTree().tile(packed, packed, np.float32)
    assert (error.value.row, error.value.column, error.value.dtype) == (1, 1, "float32")
    assert_close(SubsetTree(normalized=True).tile(packed, packed, np.float32), np.eye(2))


def test_children_before_their_parent_are_refused():
    packed = pack_parses([["A", ["B", "x"]]])
    wrong = type(packed).from_arrays(packed.arrays() | {"link_targets": np.array([0], np.int32)}, packed.vocabulary)
    with pytest.raises(PackingError) as error:
        SubsetTree().gram(wrong)
    assert (error.value.structure, error.value.position) == (0, 0)
    assert "a child before itself" in error.value.problem


def test_travels_as_a_dictionary():
    kernel = SubsetTree(decay=0.3, max_depth=4, normalized=True)
    assert from_dict(kernel.to_dict(), Kernel) == kernel


def test_equal_numbers_mean_equal_subtrees(trees):
    packed = pack_parses(trees)
    numbers, representatives = number_subtrees(packed.starts, packed.symbols, packed.link_indptr, packed.link_targets)
    # a node without children has no production, hence no name of its own
    written = [repr(node) if len(node) > 1 else "" for tree in trees for node in nodes_of(tree)]
    assert len(set(zip(numbers.tolist(), written, strict=True))) == len(set(written)) == len(representatives)
    assert DistinctSubtrees.of(packed).n_distinct == len(representatives)


def test_interpreted_loops_give_the_compiled_numbers(trees):
    packed = pack_parses(trees[:6])
    given = packed.starts, packed.symbols, packed.link_indptr, packed.link_targets
    compiled = subset_tree_loops.self_values(*given, 0.5, 2)
    assert_close(subset_tree_loops.self_values.py_func(*given, 0.5, 2), compiled)
