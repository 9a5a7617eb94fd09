"""P(word | tag) from a treebank, with rare and unknown words judged by how they are spelled."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


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
        tags: Counter[str] = Counter()
        words: Counter[str] = Counter()
        for (tag, word), count in pairs.items():
            tags[tag] += count
            words[word] += count
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
