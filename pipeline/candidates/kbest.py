"""The n best derivations of a filled chart, found lazily: only what the next best one needs is ever expanded.

A node is (i, j, symbol, is_upper). An upper node is entered by a unary chain from a lower node of the same span, a
lower node by a word or by a binary rule from two upper nodes. Every node keeps its derivations, best first,
and a heap of candidates; the successors of a derivation take the next best derivation of one of its parts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.candidates.chart_loops import incoming
from gramline.pipeline.candidates.grammar import INTERMEDIATE, WORD, Grammar, Tree
from gramline.pipeline.candidates.unary_chains import UnaryChains

Node = tuple[int, int, int, bool]


class Edge(NamedTuple):
    """One way into a node."""

    parts: tuple[Node, ...]
    score: float  # log probability of the rule, chain or word itself
    chain: tuple[int, ...] = ()  # unary symbols below the node, down to its part


class OutOfTimeError(Exception):
    """The time given for one sentence is over."""


@dataclass
class _Found:
    """What is known of one node."""

    derivations: list[tuple[float, Edge, tuple[int, ...]]] = field(default_factory=list)  # score, edge, ranks of parts
    heap: list[tuple[float, Edge, tuple[int, ...]]] = field(default_factory=list)  # minus score, edge, ranks
    seen: set[tuple[Edge, tuple[int, ...]]] = field(default_factory=set)
    expanded: int = 0
    exhausted: bool = False


class LazyDerivations:
    """Derivations of one sentence from the chart's best scores."""

    def __init__(
        self,
        grammar: Grammar,
        chains: UnaryChains,
        sentence: list[str],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        deadline: float,
    ) -> None:
        self._grammar, self._chains, self._sentence = grammar, chains, sentence
        self._lower, self._upper = lower, upper
        self._n = len(sentence)
        self._deadline = deadline
        self._nodes: dict[Node, _Found] = {}

    def best(self, n: int) -> list[tuple[float, Tree]]:
        """Up to n (log probability, tree) pairs, best first, over all root symbols."""
        roots: list[tuple[float, Tree]] = []
        for symbol, score in self._grammar.roots.items():
            node = (0, self._n, symbol, True)
            if self._upper[self._cell(node), symbol] == -np.inf:
                continue
            self._ensure(node, n - 1)
            for rank, (value, _, _) in enumerate(self._nodes[node].derivations[:n]):
                roots.append((score + value, self._tree(node, rank)))
        return sorted(roots, key=lambda item: -item[0])[:n]

    def _cell(self, node: Node) -> int:
        return node[0] * (self._n + 1) + node[1]

    def _score(self, node: Node) -> float:
        table = self._upper if node[3] else self._lower
        return float(table[self._cell(node), node[2]])

    def _ensure(self, node: Node, rank: int) -> None:
        """Find derivation number `rank` of a node (or learn that there is none), without recursion."""
        waiting = [(node, rank)]
        while waiting:
            node, rank = waiting[-1]
            found = self._nodes.get(node)
            if found is None:
                if monotonic() > self._deadline:
                    raise OutOfTimeError
                found = self._nodes[node] = self._opened(node)
            if found.exhausted or len(found.derivations) > rank:
                waiting.pop()
            elif found.expanded < len(found.derivations):
                if needed := self._missing_parts(*found.derivations[found.expanded][1:]):
                    waiting.extend(needed)
                else:
                    self._expand(found)
            elif found.heap:
                cost, edge, ranks = heapq.heappop(found.heap)
                found.derivations.append((-cost, edge, ranks))
            else:
                found.exhausted = True

    def _missing_parts(self, edge: Edge, ranks: tuple[int, ...]) -> list[tuple[Node, int]]:
        """Next derivations of the parts that are not known yet."""
        needed = []
        for part, rank in zip(edge.parts, ranks, strict=True):
            known = self._nodes.get(part)
            if known is None or not (known.exhausted or len(known.derivations) > rank + 1):
                needed.append((part, rank + 1))
        return needed

    def _expand(self, found: _Found) -> None:
        _, edge, ranks = found.derivations[found.expanded]
        found.expanded += 1
        for k, part in enumerate(edge.parts):
            following = (*ranks[:k], ranks[k] + 1, *ranks[k + 1 :])
            if len(self._nodes[part].derivations) > following[k]:
                self._push(found, edge, following)

    def _push(self, found: _Found, edge: Edge, ranks: tuple[int, ...]) -> None:
        if (edge, ranks) in found.seen:
            return
        found.seen.add((edge, ranks))
        total = edge.score
        for part, rank in zip(edge.parts, ranks, strict=True):
            total += self._score(part) if rank == 0 else self._nodes[part].derivations[rank][0]
        heapq.heappush(found.heap, (-total, edge, ranks))

    def _opened(self, node: Node) -> _Found:
        """A node with every way into it as a candidate, each with the best derivations of its parts."""
        found = _Found()
        for edge in self._ways_up(node) if node[3] else self._ways_in(node):
            self._push(found, edge, (0,) * len(edge.parts))
        return found

    def _ways_up(self, node: Node) -> list[Edge]:
        i, j, symbol, _ = node
        below = self._chains.chains.get(symbol, {})
        ways: list[Edge] = []
        if symbol not in below:
            ways.append(Edge(((i, j, symbol, False),), 0.0))
        for bottom, chains in below.items():
            ways.extend(Edge(((i, j, bottom, False),), score, path) for score, path in chains)
        return [way for way in ways if self._score(way.parts[0]) > -np.inf]

    def _ways_in(self, node: Node) -> list[Edge]:
        i, j, symbol, _ = node
        if j == i + 1:
            return [Edge((), self._score(node))]
        grammar = self._grammar
        order, starts = grammar.by_parent
        size = max(1, int(starts[symbol + 1] - starts[symbol]) * (j - i - 1))
        splits, which, values = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
        rules = (grammar.binary, grammar.binary_scores, order, starts)
        count = incoming(i, j, self._n, symbol, self._upper, *rules, splits, which, values)
        ways: list[Edge] = []
        for m, r in zip(splits[:count].tolist(), which[:count].tolist(), strict=True):
            left, right = int(grammar.binary[r, 1]), int(grammar.binary[r, 2])
            ways.append(Edge(((i, m, left, True), (m, j, right, True)), float(grammar.binary_scores[r])))
        return ways

    def _tree(self, node: Node, rank: int) -> Tree:
        """The derivation as a nested list: unary chains written out, intermediate symbols and stand-in tags gone."""
        top: Tree = []
        waiting: list[tuple[Node, int, Tree]] = [(node, rank, top)]
        while waiting:
            node, rank, parent = waiting.pop()
            self._ensure(node, rank)
            _, edge, ranks = self._nodes[node].derivations[rank]
            name = self._grammar.symbols[node[2]]
            if node[3]:  # the chain's symbols, this one first; the last of them is the lower node itself
                for symbol in (node[2], *edge.chain)[: len(edge.chain)]:
                    inner: Tree = [self._grammar.symbols[symbol]]
                    parent.append(inner)
                    parent = inner
            elif not name.startswith(INTERMEDIATE):
                if edge.parts:
                    inner = [name]
                    parent.append(inner)
                    parent = inner
                else:
                    word = self._sentence[node[0]]
                    parent.append(word if name.startswith(WORD) else [name, word])
            # parts are pushed so that the left one is written first
            waiting.extend((part, r, parent) for part, r in reversed(list(zip(edge.parts, ranks, strict=True))))
        tree: Tree = top[0]
        return tree
