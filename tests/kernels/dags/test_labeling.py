"""What only DAGs have: paths that meet again, repeated edges, wide nodes, and cycles to refuse."""

import pytest
from oracles.packed_structures import pack_nodes
from tolerances import assert_close

from gramline.kernels.dags.labeling import DagLabeling
from gramline.kernels.errors import PackingError


def test_a_known_pair():
    diamond = [[1, 2], [3], [3], []]
    packed = pack_nodes([[0, 1, 1, 2]], [diamond], kind="dags")
    gram = DagLabeling().gram(packed)
    # from the top: alone, one step into 2 x 2 pairs of middle nodes, two steps over the same 4 pairs
    assert gram[0, 0] == 1 + 4 + 4
    assert gram[1, 2] == 2 * 2


def test_a_repeated_edge_is_one_edge():
    once = pack_nodes([[0, 1, 0]], [[[1], [2], []]], kind="dags")
    twice = pack_nodes([[0, 1, 0]], [[[1, 1], [2, 2], []]], kind="dags")
    assert DagLabeling().gram(twice).tolist() == DagLabeling().gram(once).tolist()


def test_wide_node_runs():
    wide = [list(range(1, 501)), *([501] for _ in range(500)), []]
    packed = pack_nodes([[0] + [1] * 500 + [2]] * 2, [wide, wide], kind="dags")
    gram = DagLabeling(c=0.5).gram(packed)
    assert_close(gram[0, 502], 0.25 * (1 + 500**2 * 0.25 * (1 + 0.25)))


@pytest.mark.parametrize("successors", [[[1], [0], []], [[0], [2], []], [[1], [2], [1]]])
def test_cycles_are_refused(successors):
    packed = pack_nodes([[0], [0, 0, 0]], [[[]], successors], kind="dags")
    with pytest.raises(PackingError) as error:
        DagLabeling().gram(packed)
    assert error.value.structure == 1
    assert error.value.position in (0, 1)
    assert error.value.problem == "the node lies on or behind a cycle"
