"""The reach of labeling kernels: its meaning beside c, and the choice of one from a corpus."""

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes
from strategies import pack
from tolerances import assert_close

from gramline.kernels import (
    DagLabeling,
    Linear,
    PositionKernel,
    SequenceLabeling,
    TabulatedPrior,
    TreeLabeling,
    context_share,
    reach_grid,
    with_reach,
)
from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.reach import LARGEST

LINKS = {
    "trees": [[[1, 2], [], [3], []], [[1], [], []]],
    "dags": [[[1, 2], [], [3], []], [[1], [], [1]]],
}
NODES = [[0, 1, 0, 1], [0, 1, 0]]


def corpus(kind, n_labels):
    if kind == "sequences":
        names = [f"l{k}" for k in range(n_labels)]
        return sequences([["a", "b", "a", "b"], ["a", "b", "a"]], label_names=names)
    return pack_nodes(NODES, LINKS[kind], kind=kind, n_labels=n_labels)


def sequences(symbols, **given):
    return pack([[{symbol: 1.0} for symbol in sequence] for sequence in symbols], **given)


@pytest.mark.parametrize("kernel", [SequenceLabeling(), SequenceLabeling(gap=0.5), TreeLabeling(), DagLabeling()])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_reach_is_c_squared_over_labels_without_the_factor(kernel, n_labels):
    packed = corpus(kernel.packed_kind, n_labels)
    reach = 0.6
    params = kernel.get_params()
    by_c = type(kernel)(**params | {"c": np.sqrt(reach * n_labels)}).gram(packed) / (reach * n_labels)
    assert_close(type(kernel)(**params | {"reach": reach}).gram(packed), by_c)


def test_a_tabulated_prior_weighs_the_neighbour():
    table = [[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]]
    packed = sequences([["a", "b"], ["a", "b"]], tables=table, label_names=["X", "Y"])
    gram = SequenceLabeling(reach=0.5, prior=TabulatedPrior()).gram(packed)
    assert_close(gram[0, 2], 1 + 0.5 * 2 * (0.25 * 0.5 + 0.75 * 0.5))


def test_earlier_stores_know_no_reach():
    assert "reach" not in SequenceLabeling().to_dict()
    kernel = SequenceLabeling(reach=0.25)
    assert from_dict(kernel.to_dict(), Kernel) == kernel


def test_context_share_is_what_neighbours_add():
    packed = sequences([["a", "b"], ["a", "b"], ["a", "c"], ["d", "b"]])
    kernel = SequenceLabeling(reach=0.5)
    assert context_share(SequenceLabeling(reach=1e-9), packed) == pytest.approx(0.0, abs=1e-8)
    rows = [0, 0, 1, 1, 2, 2, 3, 3]
    apart = np.not_equal.outer(rows, rows)
    own, all_ = (k.gram(packed)[apart].sum() for k in (PositionKernel(kernel.observation), kernel))
    assert context_share(kernel, packed) == pytest.approx(1 - own / all_)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_the_chosen_reach_has_the_wanted_share(share):
    rng = np.random.default_rng(1)
    sentences = [[f"w{k}" for k in rng.integers(0, 4, rng.integers(2, 7))] for _ in range(40)]
    chosen = with_reach(SequenceLabeling(observation=Linear(normalized=True)), sequences(sentences), share)
    assert context_share(chosen, sequences(sentences)) == pytest.approx(share, abs=0.01)


def test_long_structures_bound_the_reach():
    packed = sequences([["a"] * 200, ["b", "c"], ["d", "e"]])
    chosen = with_reach(SequenceLabeling(), packed, share=0.99)
    rounding = 0.99  # the reach has three digits
    assert SequenceLabeling(reach=rounding * chosen.reach).gram(packed).max() <= LARGEST
    assert SequenceLabeling(reach=1.1 * chosen.reach).gram(packed).max() > LARGEST


def test_a_grid_goes_from_little_context_to_much():
    sentences = [["a", "b", "c"], ["a", "b", "d"], ["b", "c", "a"], ["c", "a", "b"]]
    reaches = [kernel.reach for kernel in reach_grid(SequenceLabeling(), sequences(sentences))]
    assert reaches == sorted(reaches)
    assert len(reaches) == 4


def test_structures_of_one_position_take_the_largest_reach_there_is():
    assert with_reach(SequenceLabeling(), sequences([["a"], ["a"]])).reach > 1
