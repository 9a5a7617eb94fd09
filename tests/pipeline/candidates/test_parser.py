"""The parser against enumeration of all parses."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from time import sleep
from typing import Any

import pytest
from oracles.parsing import Rules, parses

from gramline.pipeline.candidates import parser
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.candidates.parser import Parsed, Parser
from gramline.pipeline.corpus.parses import nodes, words
from gramline.pipeline.errors import InputError

TREEBANK: list[Any] = [
    ["S", ["NP", ["N", "time"]], ["VP", ["V", "flies"], ["PP", ["P", "like"], ["NP", ["D", "an"], ["N", "arrow"]]]]],
    ["S", ["NP", ["N", "time"], ["N", "flies"]], ["VP", ["V", "like"], ["NP", ["D", "an"], ["N", "arrow"]]]],
    ["S", ["NP", ["N", "fruit"], ["N", "flies"], ["N", "time"]], ["VP", ["V", "like"], ["NP", ["N", "fruit"]]]],
    ["S", ["VP", ["V", "time"], ["NP", ["N", "flies"]], ["PP", ["P", "like"], ["NP", ["N", "fruit"]]]]],
    ["S", ["NP", ["NP", ["N", "arrow"]], ["PP", ["P", "like"], ["NP", ["N", "fruit"]]]], ["VP", ["V", "flies"]]],
    ["S", ["NP", ["S", ["VP", ["V", "time"], ["NP", ["N", "fruit"]]]]], ["VP", ["V", "flies"]]],
    ["S", ["VP", ["V", "like"], "and", ["V", "time"], ["NP", ["D", "an"], ["N", "arrow"]]]],
]


def relative_frequencies(trees: list[Any]) -> Rules:
    uses: Counter[tuple[str, tuple[Any, ...]]] = Counter()
    for tree in trees:
        for node in nodes(tree):
            uses[node[0], tuple(("word", c) if isinstance(c, str) else c[0] for c in node[1:])] += 1
    totals: Counter[str] = Counter()
    for (label, _), count in uses.items():
        totals[label] += count
    rules: Rules = defaultdict(list)
    for (label, children), count in uses.items():
        rules[label].append((children, count / totals[label]))
    return rules


@pytest.mark.parametrize(
    "sentence", ["time flies like an arrow", "fruit flies like time flies", "like and time fruit", "time fruit flies"]
)
def test_n_best_parses_are_those_of_enumeration(sentence: str) -> None:
    # unary chains S -> VP, NP -> S, NP -> NP-free cycles make some trees arbitrarily deep; 12 levels hold the best 12
    expected = sorted((-p for p, _ in parses(relative_frequencies(TREEBANK), "S", tuple(sentence.split()), 12)))
    outcome = Parser(Grammar.of(TREEBANK, rare=0), 12).parse(sentence.split())
    assert outcome.status is Parsed.DONE
    assert len(outcome.trees) == min(12, len(expected))
    for score, probability in zip(outcome.scores, expected, strict=False):
        assert score == pytest.approx(math.log(-probability), abs=1e-9)


def test_each_tree_has_the_score_it_was_given() -> None:
    rules = relative_frequencies(TREEBANK)
    outcome = Parser(Grammar.of(TREEBANK, rare=0), 12).parse(["time", "flies", "like", "an", "arrow"])
    for tree, score in zip(outcome.trees, outcome.scores, strict=True):
        assert words(tree) == ["time", "flies", "like", "an", "arrow"]
        total = 0.0
        for node in nodes(tree):
            children = tuple(("word", c) if isinstance(c, str) else c[0] for c in node[1:])
            total += math.log(dict(rules[node[0]])[children])
        assert total == pytest.approx(score, abs=1e-9)
    assert len({repr(tree) for tree in outcome.trees}) == len(outcome.trees)


def test_a_unary_cycle_is_enumerated_in_order_of_probability() -> None:
    trees = [["A", ["A", ["A", ["T", "x"]]]], ["A", ["T", "x"]]]
    outcome = Parser(Grammar.of(trees, rare=0), 5).parse(["x"])
    step, stop = math.log(0.5), math.log(0.5)  # A -> A and A -> T, each 2 of 4
    assert outcome.scores == pytest.approx([stop + depth * step for depth in range(5)])
    assert outcome.trees[2] == ["A", ["A", ["A", ["T", "x"]]]]


@pytest.mark.parametrize("horizontal", [0, 1, 2])
def test_markov_grammars_build_rules_they_never_saw(horizontal: int) -> None:
    trees = [["S", ["A", "a"], ["B", "b"], ["C", "c"]], ["S", ["A", "a"], *[["B", "b"]] * 3, ["C", "c"]]]
    long = ["a", "b", "b", "b", "b", "c"]
    assert Parser(Grammar.of(trees, rare=0)).parse(long).status is Parsed.NO_PARSE
    outcome = Parser(Grammar.of(trees, horizontal=horizontal, rare=0)).parse(long)
    if horizontal < 2:
        assert outcome.trees[0] == ["S", ["A", "a"], *[["B", "b"]] * 4, ["C", "c"]]
    else:  # after two children B the treebank always ends the rule
        assert outcome.status is Parsed.NO_PARSE


def test_unknown_words_take_the_tags_of_words_spelled_alike() -> None:
    trees = [
        ["S", ["N", "Dogs"], ["V", "bark"]],
        ["S", ["N", "Dogs"], ["V", "walked"]],
        ["S", ["N", "Mice"], ["V", "talked"]],
    ]
    outcome = Parser(Grammar.of(trees, rare=1)).parse(["Cats", "baked"])
    assert outcome.trees[0] == ["S", ["N", "Cats"], ["V", "baked"]]


def test_the_time_bound_is_an_outcome_and_not_an_error() -> None:
    outcome = Parser(Grammar.of(TREEBANK), 5).parse(["time", "flies", "like", "an", "arrow"], seconds=-1.0)
    assert (outcome.status, outcome.trees) == (Parsed.OUT_OF_TIME, ())


def test_compiling_takes_nothing_off_the_time_of_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, calls = parser.fill_width, []

    def slow_at_first(*arguments: Any) -> None:
        if not calls:
            sleep(1.1)
        calls.append(arguments)
        compiled(*arguments)

    Parser(Grammar.of(TREEBANK), 5).parse(["time", "flies"])  # compiled from here on
    monkeypatch.setattr(parser, "fill_width", slow_at_first)
    found = Parser(Grammar.of(TREEBANK), 5).parse(["time", "flies", "like", "an", "arrow"], seconds=1.0)
    assert found.status is Parsed.DONE


def test_a_long_sentence_needs_no_recursion() -> None:
    trees = [["S", ["A", "a"], ["S", ["A", "a"]]], ["S", ["A", "a"], ["S", ["A", "a"], ["S", ["A", "a"]]]]]
    outcome = Parser(Grammar.of(trees, rare=0), 3).parse(["a"] * 150)
    assert words(outcome.trees[0]) == ["a"] * 150


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grammar.of([]), "the treebank is empty"),
        (lambda: Grammar.of(TREEBANK, horizontal=-1), "horizontal must be 0 or more"),
        (lambda: Parser(Grammar.of(TREEBANK), 0), "at least one parse"),
        (lambda: Parser(Grammar.of(TREEBANK), 1).parse([]), "an empty sentence"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
