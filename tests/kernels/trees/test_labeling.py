"""What only trees have: ordered siblings, several roots, wide nodes, and nodes with two parents to refuse."""

import random

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes
from tolerances import assert_close

from gramline.kernels import TabulatedPrior
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.trees import labeling, matching_loops
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


def random_trees(seed: int, n_symbols: int):
    """Forests of up to twelve nodes in any order, with a table of priors over two labels."""
    draw = random.Random(seed)
    symbols, links = [], []
    for size in [draw.randint(1, 12) for _ in range(9)]:
        names = draw.sample(range(size), size)
        children = [[] for _ in range(size)]
        for place in range(1, size):
            if draw.random() < 0.9:
                children[names[draw.randrange(place)]].append(names[place])
        symbols.append([draw.randrange(n_symbols) for _ in range(size)])
        links.append(children)
    n_nodes = sum(map(len, symbols))
    table = np.random.default_rng(seed).dirichlet([1, 1], n_nodes)
    return pack_nodes(symbols, links, kind="trees", n_labels=2, table=table)


@pytest.mark.parametrize("n_symbols", [1, 2, 9])
@pytest.mark.parametrize(
    "kernel",
    [
        TreeLabeling(0.8),
        TreeLabeling(0.9, prior=TabulatedPrior()),
        TreeLabeling(0.9, prior=TabulatedPrior(), label_kernel=[[1.0, -0.5], [-0.5, 1.0]]),
    ],
    ids=repr,
)
def test_equal_nodes_alone_give_the_same_as_whole_rows(n_symbols, kernel, monkeypatch):
    ready = kernel.prepare(random_trees(n_symbols, n_symbols))
    rows, cols = ready.structures(0, 4), ready.structures(4, 9)
    found = []
    for share in (0.0, 2.0):
        monkeypatch.setattr(labeling, "SPARSE_SHARE", share)
        tiles = [kernel.tile(a, b, dtype) for a, b in ((rows, cols), (ready, ready)) for dtype in (float, np.float32)]
        found.append([tile.tobytes() for tile in tiles])
    assert found[0] == found[1]
    for name in ("match_forward", "match_backward", "fill_kap", "match_downward", "match_upward"):
        monkeypatch.setattr(matching_loops, name, getattr(matching_loops, name).py_func)
    monkeypatch.setattr(labeling, "fill_matches", matching_loops.fill_matches.py_func)
    assert kernel.tile(rows, cols).tobytes() == found[0][0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_overflow_among_few_equal_nodes(dtype):
    chain = [[node + 1] if node < 699 else [] for node in range(700)]
    others = [[1000 + number] for number in range(3000)]
    packed = pack_nodes([*others, [0] * 700], [*([[[]]] * len(others)), chain], kind="trees")
    kernel = TreeLabeling(3.0)
    ready = kernel.prepare(packed)
    assert labeling.tree_pair(ready, ready).equal.n_equal < labeling.SPARSE_SHARE * 3700**2
    with pytest.raises(KernelOverflowError) as caught:
        kernel.tile(ready.structures(2990, 3001), ready.structures(2000, 3001), dtype)
    assert (caught.value.row, caught.value.column) == (10, 1000)
