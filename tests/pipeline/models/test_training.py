"""Learners from descriptions: names, parameters and rounds, checked before any work."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.learners.errors import LearnerParameterError
from gramline.pipeline.models.training import DEFAULT_LEARNER, learner_of


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
