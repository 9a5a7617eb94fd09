"""n-best parsing of a sentence with a clear outcome, whatever happens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from time import monotonic

import numpy as np

from gramline.pipeline.candidates.chart_loops import Chart, fill_width
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.candidates.kbest import LazyDerivations, OutOfTimeError, UnaryChains
from gramline.pipeline.corpus.parses import Tree
from gramline.pipeline.errors import InputError


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
