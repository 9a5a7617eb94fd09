"""A corpus of its own: sales-log sentences from a small grammar, in four shapes of the same sentence.

Every clause says that a customer uses, wishes or rejects something; products, vendors, numbers and reasons are labeled
with that state, which only a verb group far away tells. Sentence i of a seed is the same whatever the corpus size.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from functools import cache
from sys import intern
from typing import Any

from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.columns import children_column, edges_column
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.parses import Tree
from gramline.pipeline.corpus.readers.columns import ColumnTable
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.corpus.saleslog_grammar import (
    FIRST_SYLLABLES,
    OUTSIDE,
    RULES,
    SLOTS,
    STATES,
    SYLLABLES,
    VERB_GROUPS,
    WORDS,
)
from gramline.pipeline.errors import CorpusError

SALESLOG_LABELS = (OUTSIDE, *(f"{slot}.{state}" for slot in SLOTS.values() for state in STATES))
SALESLOG_KINDS = ("sequences", "trees", "dags", "parses")
_LONG_NAME_RATE = 0.15  # how often a brand or company gets a third syllable, which makes it rare


@dataclass
class Phrase:
    """A node of a derivation; a word is a phrase without children, its symbol its part of speech."""

    symbol: str
    state: str
    slot: str
    children: list[Phrase] = field(default_factory=list)
    head: int = 0  # which child is the head
    word: str = ""
    position: int = -1  # of a word in the sentence; of a phrase: of its head word


@dataclass(frozen=True)
class Derivation:
    """A sentence of the grammar in all its shapes."""

    words: list[str]
    tags: list[str]
    labels: list[str]
    heads: list[int]  # the word each word depends on, -1 for the root
    parse: Tree

    @property
    def children(self) -> list[list[int]]:
        """Dependents of every word in sentence order."""
        children: list[list[int]] = [[] for _ in self.words]
        for word, head in enumerate(self.heads):
            if head >= 0:
                children[head].append(word)
        return children

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Each word to the next, and each dependency from the earlier word to the later one: never a cycle."""
        following = [(word, word + 1) for word in range(len(self.words) - 1)]
        return following + [(min(word, head), max(word, head)) for word, head in enumerate(self.heads) if head >= 0]


@dataclass(frozen=True)
class RightSide:
    """What a symbol is rewritten to, and which part is the head."""

    weight: float
    symbols: tuple[str, ...]
    head: int


def generate_saleslog(
    n: int, seed: int = 0, kind: str = "sequences", *, features: str = "token", window: int | None = None
) -> Corpus:
    """Sentences of the sales log; sentence i of a seed is the same whatever n is.

    Parameters
    ----------
    n : number of sentences.
    seed : which sentences.
    kind : "sequences", "trees" (dependencies), "dags" (word graphs) or "parses".
    features, window : as for `read_conll`, over word and part of speech ("token": the word alone).

    >>> generate_saleslog(2, seed=1)
    Corpus(2 sequences, 67 positions, 13 labels)
    """
    if kind not in SALESLOG_KINDS:
        raise CorpusError(f"the sales log comes as {', '.join(SALESLOG_KINDS)}, not as {kind!r}")
    if n < 1:
        raise CorpusError(f"the sales log needs at least one sentence, got {n}")
    sentences = (derive(seed, index) for index in range(n))
    if kind == "parses":
        return Corpus.from_parses(sentence.parse for sentence in sentences)
    words, tags = list[str](), list[str]()
    labels, links = list[list[str]](), list[Any]()
    for sentence in sentences:  # one at a time: of a derivation little is kept, and equal strings once
        words.extend(map(intern, sentence.words))
        tags.extend(sentence.tags)
        labels.append(list(map(intern, sentence.labels)))
        if kind != "sequences":
            links.append(sentence.children if kind == "trees" else sentence.edges)
    starts = offsets_from_lengths([len(row) for row in labels])
    columns = observe(ColumnTable(starts, (words, tags)), features, window)
    if links:
        columns["links"] = (children_column if kind == "trees" else edges_column)(links, starts)
    corpus = Corpus.assembled(kind, starts, columns, labels, labels=SALESLOG_LABELS)
    return corpus.described(Recipe.of(LISTS, kind, features, window, 1 if features == "token" else 2))


