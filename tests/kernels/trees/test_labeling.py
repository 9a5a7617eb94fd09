"""What only trees have: ordered siblings, several roots, wide nodes, and nodes with two parents to refuse."""

import pytest
from oracles.packed_structures import pack_nodes
from tolerances import assert_close

from gramline.kernels.errors import PackingError
from gramline.kernels.trees.labeling import TreeLabeling


def test_siblings_match_in_order_only():
    # root 0 with children 1, 2 against root 0 with children 2, 1: one child at a time matches, never both
    packed = pack_nodes([[0, 1, 2], [0, 2, 1]], [[[1, 2], [], []]] * 2, kind="trees")
    assert TreeLabeling().gram(packed)[0, 3] == 3.0
    assert TreeLabeling().gram(packed)[0, 0] == 4.0


def test_roots_of_a_forest_do_not_know_each_other():
    forest = pack_nodes([[0, 1, 0]], [[[1], [], []]], kind="trees")
    apart = pack_nodes([[0, 1], [0]], [[[1], []], [[]]], kind="trees")
    assert_close(TreeLabeling().gram(forest), TreeLabeling().gram(apart))


def test_wide_node_runs():
    wide = [list(range(1, 501)), *([] for _ in range(500))]
    packed = pack_nodes([[0] + [1] * 500, [0] + [1] * 500], [wide, wide], kind="trees")
    gram = TreeLabeling(c=0.05).gram(packed)
    # order-preserving partial matchings of 500 with 500 equal children: sum_k C(500, k)^2 kap^k
    kap, total, term = 0.05**2, 0.0, 1.0
    for k in range(501):
        total += term
        term *= kap * ((500 - k) / (k + 1)) ** 2
    assert_close(gram[0, 501], kap * total)


@pytest.mark.parametrize(
    ("children", "position"), [([[1], [0], []], 0), ([[2], [2], []], 2), ([[], [2], [1]], 1), ([[], [1, 2], []], 1)]
)
def test_what_is_no_tree_is_refused(children, position):
    packed = pack_nodes([[0], [0, 0, 0]], [[[]], children], kind="trees")
    with pytest.raises(PackingError) as error:
        TreeLabeling().gram(packed)
    assert error.value.structure == 1
    assert error.value.position == position
    assert "two parents or lies on a cycle" in error.value.problem
