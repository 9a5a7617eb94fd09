from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import metrics as oracle

from gramline.learners.errors import LabelError
from gramline.learners.metrics import Score, evaluate, spans

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", None, "O"], ["B-NEW"]]
GUESS = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "B-ORG", "B-LOC", "O"], ["O"]]


def test_counts_by_hand() -> None:
    """8 positions with a gold label; wrong are I-PER (O), O (B-LOC) and B-NEW (O)."""
    result = evaluate(GOLD, GUESS)
    assert (result.n_structures, result.n_positions, result.n_wrong, result.n_exact) == (3, 8, 3, 0)
    assert result.accuracy == 5 / 8
    assert result.hamming_loss == 3 / 8
    assert result.exact_match == 0.0
    assert result.tokens == Score(gold=5, predicted=4, correct=3)
    assert result.tokens.precision == 3 / 4
    assert result.tokens.recall == 3 / 5
    assert result.tokens.f1 == pytest.approx(2 * (3 / 4) * (3 / 5) / (3 / 4 + 3 / 5))
    # gold: PER 0-2, LOC 3-4, ORG 1-2, NEW 0-1; predicted: PER 0-1, LOC 3-4, LOC 0-1, ORG 1-2
    assert result.spans == Score(gold=4, predicted=4, correct=2)
    assert result.by_span_type["LOC"] == Score(gold=1, predicted=2, correct=1)
    assert result.by_span_type["NEW"] == Score(gold=1, predicted=0, correct=0)
    assert result.by_label["O"] == Score(gold=3, predicted=4, correct=2)
    assert result.by_label["B-LOC"].precision == 1 / 2
    assert result.labels == ("B-LOC", "B-NEW", "B-ORG", "B-PER", "I-PER", "O")
    assert result.confusion[5].tolist() == [1, 0, 0, 0, 0, 2]
    assert result.confusion.sum() == 8


def test_the_dummy_label_is_the_users() -> None:
    every = evaluate([["a", "b"]], [["a", "a"]], dummy=None)
    assert every.tokens == Score(gold=2, predicted=2, correct=1)
    assert every.tokens.f1 == every.accuracy == 0.5
    assert evaluate([["a", "b"]], [["a", "a"]], dummy="a").tokens == Score(gold=1, predicted=0, correct=0)


def test_ratios_over_nothing_are_zero() -> None:
    result = evaluate([["O"]], [["O"]])
    assert (result.tokens.precision, result.tokens.recall, result.tokens.f1) == (0.0, 0.0, 0.0)
    assert (result.spans.f1, result.accuracy, result.exact_match) == (0.0, 1.0, 1.0)


def test_the_dictionary_is_json() -> None:
    told = json.loads(json.dumps(evaluate(GOLD, GUESS).to_dict()))
    assert told["accuracy"] == 0.625
    assert told["tokens"]["recall"] == 0.6
    assert told["by_label"]["O"]["gold"] == 3
    assert told["confusion"][5][0] == 1


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("B-X I-X O", [(0, 2, "X")]),
        ("I-X I-X B-X", [(0, 2, "X"), (2, 3, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),
        ("O I-X O I-X", [(1, 2, "X"), (3, 4, "X")]),
        ("B I B O I", [(0, 2, ""), (2, 3, ""), (4, 5, "")]),
        ("noun noun verb", [(0, 2, "noun"), (2, 3, "verb")]),
        ("O", []),
    ],
)
def test_spans_by_hand(labels: str, expected: list[tuple[int, int, str]]) -> None:
    assert spans(labels.split()) == expected


label_lists = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "B", "I", "z", None]), max_size=8)


@given(label_lists)
def test_spans_are_the_intervals_of_the_definition(labels: list[str | None]) -> None:
    assert set(spans(labels)) == oracle.spans(labels)
    assert spans(labels) == sorted(spans(labels))


@given(st.lists(label_lists, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_micro_counts_follow_the_definition(gold: list[list[str | None]], random: object) -> None:
    gold = [["B-X"], *gold]
    guess = [[random.choice(["O", "B-X", "I-X", "I-Y", "z"]) for _ in structure] for structure in gold]  # type: ignore[attr-defined]
    result = evaluate(gold, guess)
    assert result.spans == Score(*oracle.span_counts(gold, guess))
    flat = [pair for pairs in zip(gold, guess, strict=True) for pair in zip(*pairs, strict=True) if pair[0] is not None]
    assert result.n_wrong == sum(a != b for a, b in flat)
    assert result.tokens == Score(
        sum(a != "O" for a, _ in flat), sum(b != "O" for _, b in flat), sum(a == b != "O" for a, b in flat)
    )


@pytest.mark.parametrize(
    ("gold", "predicted", "sentence"),
    [
        ([["a"]], [["a"], ["b"]], "there are gold labels for 1 structures, but predictions for 2"),
        ([["a"], ["a", "b"]], [["a"], ["b"]], "structure 1: there are 2 gold labels, but 1 predictions"),
        ([["a", "b"]], [["a", None]], "structure 0, position 1: there is a gold label, but no prediction"),
        ([["a"]], [None], "structure 0: there are no predictions"),
        ([[None], None], [["a"], ["b"]], "no position has a gold label; there is nothing to compare"),
    ],
)
def test_refusals_say_what_and_where(gold: Any, predicted: Any, sentence: str) -> None:
    with pytest.raises(LabelError) as error:
        evaluate(gold, predicted)
    assert str(error.value) == sentence
