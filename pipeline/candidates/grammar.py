"""A probabilistic context-free grammar read off a treebank, in the binary form that a chart parser needs.

Trees are nested lists: ["S", ["NP", "they"], ["VP", ...]]; a word is a string, a node a list. Rules with more than
two children are cut into binary ones through intermediate symbols. With `horizontal=None` an intermediate symbol is the
exact rest of the rule, so probabilities are those of the unbinarized grammar; with `horizontal=h` it remembers the
parent and the last h children only, which lets the grammar build rules it never saw.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.candidates.lexicon import Lexicon
from gramline.pipeline.errors import InputError

Tree = list[Any]

INTERMEDIATE = "\x00"  # first character of symbols that are not in the treebank; never part of a label
WORD = "\x01"  # first character of the stand-in tag of a word that has sisters


def nodes(tree: Tree) -> Iterator[Tree]:
    """All nodes, parents before children, left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in reversed(node[1:]) if not isinstance(child, str))


def is_preterminal(node: Tree) -> bool:
    return len(node) == 2 and isinstance(node[1], str)


def words(tree: Tree) -> list[str]:
    """The sentence of a tree."""
    found: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        else:
            waiting.extend(reversed(item[1:]))
    return found


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
        for tag, count in tags.items():
            totals[tag] += count
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
    def left_starts(self) -> NDArray[np.int64]:
        """Rules with left child B are left_starts[B]:left_starts[B + 1]."""
        return np.searchsorted(self.binary[:, 1], np.arange(len(self.symbols) + 1))

    @cached_property
    def by_parent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(order, starts): rules with parent A are order[starts[A]:starts[A + 1]]."""
        order = np.argsort(self.binary[:, 0], kind="stable")
        return order, np.searchsorted(self.binary[order, 0], np.arange(len(self.symbols) + 1))

    def unary_parents(self) -> dict[int, list[tuple[int, float]]]:
        """child -> [(parent, log probability)]."""
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (parent, child), score in zip(self.unary.tolist(), self.unary_scores.tolist(), strict=True):
            found[child].append((parent, score))
        return found


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
