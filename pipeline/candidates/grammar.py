"""A probabilistic context-free grammar read off a treebank, in the binary form that a chart parser needs.

Trees are nested lists: ["S", ["NP", "they"], ["VP", ...]]; a word is a string, a node a list. Rules with more than
two children are cut into binary ones through intermediate symbols. With `horizontal=None` an intermediate symbol is the
exact rest of the rule, so probabilities are those of the unbinarized grammar; with `horizontal=h` it remembers the
parent and the last h children only, which lets the grammar build rules it never saw.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.candidates.chart_loops import BestChains, Rules
from gramline.pipeline.corpus.parses import Tree, is_preterminal, nodes
from gramline.pipeline.errors import InputError

INTERMEDIATE = "\x00"  # first character of symbols that are not in the treebank; never part of a label
WORD = "\x01"  # first character of the stand-in tag of a word that has sisters


def signatures(word: str) -> tuple[str, ...]:
    """Spelling classes of a word, finest first; the last one holds every word."""
    shape = ""
    if word[:1].isupper():
        shape += "C"
    if any(character.isdigit() for character in word):
        shape += "D"
    if "-" in word:
        shape += "H"
    coarse = f"unknown/{shape}"
    return (f"{coarse}/{word[-3:].lower()}", f"{coarse}/{word[-1:].lower()}", coarse, "unknown")


@dataclass(frozen=True)
class Lexicon:
    """log P(word | tag) = log count(tag, word) / count(tag); rare words count as their spelling."""

    known: dict[str, dict[str, float]]  # word -> tag -> log probability
    spelled: dict[str, dict[str, float]]  # signature -> tag -> log probability

    @classmethod
    def of(cls, tagged: Iterable[tuple[str, str]], rare: int = 1) -> Lexicon:
        """From (tag, word) occurrences."""
        pairs = Counter(tagged)
        tags = Counter(tag for tag, _ in pairs.elements())
        words = Counter(word for _, word in pairs.elements())
        known: dict[str, dict[str, float]] = defaultdict(dict)
        classes: Counter[tuple[str, str]] = Counter()
        for (tag, word), count in pairs.items():
            if words[word] > rare:
                known[word][tag] = math.log(count / tags[tag])
            else:
                classes.update({(tag, signature): count for signature in signatures(word)})
        spelled: dict[str, dict[str, float]] = defaultdict(dict)
        for (tag, signature), count in classes.items():
            spelled[signature][tag] = math.log(count / tags[tag])
        if not spelled:  # every word was seen often: any tag may take an unknown word, once in its count
            spelled["unknown"] = {tag: -math.log(count + 1) for tag, count in tags.items()}
        return cls(dict(known), dict(spelled))

    def tags(self, word: str) -> dict[str, float]:
        """Possible tags of a word with their log probabilities; never empty."""
        if word in self.known:
            return self.known[word]
        return next(self.spelled[signature] for signature in signatures(word) if signature in self.spelled)


@dataclass(frozen=True, eq=False)
class Grammar:
    """Binary rules A -> B C and unary rules A -> B over symbols 0..n-1, with log probabilities."""

    symbols: tuple[str, ...]
    roots: dict[int, float]  # symbol -> log P(tree starts here)
    binary: NDArray[np.int64]  # shape (n_rules, 3): parent, left, right; sorted by left
    binary_scores: NDArray[np.float64]  # shape (n_rules,)
    unary: NDArray[np.int64]  # shape (n_rules, 2): parent, child
    unary_scores: NDArray[np.float64]  # shape (n_rules,)
    lexicon: Lexicon

    @cached_property
    def codes(self) -> dict[str, int]:
        return {symbol: code for code, symbol in enumerate(self.symbols)}

    @classmethod
    def of(cls, trees: Iterable[Tree], *, horizontal: int | None = None, rare: int = 1) -> Grammar:
        """Relative frequencies of the rules of `trees`; words seen at most `rare` times count as their spelling."""
        if horizontal is not None and horizontal < 0:
            raise InputError(f"horizontal must be 0 or more, or None for exact rules, got {horizontal}")
        rules: Counter[tuple[str, ...]] = Counter()
        tagged: list[tuple[str, str]] = []
        roots: Counter[str] = Counter()
        for tree in trees:
            roots[tree[0]] += 1
            for node in nodes(tree):
                if is_preterminal(node):
                    tagged.append((node[0], node[1]))
                elif len(node) > 1:
                    tagged.extend((WORD + child, child) for child in node[1:] if isinstance(child, str))
                    children = [WORD + child if isinstance(child, str) else child[0] for child in node[1:]]
                    rules.update(_binary_rules(node[0], children, horizontal))
        if not roots:
            raise InputError("a grammar needs at least one tree, but the treebank is empty")
        return cls._normalized(rules, tagged, roots, rare)

    @classmethod
    def _normalized(
        cls, rules: Counter[tuple[str, ...]], tagged: list[tuple[str, str]], roots: Counter[str], rare: int
    ) -> Grammar:
        totals: Counter[str] = Counter()  # every use of a symbol, as a rule's parent or as a tag
        for (parent, *_), count in rules.items():
            totals[parent] += count
        tags = Counter(tag for tag, _ in tagged)
        totals.update(tags)
        codes = {symbol: code for code, symbol in enumerate(sorted(totals.keys() | roots.keys()))}
        scored = sorted(
            ([codes[symbol] for symbol in rule], math.log(count / totals[rule[0]])) for rule, count in rules.items()
        )
        binary = sorted(((r, s) for r, s in scored if len(r) == 3), key=lambda item: (item[0][1], item[0]))
        unary = [(r, s) for r, s in scored if len(r) == 2]
        n_roots = sum(roots.values())
        lexicon = Lexicon.of(tagged, rare)
        # a tag that is also the parent of rules gives words only its share of the probability
        shares = {tag: math.log(count / totals[tag]) for tag, count in tags.items()}
        return cls(
            tuple(codes),
            {codes[symbol]: math.log(count / n_roots) for symbol, count in roots.items()},
            np.array([r for r, _ in binary], np.int64).reshape(-1, 3),
            np.array([s for _, s in binary], np.float64),
            np.array([r for r, _ in unary], np.int64).reshape(-1, 2),
            np.array([s for _, s in unary], np.float64),
            Lexicon(_shared(lexicon.known, shares), _shared(lexicon.spelled, shares)),
        )

    @cached_property
    def rules(self) -> Rules:
        """The binary rules as the loops read them."""
        symbols = np.arange(len(self.symbols) + 1)
        by_parent = np.argsort(self.binary[:, 0], kind="stable")
        left_starts = np.searchsorted(self.binary[:, 1], symbols)
        parent_starts = np.searchsorted(self.binary[by_parent, 0], symbols)
        return Rules(self.binary, self.binary_scores, left_starts, by_parent, parent_starts)


@dataclass(frozen=True)
class UnaryChains:
    """chains[A][B] = [(log probability, symbols below A down to B)], best first; the empty chain is A itself.

    A chain may visit a symbol twice: such trees have a probability like any other. The k best chains to A use only
    the k best chains to the symbol before, so a best-first walk that leaves each pair after k visits is exact.
    """

    chains: dict[int, dict[int, list[tuple[float, tuple[int, ...]]]]]

    @classmethod
    def of(cls, grammar: Grammar, k: int) -> UnaryChains:
        """The k best chains of every pair of symbols."""
        parents: dict[int, list[tuple[int, float]]] = defaultdict(list)  # child -> (parent, log probability)
        for (parent, child), score in zip(grammar.unary.tolist(), grammar.unary_scores.tolist(), strict=True):
            parents[child].append((parent, score))
        chains: dict[int, dict[int, list[tuple[float, tuple[int, ...]]]]] = {}
        for bottom in parents:
            heap: list[tuple[float, tuple[int, ...]]] = [(0.0, (bottom,))]
            while heap:
                cost, path = heapq.heappop(heap)
                best = chains.setdefault(path[0], {}).setdefault(bottom, [])
                if len(best) == k:
                    continue
                best.append((-cost, path[1:]))
                for parent, score in parents.get(path[0], ()):
                    heapq.heappush(heap, (cost - score, (parent, *path)))
        return cls(chains)

    @cached_property
    def best(self) -> BestChains:
        """The best chain of every pair."""
        rows = [(a, b, chains[0][0]) for a, below in self.chains.items() for b, chains in below.items()]
        return BestChains(
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.float64),
        )


def _shared(table: dict[str, dict[str, float]], shares: dict[str, float]) -> dict[str, dict[str, float]]:
    return {key: {tag: score + shares[tag] for tag, score in row.items()} for key, row in table.items()}


def _binary_rules(parent: str, children: list[str], horizontal: int | None) -> Iterator[tuple[str, ...]]:
    """The rule cut from left to right; intermediate symbols are always right children."""
    left = parent
    for k in range(len(children) - 2):
        if horizontal is None:
            rest = INTERMEDIATE + INTERMEDIATE.join(children[k + 1 :])
        else:
            remembered = children[max(0, k + 1 - horizontal) : k + 1]
            rest = INTERMEDIATE + parent + INTERMEDIATE * 2 + INTERMEDIATE.join(remembered)
        yield left, children[k], rest
        left = rest
    yield (left, *children[-2:])
