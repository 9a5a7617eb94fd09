"""What the labeling kernels of trees and of DAGs have in common, each against its own enumeration."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracles.dag_labeling import dag_gram
from oracles.packed_structures import pack_nodes
from oracles.tree_labeling import tree_gram
from tolerances import assert_close

from gramline.kernels import DagLabeling, SequenceLabeling, Substitution, TabulatedPrior, TreeLabeling, base
from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.dags import labeling as dags
from gramline.kernels.dags import labeling_loops as dag_loops
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.marginals import prior_table
from gramline.kernels.packing import Packed
from gramline.kernels.trees import labeling as trees
from gramline.kernels.trees import labeling_loops as tree_loops

SIMILAR = Substitution(("w0", "w1", "w2"), [[1.0, 0.5, 0.0], [0.5, 2.0, -0.3], [0.0, -0.3, 1.0]])
NEGATIVE_LABEL_KERNEL = [[2.0, -1.0], [-1.0, 1.0]]
Links = list[list[int]]  # children, or successors, of each node


def random_forest(draw: random.Random, n_nodes: int) -> Links:
    """Children of each node; nodes in random order, sometimes with several roots."""
    names = list(range(n_nodes))
    draw.shuffle(names)
    children: Links = [[] for _ in names]
    for place in range(1, n_nodes):
        if draw.random() < 0.9:
            children[names[draw.randrange(place)]].append(names[place])
    for own in children:
        draw.shuffle(own)
    return children


def random_graph(draw: random.Random, n_nodes: int) -> Links:
    """Successors of each node, in an order of nodes that is not topological."""
    names = list(range(n_nodes))
    draw.shuffle(names)
    successors: Links = [[] for _ in names]
    for source in range(n_nodes):
        successors[names[source]] = sorted(names[t] for t in range(source + 1, n_nodes) if draw.random() < 0.5)
    return successors


@dataclass(frozen=True)
class Family:
    """One kind of structure: its kernel, how it is drawn and enumerated, and its compiled loops."""

    kernel: Callable[..., PositionLabeling]
    kind: str
    draw: Callable[[random.Random, int], Links]
    gram: Callable[..., Any]
    module: ModuleType
    sweep: str
    loops: ModuleType
    inner_loops: tuple[str, ...]

    def pack(self, symbols: list[list[int]], links: list[Links], **more: Any) -> Packed:
        return pack_nodes(symbols, links, kind=self.kind, **more)

    def corpus(self, seed: int, n_structures: int = 6) -> tuple[list[list[int]], list[Links], Any]:
        """Symbols, links, and a table of priors over two labels."""
        draw = random.Random(seed)
        sizes = [draw.randint(1, 6) for _ in range(n_structures)]
        symbols = [[draw.randrange(3) for _ in range(size)] for size in sizes]
        table = np.random.default_rng(seed).dirichlet([1, 1], sum(sizes))
        return symbols, [self.draw(draw, size) for size in sizes], table

    def packed(self, seed: int, n_structures: int = 6) -> Packed:
        symbols, links, table = self.corpus(seed, n_structures)
        return self.pack(symbols, links, n_labels=2, table=table)


FAMILIES = [
    Family(
        TreeLabeling,
        "trees",
        random_forest,
        tree_gram,
        trees,
        "sweep_trees",
        tree_loops,
        tuple(name for name, loop in vars(tree_loops).items() if hasattr(loop, "py_func") and name != "sweep_trees"),
    ),
    Family(
        DagLabeling,
        "dags",
        random_graph,
        dag_gram,
        dags,
        "sweep_graphs",
        dag_loops,
        ("continue_row", "sum_neighbours"),
    ),
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"c": 0.7},
    {"c": 1.3, "observation": SIMILAR},
    {"c": 0.8, "observation": SIMILAR, "prior": TabulatedPrior()},
    {"c": 0.8, "observation": SIMILAR, "prior": TabulatedPrior(), "label_kernel": NEGATIVE_LABEL_KERNEL},
    {"c": 0.8, "label_kernel": NEGATIVE_LABEL_KERNEL},
]


@pytest.fixture(params=FAMILIES, ids=lambda family: family.kind)
def family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.param
    return found


def by_enumeration(family: Family, kernel: PositionLabeling, packed: Packed, links: list[Links]) -> Any:
    ready = kernel.prepare(packed)
    kx = np.empty((ready.n_positions, ready.n_positions))
    kernel.observation.strips(ready, ready).fill(0, ready.n_positions, kx)
    ky = np.eye(ready.n_labels) if kernel.label_kernel is None else np.array(kernel.label_kernel)
    marginal = prior_table(ready) @ ky @ prior_table(ready).T
    ranges = [slice(a, b) for a, b in zip(ready.starts[:-1], ready.starts[1:], strict=True)]
    return np.block(
        [
            [
                family.gram(kx[a, b], marginal[a, b], kernel.c, left, right)
                for b, right in zip(ranges, links, strict=True)
            ]
            for a, left in zip(ranges, links, strict=True)
        ]
    )


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_enumeration_of_features(family: Family, settings: dict[str, Any], seed: int) -> None:
    symbols, links, table = family.corpus(seed)
    packed, kernel = family.pack(symbols, links, n_labels=2, table=table), family.kernel(**settings)
    assert_close(kernel.gram(packed), by_enumeration(family, kernel, packed, links))


@pytest.mark.parametrize("settings", [{}, {"prior": TabulatedPrior()}])
def test_symmetric_positive_semidefinite_and_its_own_diagonal(family: Family, settings: dict[str, Any]) -> None:
    packed, kernel = family.packed(3, 12), family.kernel(c=0.9, **settings)
    gram = kernel.gram(packed)
    assert_close(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * gram.max()
    assert_close(kernel.diagonal(kernel.prepare(packed)), gram.diagonal())


def test_swapped_arguments_transpose(family: Family) -> None:
    kernel = family.kernel(c=0.9, observation=SIMILAR, prior=TabulatedPrior())
    ready = kernel.prepare(family.packed(4, 9))
    left, right = ready.structures(0, 4), ready.structures(4, 9)
    assert_close(kernel.tile(left, right), kernel.tile(right, left).T)


@pytest.mark.parametrize("width", [1, 7, 1000])
def test_any_tiling_and_any_chunks_give_the_same_matrix(
    family: Family, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    kernel = family.kernel(c=1.1, prior=TabulatedPrior())
    ready = kernel.prepare(family.packed(5, 10))
    whole = kernel.tile(ready, ready)
    for module in (base, trees):
        monkeypatch.setattr(module, "CHUNK_COLUMNS", width)
    pieces = [ready.structures(0, 1), ready.structures(1, 7), ready.structures(7, 10), ready.structures(10, 10)]
    assert_close(np.block([[kernel.tile(a, b) for b in pieces] for a in pieces]), whole)


def test_node_order_changes_nothing(family: Family) -> None:
    symbols, links, _ = family.corpus(6, 8)
    draw = random.Random(0)
    moved_symbols: list[list[int]] = []
    moved_links: list[Links] = []
    order: list[int] = []
    for own, following in zip(symbols, links, strict=True):
        place = list(range(len(own)))
        draw.shuffle(place)  # node i moves to place[i]
        back = np.argsort(place).tolist()
        order += [len(order) + place[node] for node in range(len(own))]
        moved_symbols.append([own[node] for node in back])
        moved_links.append([[place[target] for target in following[node]] for node in back])
    kernel = family.kernel(c=1.2)
    gram = kernel.gram(family.pack(symbols, links))
    assert_close(kernel.gram(family.pack(moved_symbols, moved_links))[np.ix_(order, order)], gram)


def test_renamed_symbols_change_nothing(family: Family) -> None:
    symbols, links, _ = family.corpus(7, 8)
    renamed = [[2 - symbol for symbol in own] for own in symbols]
    kernel = family.kernel(c=1.2)
    assert_close(kernel.gram(family.pack(renamed, links)), kernel.gram(family.pack(symbols, links)))


def chain(n_nodes: int) -> Links:
    return [[node + 1] if node + 1 < n_nodes else [] for node in range(n_nodes)]


def test_chains_are_sequences(family: Family) -> None:
    draw = random.Random(1)
    symbols = [[draw.randrange(3) for _ in range(draw.randint(1, 9))] for _ in range(6)]
    gram = family.kernel(c=0.9).gram(family.pack(symbols, [chain(len(own)) for own in symbols], n_labels=2))
    assert_close(gram, SequenceLabeling(c=0.9).gram(pack_nodes(symbols, n_labels=2)))


def test_a_deep_chain_runs_without_recursion(family: Family) -> None:
    kernel = family.kernel(c=0.9)
    ready = kernel.prepare(family.pack([[0] * 5000, [0] * 30], [chain(5000), chain(30)]))
    tile = kernel.tile(ready.structures(0, 1), ready.structures(1, 2))
    kap = 0.9**2
    up = (1 - kap**16) / (1 - kap)  # the 15 nodes above node 15 of the short chain, and itself
    down = (1 - kap**15) / (1 - kap)
    assert np.isclose(tile[2500, 15], kap * up * down)


def test_overflow_names_the_two_structures(family: Family) -> None:
    packed = family.pack([[0], [0] * 400], [[[]], chain(400)])
    with pytest.raises(KernelOverflowError) as error:
        family.kernel(c=3.0).gram(packed)
    assert (error.value.row, error.value.column) == (1, 1)
    assert error.value.advice.startswith("lower c")


def test_float32_tiles_are_rounded_float64_tiles(family: Family) -> None:
    kernel = family.kernel(c=0.9)
    ready = kernel.prepare(family.packed(8))
    single = kernel.tile(ready, ready, np.float32)
    assert single.dtype == np.float32
    assert_close(single, kernel.tile(ready, ready))


def test_interpreted_loops_give_the_compiled_numbers(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, kernel = family.packed(9, 4), family.kernel(c=0.9, prior=TabulatedPrior())
    compiled = kernel.gram(packed)
    for name in family.inner_loops:
        monkeypatch.setattr(family.loops, name, getattr(family.loops, name).py_func)
    monkeypatch.setattr(family.module, family.sweep, getattr(family.loops, family.sweep).py_func)
    assert_close(kernel.gram(packed), compiled)


def test_travels_as_a_dictionary(family: Family) -> None:
    kernel = family.kernel(c=0.5, label_kernel=NEGATIVE_LABEL_KERNEL)
    assert from_dict(kernel.to_dict(), Kernel) == kernel  # type: ignore[type-abstract]


def test_other_structures_are_refused(family: Family) -> None:
    name = family.kernel().__class__.__name__
    with pytest.raises(PackingError, match=f"{name} compares {family.kind}, but the corpus holds sequences"):
        family.kernel().gram(pack_nodes([[0]]))
