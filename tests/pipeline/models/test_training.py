"""Learners from descriptions: names, parameters and rounds, checked before any work."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.learners.errors import LearnerParameterError
from gramline.pipeline.models.training import DEFAULT_LEARNER, dropped_notes, learner_of


@pytest.mark.parametrize(
    ("name", "settings", "notes"),
    [
        ("zscore", {"unlabeled": "drop"}, ["2 of 3 structures have an unlabeled position and are left out"]),
        ("zscore", {}, []),
        (
            "kernel-crf",
            {},
            [
                "1 of 3 structures have no label and are left out",
                "1 of 3 structures lack some of their labels: what each of them may be is summed over",
            ],
        ),
        (
            "structured-svm",
            {},
            [
                "1 of 3 structures have no label and are left out",
                "1 of 3 structures lack some of their labels: each of them ends a chain, and the labeled positions "
                "around it learn",
            ],
        ),
        (
            "labeling-svm",
            {},
            [
                "1 of 3 structures have no label and are left out",
                "1 of 3 structures lack some of their labels: the other positions learn",
            ],
        ),
        ("labeling-perceptron", {}, []),
    ],
)
def test_says_which_structures_are_left_out(name: str, settings: dict[str, Any], notes: list[str]) -> None:
    labels = [["a", "b"], ["a", None], [None]]
    assert dropped_notes(learner_of({"name": name, **settings}), labels) == notes


@pytest.mark.parametrize(
    ("description", "rounds", "name", "params"),
    [
        ({}, None, DEFAULT_LEARNER, {"rounds": 10}),
        ({"average": True}, 3, DEFAULT_LEARNER, {"rounds": 3, "average": True}),
        ({"name": "ranking-perceptron"}, 3, "ranking-perceptron", {"passes": 3}),
        ({"name": "zscore", "ridge": 0.5}, None, "zscore", {"ridge": 0.5}),
    ],
)
def test_a_description_is_a_learner(
    description: dict[str, Any], rounds: int | None, name: str, params: dict[str, Any]
) -> None:
    learner = learner_of(description, rounds)
    assert learner.name == name
    assert params.items() <= learner.get_params().items()


@pytest.mark.parametrize(
    ("description", "rounds", "key"),
    [
        ({"name": "perceptron"}, None, "name"),
        ({"name": "zscore", "c": 1}, None, "c"),
        ({"name": "zscore"}, 3, "rounds"),
        ({}, 0, "rounds"),
    ],
)
def test_what_a_learner_does_not_take_is_refused(description: dict[str, Any], rounds: int | None, key: str) -> None:
    with pytest.raises(LearnerParameterError) as caught:
        learner_of(description, rounds)
    assert caught.value.key == key