def derive(seed: int, index: int) -> Derivation:
    """Sentence `index` of a seed, derived from the grammar."""
    draw = random.Random(f"saleslog {seed} {index}").random  # text seeds and random() are the same in every version
    root = Phrase("ROOT", OUTSIDE, "")
    made = [root]
    waiting = [root]
    words: list[Phrase] = []
    while waiting:  # left to right, so that words come in order
        phrase = waiting.pop()
        _expand(phrase, draw)
        if phrase.children:
            made.extend(phrase.children)
            waiting.extend(reversed(phrase.children))
        else:
            phrase.position = len(words)
            words.append(phrase)
    return Derivation(
        words=[word.word for word in words],
        tags=[word.symbol for word in words],
        labels=[f"{word.slot}.{word.state}" if word.slot else OUTSIDE for word in words],
        heads=_heads(made, len(words)),
        parse=_parse(root),
    )


def _expand(phrase: Phrase, draw: Any) -> None:
    """Give a phrase its children, or a part of speech its word."""
    symbol = phrase.symbol
    if phrase.word:
        return
    if symbol == "CLAUSE":
        phrase.state = STATES[int(draw() * len(STATES))]
    if symbol == "VG":
        chosen = _pick(_verb_groups()[phrase.state], draw)
        last = len(chosen) - 1
        phrase.children = [
            Phrase("VERB" if k == last else "AUX", phrase.state, "", word=word) for k, word in enumerate(chosen)
        ]
        phrase.head = last
    elif symbol in _rules():
        sides = _rules()[symbol]
        side = _weighted(sides, draw)
        slot = SLOTS.get(symbol, phrase.slot)
        phrase.children = [Phrase(part, phrase.state, slot) for part in side.symbols]
        phrase.head = side.head
    elif symbol in FIRST_SYLLABLES:
        phrase.symbol = "NAME"
        phrase.word = _pick(FIRST_SYLLABLES[symbol], draw) + _pick(SYLLABLES, draw)
        if draw() < _LONG_NAME_RATE:
            phrase.word += _pick(SYLLABLES, draw)
    else:
        phrase.symbol, words = _words()[symbol]
        phrase.word = _pick(words, draw)


def _heads(made: list[Phrase], n_words: int) -> list[int]:
    """Dependencies by head percolation: a phrase's head word governs the head words of its other children."""
    heads = [-1] * n_words
    for phrase in reversed(made):  # children were made after their parents
        if phrase.children:
            phrase.position = phrase.children[phrase.head].position
    for phrase in made:
        for child in phrase.children:
            if child.position != phrase.position:
                heads[child.position] = phrase.position
    return heads


def _parse(root: Phrase) -> Tree:
    tree: Tree = []
    waiting: list[tuple[Phrase, Tree]] = [(root, tree)]
    while waiting:
        phrase, node = waiting.pop()
        node.append(phrase.symbol)
        if not phrase.children:
            node.append(phrase.word)
        for child in phrase.children:
            node.append([])
            waiting.append((child, node[-1]))
    return tree


def _pick(choices: tuple[Any, ...], draw: Any) -> Any:
    """The first choices more often than the last: the square of a uniform number spreads words like a text does."""
    return choices[int(draw() ** 2 * len(choices))]


def _weighted(sides: list[RightSide], draw: Any) -> RightSide:
    left = draw() * sum(side.weight for side in sides)
    for side in sides:
        left -= side.weight
        if left < 0:
            return side
    return sides[-1]


@cache
def _rules() -> dict[str, list[RightSide]]:
    rules: dict[str, list[RightSide]] = {}
    for line in RULES.strip().splitlines():
        symbol, colon, sides = line.partition(":")
        if colon:
            rules.setdefault(symbol, []).extend(_right_side(side) for side in sides.split("|"))
    return rules


def _right_side(text: str) -> RightSide:
    parts = text.split()
    weight = 1.0
    if re.fullmatch(r"\d+x", parts[0]):
        weight = float(parts.pop(0)[:-1])
    head = next(k for k, part in enumerate(parts) if part.endswith("*"))
    return RightSide(weight, tuple(part.rstrip("*") for part in parts), head)


@cache
def _words() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Part of speech and words of every word class."""
    split = {symbol: line.split() for symbol, line in WORDS.items()}
    return {symbol: (tag, tuple(words)) for symbol, (tag, *words) in split.items()}


@cache
def _verb_groups() -> dict[str, tuple[tuple[str, ...], ...]]:
    return {state: tuple(tuple(group.split()) for group in groups.split("|")) for state, groups in VERB_GROUPS.items()}
