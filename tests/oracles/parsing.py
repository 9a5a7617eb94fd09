"""All parses of a sentence under a grammar, by trying everything, and the score of parses against gold trees.

Rules are {parent: [(children, probability)]}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Rules = dict[str, list[tuple[tuple[Any, ...], float]]]  # a child is a label, or ("word", w)


def parses(rules: Rules, label: str, sentence: tuple[str, ...], depth: int) -> Iterator[tuple[float, list[Any]]]:
    """(probability, tree) of every tree over `sentence` with root `label` and at most `depth` levels."""
    if depth == 0:
        return
    for children, probability in rules.get(label, []):
        for value, below in _sequences(rules, children, sentence, depth - 1):
            yield probability * value, [label, *below]


def _sequences(
    rules: Rules, children: tuple[Any, ...], sentence: tuple[str, ...], depth: int
) -> Iterator[tuple[float, list[Any]]]:
    if not children:
        if not sentence:
            yield 1.0, []
        return
    first, rest = children[0], children[1:]
    if isinstance(first, tuple):
        if sentence and sentence[0] == first[1]:
            for value, below in _sequences(rules, rest, sentence[1:], depth):
                yield value, [first[1], *below]
        return
    for cut in range(1, len(sentence) - len(rest) + 1):
        for left_value, left in parses(rules, first, sentence[:cut], depth):
            for value, below in _sequences(rules, rest, sentence[cut:], depth):
                yield left_value * value, [left, *below]


def spans(node: Any, first: int, is_root: bool = True) -> tuple[int, list[tuple[str, int, int]]]:
    """(words below a node, its constituents from word `first` on: all nodes but the root and tags of one word)."""
    if isinstance(node, str):
        return 1, []
    length, below = 0, []
    for child in node[1:]:
        more, inner = spans(child, first + length, False)
        length += more
        below += inner
    is_tag = len(node) == 2 and isinstance(node[1], str)
    return length, below if is_root or is_tag else [*below, (node[0], first, first + length)]


def parse_score(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Mean of precision and recall over (proposed or None, gold) trees, weighted by gold constituents."""
    total = weights = 0.0
    for proposed, gold in pairs:
        right = spans(gold, 0)[1]
        guess = [] if proposed is None else spans(proposed, 0)[1]
        common = sum(min(guess.count(span), right.count(span)) for span in set(right))
        precision = common / len(guess) if guess else 0.0
        recall = common / len(right) if right else 0.0
        total += len(right) * (precision + recall) / 2
        weights += len(right)
    return total / weights
