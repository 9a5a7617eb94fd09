"""Values of learners are judged without anything to learn from."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.learners.catalogue import LEARNERS, make_learner
from gramline.learners.errors import LearnerParameterError
from gramline.pipeline.crossval.job_checks import check_values

REFUSED = {
    "labeling-perceptron": {"rounds": [0, 2.5, True, "many"], "average": ["no", 1], "early_stop": [None]},
    "hidden-markov-perceptron": {"rounds": [0, "many"], "dual": ["yes"], "unlabeled": ["keep"]},
    "zscore": {
        "ridge": [-1.0, "much"],
        "loss": ["hinge"],
        "moments": ["none"],
        "solver": ["fast"],
        "constraints": ["all"],
        "margin": [0, "wide"],
        "max_rounds": [0, "many"],
    },
    "kernel-zscore": {
        "ridge": [0.0, -1.0, "much", [0.1, "much"]],
        "loss": ["hinge"],
        "width": [0, 1.5, "wide"],
        "tolerance": [0, "low"],
        "max_iterations": [0, "many"],
        "unlabeled": ["keep"],
        "precision": ["half"],
    },
    "gaussian-process": {"missing": [1, 2, -0.1, "half"], "scale": [0, "large"], "offsets": ["nowhere"], "seed": [-1]},
    "ranking-perceptron": {"passes": [0, "many"], "vote": ["yes"]},
}


@pytest.mark.parametrize("name", LEARNERS)
def test_defaults_pass(name: str) -> None:
    learner = make_learner(name)
    check_values(learner)
    assert learner.fitted() == {}


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [(name, key, value) for name in LEARNERS for key, values in REFUSED[name].items() for value in values],
)
def test_values_that_no_training_could_use(name: str, key: str, value: Any) -> None:
    with pytest.raises(LearnerParameterError, match=key):
        check_values(make_learner(name, {key: value}))


def test_the_dual_form_is_judged_alike() -> None:
    check_values(make_learner("hidden-markov-perceptron", {"dual": True}))
    with pytest.raises(LearnerParameterError, match="rounds must be"):
        check_values(make_learner("hidden-markov-perceptron", {"dual": True, "rounds": 0}))
