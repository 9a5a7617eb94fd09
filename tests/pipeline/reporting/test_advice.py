"""Advice: every rule at the number that makes it speak, and silent beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gramline.learners.metrics import Score
from gramline.pipeline.reporting.advice import Facts, Rival, advice, verdict

CALM = Facts("accuracy", "labeling-perceptron", strongest=Rival("CRF", 0.02, 0.001))


def titles(facts: Facts) -> list[str]:
    return [one.title for one in advice(facts)]


def test_calm_numbers_say_that_nothing_stands_out() -> None:
    assert titles(CALM) == ["Nothing stands out"]


@pytest.mark.parametrize(
    ("rival", "title"),
    [
        (Rival("CRF", 0.001, 0.4), "Close to the CRF"),
        (Rival("CRF", 0.0, None), "Close to the CRF"),
        (Rival("CRF", -0.02, 0.001), "Behind the CRF"),
        (Rival("majority label (O)", -0.1, 0.001), "Nothing was learned"),
        (Rival("CRF", 0.02, None), "Nothing stands out"),  # one fold: there is no test to ask
    ],
)
def test_the_strongest_baseline(rival: Rival, title: str) -> None:
    assert titles(replace(CALM, strongest=rival)) == [title]


@pytest.mark.parametrize(
    ("kernel", "observation", "said"),
    [
        ("", "", "try trees, a larger reach or the observation kernel polynomial of degree 2."),
        ("position", "polynomial", "try trees or the kernel sequence-labeling, which sees neighbours."),
        ("tree-labeling", "gaussian", "try a larger reach."),
    ],
)
def test_what_was_tried_is_not_advised(kernel: str, observation: str, said: str) -> None:
    (one,) = advice(replace(CALM, strongest=Rival("CRF", 0.0, None), kernel=kernel, observation=observation))
    assert one.text.endswith(said)


@pytest.mark.parametrize(
    ("training", "held_out", "title"),
    [
        ([0.3, 0.2, 0.12], 0.2, "Training stopped early"),
        ([0.3], 0.3, "Training stopped early"),
        ([0.3, 0.201, 0.2], 0.25, "Underfit"),
        ([0.3, 0.05, 0.05], 0.06, "Nothing stands out"),
        ([0.3, 0.01, 0.001], 0.1, "The training part is learned by heart"),
        ([0.3, 0.02, 0.019], 0.03, "Nothing stands out"),
    ],
)
def test_training_error(training: list[float], held_out: float, title: str) -> None:
    assert titles(replace(CALM, training=training, held_out_error=held_out)) == [title]


def test_more_rounds_are_twice_as_many() -> None:
    assert "`rounds = 6`" in advice(replace(CALM, training=[0.3, 0.2, 0.12]))[0].text


@pytest.mark.parametrize(("share", "is_unused"), [(0.0099, True), (0.0101, False), (None, False)])
def test_context(share: float | None, is_unused: bool) -> None:
    assert (titles(replace(CALM, context_share=share)) == ["Context is not used"]) == is_unused


def test_rare_labels_are_those_that_are_missed() -> None:
    labels = {"A": Score(19, 9, 9), "B": Score(19, 15, 15), "C": Score(20, 0, 0), "D": Score(0, 3, 0)}
    (one,) = advice(replace(CALM, by_label=labels))
    assert one.title == "Rare labels"
    assert "A (19, recall 0.47)." in one.text


def test_duplicates_across_folds() -> None:
    (one,) = advice(replace(CALM, n_duplicates=3, n_structures=1200))
    assert "3 of 1,200 structures" in one.text
    assert "`--group duplicates`" in one.text


def test_the_verdict_names_the_difference_and_how_sure_it_is() -> None:
    assert verdict(None, "F1") == "There is no baseline to compare with."
    assert verdict(Rival("CRF", 0.02, 0.0001), "F1").endswith("by 0.0200 in F1 (p\u00a0<\u00a00.001).")
    assert "may be chance (p\u00a0=\u00a00.400)" in verdict(Rival("CRF", 0.02, 0.4), "F1")
    assert verdict(Rival("CRF", -0.02, 0.01), "F1").startswith("Behind the strongest baseline, the CRF, by 0.0200")
