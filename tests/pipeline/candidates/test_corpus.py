"""Candidate lists: who parses whom, and what the corpus of candidates carries."""

from __future__ import annotations

from typing import Any

import pytest
from oracles.parsing import parse_score

from gramline.pipeline.candidates.corpus import (
    candidate_corpus,
    candidate_quality,
    constituents,
    outcomes,
    propose,
    propose_held_out,
    sentence_score,
)
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.corpus import constructors
from gramline.pipeline.errors import InputError


def sentence(first: str, second: str) -> list[Any]:
    return ["TOP", ["S", ["NP", ["N", first]], ["VP", ["V", second], ["NP", ["N", first], ["N", second]]]]]


def two_objects(first: str, second: str) -> list[Any]:
    """The words of `sentence`, read another way."""
    return ["TOP", ["S", ["NP", ["N", first]], ["VP", ["V", second], ["NP", ["N", first]], ["NP", ["N", second]]]]]


GOLD = ["TOP", ["S", ["NP", ["D", "the"], ["N", "dog"]], ["VP", ["V", "saw"], ["NP", ["N", "it"]]]]]
FLAT = ["TOP", ["S", ["NP", ["D", "the"], ["N", "dog"]], ["V", "saw"], ["NP", ["N", "it"]]]]
TREES = [sentence("a", "c"), two_objects("a", "d"), sentence("b", "c"), two_objects("b", "d")]


def test_constituents_leave_out_the_root_and_the_tags() -> None:
    assert sorted(constituents(GOLD)) == [("NP", 0, 2), ("NP", 3, 4), ("S", 0, 4), ("VP", 2, 4)]


def test_a_repeated_constituent_counts_as_often_as_it_occurs() -> None:
    assert constituents(["TOP", ["NP", ["NP", ["N", "it"]]]])["NP", 0, 1] == 2


def test_scores_by_hand() -> None:
    assert sentence_score(FLAT, GOLD) == pytest.approx((1 + 3 / 4) / 2)  # 3 of its 3 constituents, of 4 in all
    assert sentence_score(GOLD, GOLD) == 1
    word = ["TOP", ["N", "it"]]
    assert [sentence_score(word, word), sentence_score(GOLD, word), sentence_score(word, GOLD)] == [1, 0, 0]


def test_sentences_are_weighted_by_their_gold_constituents() -> None:
    small = ["TOP", ["NP", ["N", "it"]]]
    lists = propose([GOLD, small], Grammar.of([small]), 1)
    assert [len(candidates.trees) for candidates in lists] == [0, 1]
    quality = candidate_quality(lists, candidate_corpus(lists))
    assert quality.first == quality.oracle == pytest.approx(1 / 5)
    assert parse_score([(None, GOLD), (small, small)]) == pytest.approx(1 / 5)


def test_chosen_candidates_are_scored_with_sentences_that_have_none() -> None:
    odd = ["TOP", ["X", ["Y", "q"], ["Z", "r"], ["Y", "q"]]]
    lists = propose([*TREES, odd], Grammar.of(TREES), 5)
    corpus = candidate_corpus(lists)
    chosen = [len(candidates.trees) - 1 for candidates in lists if candidates.trees]
    trees = [candidates.trees[-1] if candidates.trees else None for candidates in lists]
    expected = parse_score(zip(trees, [*TREES, odd], strict=True))
    assert candidate_quality(lists, corpus, chosen).chosen == pytest.approx(expected)


def test_every_candidate_is_scored_against_its_gold_tree() -> None:
    lists = propose(TREES, Grammar.of(TREES), 5)
    corpus = candidate_corpus(lists)
    assert corpus.kind == "parses"
    assert len(corpus) == sum(len(found.trees) for found in lists) > len(TREES)
    groups = corpus.column("group")
    expected = [sentence_score(tree, TREES[group]) for tree, group in zip(corpus.trees, groups, strict=True)]
    assert corpus.column("score") == expected
    assert max(expected) == 1.0
    assert corpus.column("weight") == [4 if group in (0, 2) else 5 for group in groups]
    assert corpus.ids[:2] == ["0.0", "0.1"]
    assert len(set(corpus.ids)) == len(corpus)
    assert outcomes(lists)["parsed"] == len(TREES)


def test_the_corpus_of_candidates_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(constructors, "check", lambda _flat, kind, _label_names: checked.append(kind))
    candidate_corpus(propose(TREES, Grammar.of(TREES), 5))
    assert checked == ["parses"]


def test_held_out_grammars_never_saw_the_tree_they_parse() -> None:
    odd = ["TOP", ["X", ["Y", "q"], ["Z", "r"], ["Y", "q"]]]
    lists = propose_held_out([odd, *TREES], 3, folds=5)
    assert [found.gold for found in lists] == [odd, *TREES]
    assert all("X" not in str(tree) for tree in lists[0].trees)  # only its own grammar has a symbol X
    assert "X" in str(propose([odd], Grammar.of([odd, *TREES]), 3)[0].trees)


def test_progress_counts_sentences() -> None:
    told: list[int] = []
    propose(TREES, Grammar.of(TREES), 2, progress=told.append)
    assert told == [1, 2, 3, 4]
    told.clear()
    propose_held_out(TREES, 2, folds=3, progress=told.append)
    assert told == [1, 2, 3, 4]


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="2 to 4 folds, not 5"):
        propose_held_out(TREES, folds=5)
    with pytest.raises(InputError, match="no sentence has a parse"):
        candidate_corpus(propose([["TOP", ["X", ["Y", "q"]]]], Grammar.of(TREES), 2))
