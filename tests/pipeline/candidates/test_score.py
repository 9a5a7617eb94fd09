"""Parse scores computed by hand."""

import pytest

from gramline.pipeline.candidates.score import constituents, counts, parse_score, sentence_score

GOLD = ["TOP", ["S", ["NP", ["D", "the"], ["N", "dog"]], ["VP", ["V", "saw"], ["NP", ["N", "it"]]]]]
FLAT = ["TOP", ["S", ["NP", ["D", "the"], ["N", "dog"]], ["V", "saw"], ["NP", ["N", "it"]]]]


def test_constituents_leave_out_the_root_and_the_tags() -> None:
    assert sorted(constituents(GOLD)) == [("NP", 0, 2), ("NP", 3, 4), ("S", 0, 4), ("VP", 2, 4)]


def test_a_repeated_constituent_counts_as_often_as_it_occurs() -> None:
    assert constituents(["TOP", ["NP", ["NP", ["N", "it"]]]])["NP", 0, 1] == 2


def test_counts_and_scores_by_hand() -> None:
    assert counts(FLAT, GOLD) == (3, 3, 4)
    assert sentence_score(FLAT, GOLD) == pytest.approx((1 + 3 / 4) / 2)
    assert sentence_score(GOLD, GOLD) == 1
    assert sentence_score(None, GOLD) == 0


def test_sentences_are_weighted_by_their_gold_constituents() -> None:
    small = ["TOP", ["NP", ["N", "it"]]]
    assert parse_score([(None, GOLD), (small, small)]) == pytest.approx(1 / 5)
