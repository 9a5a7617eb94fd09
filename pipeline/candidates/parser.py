"""The n best parses of a sentence, with a clear outcome whatever happens: a chart bottom up, then derivations top down.

A node is (i, j, symbol, is_upper). An upper node is entered by a unary chain from a lower node of the same span, a
lower node by a word or by a binary rule from two upper nodes. Every node keeps its derivations, best first,
and a heap of candidates; the successors of a derivation take the next best derivation of one of its parts. Only what
the next best derivation needs is ever expanded.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic
from typing import NamedTuple

import numpy as np

from gramline.pipeline.candidates.chart_loops import Chart, fill_width, incoming
from gramline.pipeline.candidates.grammar import INTERMEDIATE, WORD, Grammar, UnaryChains
from gramline.pipeline.corpus.parses import Tree
from gramline.pipeline.errors import InputError

Node = tuple[int, int, int, bool]


class Parsed(Enum):
    """What became of a sentence."""

    DONE = "parsed"
    NO_PARSE = "no parse"
    OUT_OF_TIME = "out of time"


@dataclass(frozen=True)
class ParseOutcome:
    """Trees with their log probabilities, best first; empty unless status is DONE."""

    status: Parsed
    trees: tuple[Tree, ...] = ()
    scores: tuple[float, ...] = ()


class Parser:
    """Exact n-best parses: a chart of best scores bottom up, then lazy enumeration top down.

    The chart costs O(length^3 * rules) and holds 2 * (length + 1)^2 * symbols numbers.
    """

    def __init__(self, grammar: Grammar, n: int = 20) -> None:
        if n < 1:
            raise InputError(f"at least one parse must be asked for, got {n}")
        self.grammar = grammar
        self.n = n
        self._chains = UnaryChains.of(grammar, n)
        self._fill(1, _empty_chart(0, len(grammar.symbols)))  # compiled here, not in the time of the first sentence

    def parse(self, sentence: list[str], seconds: float = np.inf) -> ParseOutcome:
        """The n best trees of a sentence, or why there are none."""
        if not sentence:
            raise InputError("an empty sentence has no parse; remove it")
        deadline = monotonic() + seconds
        grammar, n = self.grammar, len(sentence)
        chart = _empty_chart(n, len(grammar.symbols))
        for i, word in enumerate(sentence):
            for tag, score in grammar.lexicon.tags(word).items():
                chart.lower[i * (n + 1) + i + 1, grammar.codes[tag]] = score
        for width in range(1, n + 1):
            if monotonic() > deadline:
                return ParseOutcome(Parsed.OUT_OF_TIME)
            self._fill(width, chart)
        try:
            best = LazyDerivations(grammar, self._chains, sentence, chart, deadline).best(self.n)
        except OutOfTimeError:
            return ParseOutcome(Parsed.OUT_OF_TIME)
        if not best:
            return ParseOutcome(Parsed.NO_PARSE)
        return ParseOutcome(Parsed.DONE, tuple(tree for _, tree in best), tuple(score for score, _ in best))

    def _fill(self, width: int, chart: Chart) -> None:
        """The best scores of all spans of `width` words."""
        fill_width(width, chart, self.grammar.rules, self._chains.best)


def _empty_chart(n: int, n_symbols: int) -> Chart:
    shape = (n * (n + 1) + 1, n_symbols)
    lower, upper = np.full(shape, -np.inf), np.full(shape, -np.inf)
    return Chart(n, lower, upper, np.zeros(shape, np.int32), np.zeros(shape[0], np.int64))


class Edge(NamedTuple):
    """One way into a node."""

    parts: tuple[Node, ...]
    score: float  # log probability of the rule, chain or word itself
    chain: tuple[int, ...] = ()  # unary symbols below the node, down to its part


class OutOfTimeError(Exception):
    """The time given for one sentence is over."""


@dataclass
class _Derivations:
    """The derivations of one node that are known, and the candidates for the next one."""

    derivations: list[tuple[float, Edge, tuple[int, ...]]] = field(default_factory=list)  # score, edge, ranks of parts
    heap: list[tuple[float, Edge, tuple[int, ...]]] = field(default_factory=list)  # minus score, edge, ranks
    seen: set[tuple[Edge, tuple[int, ...]]] = field(default_factory=set)
    expanded: int = 0
    exhausted: bool = False


class LazyDerivations:
    """The derivations of one sentence from the best scores of its chart."""

    def __init__(
        self, grammar: Grammar, chains: UnaryChains, sentence: list[str], chart: Chart, deadline: float
    ) -> None:
        self._grammar, self._chains, self._sentence, self._chart = grammar, chains, sentence, chart
        self._n = len(sentence)
        self._deadline = deadline
        self._nodes: dict[Node, _Derivations] = {}

    def best(self, n: int) -> list[tuple[float, Tree]]:
        """Up to n (log probability, tree) pairs, best first, over all root symbols."""
        roots: list[tuple[float, Tree]] = []
        for symbol, score in self._grammar.roots.items():
            node = (0, self._n, symbol, True)
            if self._score(node) == -np.inf:
                continue
            self._ensure(node, n - 1)
            for rank, (value, _, _) in enumerate(self._nodes[node].derivations[:n]):
                roots.append((score + value, self._tree(node, rank)))
        return sorted(roots, key=lambda item: -item[0])[:n]

    def _cell(self, node: Node) -> int:
        return node[0] * (self._n + 1) + node[1]

    def _score(self, node: Node) -> float:
        table = self._chart.upper if node[3] else self._chart.lower
        return float(table[self._cell(node), node[2]])

    def _ensure(self, node: Node, rank: int) -> None:
        """Find derivation number `rank` of a node (or learn that there is none), without recursion."""
        waiting = [(node, rank)]
        while waiting:
            node, rank = waiting[-1]
            state = self._nodes.get(node)
            if state is None:
                if monotonic() > self._deadline:
                    raise OutOfTimeError
                state = self._nodes[node] = self._opened(node)
            if state.exhausted or len(state.derivations) > rank:
                waiting.pop()
            elif state.expanded < len(state.derivations):
                if needed := self._missing_parts(*state.derivations[state.expanded][1:]):
                    waiting.extend(needed)
                else:
                    self._expand(state)
            elif state.heap:
                cost, edge, ranks = heapq.heappop(state.heap)
                state.derivations.append((-cost, edge, ranks))
            else:
                state.exhausted = True

    def _missing_parts(self, edge: Edge, ranks: tuple[int, ...]) -> list[tuple[Node, int]]:
        """Next derivations of the parts that are not known yet."""
        needed = []
        for part, rank in zip(edge.parts, ranks, strict=True):
            known = self._nodes.get(part)
            if known is None or not (known.exhausted or len(known.derivations) > rank + 1):
                needed.append((part, rank + 1))
        return needed

    def _expand(self, state: _Derivations) -> None:
        _, edge, ranks = state.derivations[state.expanded]
        state.expanded += 1
        for k, part in enumerate(edge.parts):
            following = (*ranks[:k], ranks[k] + 1, *ranks[k + 1 :])
            if len(self._nodes[part].derivations) > following[k]:
                self._push(state, edge, following)

    def _push(self, state: _Derivations, edge: Edge, ranks: tuple[int, ...]) -> None:
        if (edge, ranks) in state.seen:
            return
        state.seen.add((edge, ranks))
        total = edge.score
        for part, rank in zip(edge.parts, ranks, strict=True):
            total += self._score(part) if rank == 0 else self._nodes[part].derivations[rank][0]
        heapq.heappush(state.heap, (-total, edge, ranks))

    def _opened(self, node: Node) -> _Derivations:
        """A node with every way into it as a candidate, each with the best derivations of its parts."""
        state = _Derivations()
        for edge in self._ways_up(node) if node[3] else self._ways_in(node):
            self._push(state, edge, (0,) * len(edge.parts))
        return state

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
        rules = self._grammar.rules
        splits, used = incoming(i, j, symbol, self._chart, rules)
        edges: list[Edge] = []
        for m, r in zip(splits.tolist(), used.tolist(), strict=True):
            _, left, right = rules.symbols[r].tolist()
            edges.append(Edge(((i, m, left, True), (m, j, right, True)), float(rules.scores[r])))
        return edges

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
