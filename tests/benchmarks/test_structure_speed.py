"""Kernels beyond sequences on one core: pairs of parses per second, cells of trees and graphs, forests.

Bars for pairs per second come from a C implementation of the fast tree kernel, measured on a 2-core machine: 1.76 M on
trees of 28 nodes, 0.80 M on 41, 0.49 M on 73; the aim is three times that. Real trees are read from the folder that
GRAMLINE_DATA names, or from ../shared/data; without either, trees are generated. Times are of the thread.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes
from tolerances import assert_close

from gramline.kernels import (
    DagLabeling,
    Identity,
    Polynomial,
    SequenceLabeling,
    SubsetTree,
    TreeLabeling,
)
from gramline.kernels.packing import Features, Packed
from gramline.learners import DenseGram, RankingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.parses import parse_brackets
from gramline.pipeline.corpus.textfile import read_lines
from gramline.pipeline.models.ranker import Ranker

DATA = Path(os.environ.get("GRAMLINE_DATA", Path(__file__).parents[3] / "shared" / "data"))
TREEBANK = DATA / "wsj_sample" / "wsj_0001-0199.trees.gz"
PAIRS_OF_C = {28: 1.76e6, 41: 0.80e6, 73: 0.49e6}  # nodes: pairs per second
TIMES_C, TIMES_PYTHON = 3, 30
SHARE_OF_SEQUENCES = {"trees": 0.2, "dags": 0.1}  # cells per second
Tree = list[Any]


def n_nodes(tree: Tree) -> int:
    return 1 + sum(n_nodes(child) for child in tree[1:] if not isinstance(child, str))


def generated_tree(draw: random.Random, label: str = "S", depth: int = 0) -> Tree:
    """A tree of a small grammar whose phrases carry one of many function tags and whose words are unevenly frequent."""
    rules = {
        "S": [["NP", "VP"], ["NP", "VP", "PP"]],
        "VP": [["V", "NP"], ["V", "NP", "PP"], ["V", "S"]],
        "NP": [["D", "N"], ["D", "J", "N"], ["NP", "PP"], ["N"]],
        "PP": [["P", "NP"]],
    }
    if label not in rules:
        return [label, f"{label}{min(400, int(draw.paretovariate(0.7)))}"]
    choices = rules[label][:1] if depth > 9 else rules[label]
    tagged = f"{label}-{min(30, int(draw.paretovariate(0.5)))}"
    return [tagged, *(generated_tree(draw, child, depth + 1) for child in draw.choice(choices))]


def treebank(n_trees: int, *, is_generated: bool = False) -> tuple[str, list[Tree]]:
    """Where trees come from, and that many of them in a fixed random order."""
    draw = random.Random(5)
    if TREEBANK.exists() and not is_generated:
        found = [tree for _, tree in parse_brackets("\n".join(read_lines(TREEBANK)))]
        draw.shuffle(found)
        return "WSJ sample", found[:n_trees]
    return "generated trees", [generated_tree(draw) for _ in range(n_trees)]


def seconds(function: Callable[[], object], times: int) -> float:
    """Median time of the thread after one call to warm up."""
    function()
    taken = []
    for _ in range(times):
        begin = time.thread_time()
        function()
        taken.append(time.thread_time() - begin)
    return float(np.median(taken))


class PlainTree:
    """What the plain Python kernel needs of a tree: nodes by production, children after their parents."""

    def __init__(self, tree: Tree) -> None:
        self.children: list[list[int]] = []
        self.by_production: dict[Any, list[int]] = defaultdict(list)
        self.production: list[Any] = []
        self._add(tree)

    def _add(self, node: Tree) -> int:
        number = len(self.children)
        self.children.append([])
        key = (node[0], *((child, True) if isinstance(child, str) else (child[0], False) for child in node[1:]))
        self.production.append(key)
        self.by_production[key].append(number)
        self.children[number] = [self._add(child) for child in node[1:] if not isinstance(child, str)]
        return number


def plain_kernel(one: PlainTree, two: PlainTree, decay: float) -> float:
    """The kernel as a careful person writes it in Python: matching pairs only, children first, a dictionary."""
    found: dict[tuple[int, int], float] = {}
    total = 0.0
    for a in range(len(one.children) - 1, -1, -1):
        for b in two.by_production.get(one.production[a], ()):
            value = decay
            for left, right in zip(one.children[a], two.children[b], strict=True):
                value *= 1.0 + found.get((left, right), 0.0)
            found[a, b] = value
            total += value
    return total


def tree_pairs(trees: list[Tree], times: int, n_plain: int) -> dict[str, float]:
    """Pairs per second of tiles and of plain Python on the same trees, and the sizes."""
    half = len(trees) // 2
    rows = Corpus.from_parses(trees[:half]).packed()
    cols = Corpus.from_parses(trees[half:]).packed(like=rows)
    plain = [PlainTree(tree) for tree in trees[: half + n_plain]]
    kernel = SubsetTree(decay=0.4)
    slow = [[plain_kernel(one, two, 0.4) for two in plain[half:]] for one in plain[:n_plain]]
    assert_close(kernel.tile(rows, cols)[:n_plain, :n_plain], slow)
    begin = time.thread_time()
    for one in plain[:n_plain]:
        for two in plain[half:]:
            plain_kernel(one, two, 0.4)
    by_hand = n_plain**2 / (time.thread_time() - begin)
    size = len(rows) * len(cols)
    kernels = {"plain": kernel, "depth 3": SubsetTree(0.4, 3), "normalized": SubsetTree(0.4, normalized=True)}
    speeds = {name: size / seconds(lambda k=one: k.tile(rows, cols), times) for name, one in kernels.items()}
    return speeds | {"nodes": float(np.mean([n_nodes(tree) for tree in trees])), "python": by_hand}


def linked_nodes(n_structures: int) -> dict[str, Packed]:
    """The same random nodes as sequences, trees and graphs."""
    rng = np.random.default_rng(3)
    words, children, successors = [], [], []
    for size in rng.integers(12, 38, n_structures).tolist():
        words.append((np.minimum(rng.zipf(1.2, size), 5000) % 50).tolist())
        tree: list[list[int]] = [[] for _ in range(size)]
        graph: list[list[int]] = [[] for _ in range(size)]
        for node in range(1, size):
            parent = int(rng.integers(max(0, node - 6), node))
            tree[parent].append(node)
            more = [parent] if rng.random() < 0.7 else [parent, int(rng.integers(0, node))]
            for source in set(more):
                graph[source].append(node)
        children.append(tree)
        successors.append(graph)
    return {
        "sequences": pack_nodes(words),
        "trees": pack_nodes(words, children, kind="trees"),
        "dags": pack_nodes(words, successors, kind="dags"),
    }


def with_features(packed: Packed) -> Packed:
    """Eight features per node, every node another observation."""
    n = packed.n_positions
    chosen = np.minimum(np.random.default_rng(4).zipf(1.3, (n, 8)), 3000) + np.arange(8) * 3001
    features = Features(np.arange(n + 1) * 8, chosen.ravel(), None)
    names = tuple(str(code) for code in range(8 * 3001))
    vocabulary = replace(packed.vocabulary, features=names)
    return replace(packed, features=features, symbols=np.arange(n, dtype=np.int32), vocabulary=vocabulary)


def labeling_cells(n_structures: int, times: int) -> dict[str, dict[str, float]]:
    """Cells per second of the three families on the same nodes, for two observation kernels."""
    families = {"sequences": SequenceLabeling, "trees": TreeLabeling, "dags": DagLabeling}
    found: dict[str, dict[str, float]] = {"identity": {}, "polynomial": {}}
    for kind, packed in linked_nodes(n_structures).items():
        for name, observation in (("identity", Identity()), ("polynomial", Polynomial(degree=2, normalized=True))):
            kernel = families[kind](c=0.6, observation=observation)
            rows = kernel.prepare(packed if name == "identity" else with_features(packed))
            cols = rows.structures(1, len(rows))  # not the same structures, so that nothing is mirrored
            taken = seconds(lambda k=kernel, a=rows, b=cols: k.tile(a, b), times)
            found[name][kind] = rows.n_positions * cols.n_positions / taken
    return found


def candidates_of(draw: random.Random, tree: Tree, donors: dict[str, list[Tree]], n: int) -> list[Tree]:
    """The tree, and n variants of it with one subtree taken from another tree."""

    def changed(node: Tree) -> Tree:
        places = [i for i, child in enumerate(node[1:], 1) if not isinstance(child, str)]
        if not places or draw.random() < 0.25:
            return draw.choice(donors[node[0]])
        place = draw.choice(places)
        return [*node[:place], changed(node[place]), *node[place + 1 :]]

    return [tree, *(changed(tree) for _ in range(n))]


def ranker(trees: list[Tree], n_groups: int, times: int, *, is_voting: bool) -> dict[str, float]:
    """A ranker trained on candidates, evaluated as a forest and as the sum over its support trees."""
    draw = random.Random(8)
    donors: dict[str, list[Tree]] = defaultdict(list)
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        donors[node[0]].append(node)
        waiting += [child for child in node[1:] if not isinstance(child, str)]
    groups = [candidates_of(draw, tree, donors, 9) for tree in trees]
    train = Corpus.from_parses([tree for group in groups[:n_groups] for tree in group]).packed()
    new = Corpus.from_parses([tree for group in groups[n_groups:] for tree in group]).packed(like=train)
    kernel = SubsetTree(decay=0.3)
    learner = RankingPerceptron(passes=2, average=not is_voting).fit(DenseGram.of(kernel, train), [10] * n_groups)
    forest = Ranker.of(learner, train, kernel).forest
    assert forest is not None
    support = np.flatnonzero(learner.support())
    kept = Corpus.from_parses([groups[row // 10][row % 10] for row in support]).packed(like=new)
    places = np.searchsorted(support, learner.updates_)
    weights = learner.average_weights_[support]

    def summed() -> Any:
        tile = kernel.tile(kept, new)
        if not is_voting:
            return (weights @ tile)[None]
        won, lost = tile[places[:, 0]], tile[places[:, 1]]
        return np.array([won - lost, won + lost])  # and how large the numbers were, to know a tie

    assert_close(forest.changes(new)[0], summed()[0] if is_voting else summed())
    return {
        "support trees": len(support),
        "hypotheses": len(learner.counts_) if is_voting else 1,
        "nodes": forest.size.n_nodes,
        "distinct subtrees": forest.size.n_subtrees,
        "sum": seconds(summed, times) / len(new),
        "forest": seconds(lambda: forest.changes(new), times) / len(new),
    }


def test_every_timed_thing_computes() -> None:
    _, trees = treebank(24, is_generated=True)
    assert tree_pairs(trees, times=1, n_plain=3)["nodes"] > 1
    cells = labeling_cells(4, times=1)
    assert {kind for found in cells.values() for kind in found} == {"sequences", "trees", "dags"}
    for is_voting in (False, True):
        assert ranker(trees[:9], 6, times=1, is_voting=is_voting)["distinct subtrees"] > 0


@pytest.mark.benchmark
def test_pairs_of_parses(capsys: pytest.CaptureFixture[str]) -> None:
    source, trees = treebank(3900)
    sets = {73: (60, 90), 41: (34, 49), 28: (20, 36)}
    lines = [f"{source:18}{'nodes':>7}{'pairs/s':>12}{'depth 3':>12}{'normalized':>12}{'of C':>7}{'of Python':>11}"]
    found = {}
    for size, (low, high) in sets.items():
        chosen = [tree for tree in trees if low <= n_nodes(tree) < high][:1200]
        found[size] = speeds = tree_pairs(chosen, times=5, n_plain=30)
        lines.append(
            f"{len(chosen):6} trees      {speeds['nodes']:7.1f}{speeds['plain']:12.3g}{speeds['depth 3']:12.3g}"
            f"{speeds['normalized']:12.3g}{speeds['plain'] / PAIRS_OF_C[size]:7.1f}"
            f"{speeds['plain'] / speeds['python']:11.0f}"
        )
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    for size, speeds in found.items():
        assert speeds["plain"] >= TIMES_PYTHON * speeds["python"], size
        assert speeds["plain"] >= TIMES_C * PAIRS_OF_C[size] or source != "WSJ sample", size


@pytest.mark.benchmark
def test_cells_of_trees_and_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    cells = labeling_cells(80, times=7)
    lines = [f"{'2000 x 2000 nodes':20}{'sequences':>12}{'trees':>16}{'dags':>16}   cells/s (share of sequences)"]
    for name, speeds in cells.items():
        shares = [f"{speeds[k]:9.3g} ({speeds[k] / speeds['sequences']:4.2f})" for k in ("trees", "dags")]
        lines.append(f"{name:20}{speeds['sequences']:12.3g}{shares[0]:>16}{shares[1]:>16}")
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    for speeds in cells.values():
        for kind, share in SHARE_OF_SEQUENCES.items():
            assert speeds[kind] >= share * speeds["sequences"], kind


@pytest.mark.benchmark
def test_forest_of_a_trained_ranker(capsys: pytest.CaptureFixture[str]) -> None:
    for is_voting in (False, True):
        found = ranker(treebank(210)[1], 150, times=5, is_voting=is_voting)
        total, n_subtrees = found["nodes"], found["distinct subtrees"]
        with capsys.disabled():
            sys.stdout.write(
                f"\n{'voting' if is_voting else 'averaged'} ranker of {found['hypotheses']:.0f} hypotheses over "
                f"{found['support trees']:.0f} trees, {total:.0f} nodes: {n_subtrees:.0f} distinct subtrees "
                f"({total / n_subtrees:.1f} times fewer); a new tree costs {1e6 * found['sum']:.0f} us as a sum, "
                f"{1e6 * found['forest']:.0f} us as a forest ({found['sum'] / found['forest']:.1f} times faster)\n"
            )
        assert n_subtrees < total
        assert found["forest"] < found["sum"]
