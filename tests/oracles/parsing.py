"""All parses of a sentence under a grammar, by trying everything: rules as {parent: [(children, probability)]}."""

from __future__ import annotations

from collections.abc import Iterator
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
