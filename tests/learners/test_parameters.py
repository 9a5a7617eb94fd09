"""Whole numbers and flags among the parameters: one check, the same for every learner that has such a parameter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gramline.learners import (
    DenseGram,
    GaussianProcessLabeler,
    HiddenMarkovPerceptron,
    KernelZScoreLabeler,
    LabelingPerceptron,
    RankingPerceptron,
)
from gramline.learners.errors import LabelError, LearnerParameterError
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline import Corpus

GRAM = DenseGram(np.eye(4) + 0.5, [2, 2], label_names=("A", "B"))
LABELS = [["A", "B"], ["B", "A"]]
COUNTS: list[tuple[type[Learner], str, dict[str, Any]]] = [
    (LabelingPerceptron, "rounds", {}),
    (HiddenMarkovPerceptron, "rounds", {}),
    (HiddenMarkovPerceptron, "rounds", {"dual": True}),
    (RankingPerceptron, "passes", {}),
    (KernelZScoreLabeler, "width", {}),
    (KernelZScoreLabeler, "max_iterations", {}),
    (GaussianProcessLabeler, "max_sweeps", {}),
    (GaussianProcessLabeler, "max_refinements", {}),
    (GaussianProcessLabeler, "rank", {"approximation": "nystrom"}),
]
FLAGS: list[tuple[type[Learner], str]] = [
    (LabelingPerceptron, "average"),
    (LabelingPerceptron, "early_stop"),
    (HiddenMarkovPerceptron, "average"),
    (HiddenMarkovPerceptron, "dual"),
    (RankingPerceptron, "vote"),
    (RankingPerceptron, "average"),
]


def fitted(learner: Any) -> Learner:
    if learner.reads_corpus:
        return learner.fit(Corpus.from_sequences([["a", "b"], ["b", "a"]], LABELS))
    return learner.fit(GRAM, [2, 2] if isinstance(learner, RankingLearner) else LABELS)


every_count = pytest.mark.parametrize(("kind", "name", "more"), COUNTS)


@every_count
@pytest.mark.parametrize("value", [0, -1, 2.0, np.float64(2), True, np.True_, "2", None, [2]])
def test_anything_else_is_refused_in_one_sentence(
    kind: type[Learner], name: str, more: dict[str, Any], value: Any
) -> None:
    said = f"^{name} must be a whole number of at least 1, got {re.escape(repr(value))}$"
    with pytest.raises(LearnerParameterError, match=said):
        fitted(kind(**{name: value}, **more))


@every_count
@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(200)])
def test_integers_of_python_and_numpy_are_taken(
    kind: type[Learner], name: str, more: dict[str, Any], value: Any
) -> None:
    """Also small ones, whose products would overflow."""
    state, _ = fitted(kind(**{name: value}, **more)).to_state()
    assert state["params"][name] == value
    assert type(state["params"][name]) is int


def test_a_seed_may_be_0_but_not_less() -> None:
    assert fitted(GaussianProcessLabeler(seed=np.int64(0))).fitted()
    with pytest.raises(LearnerParameterError, match=r"^seed must be a whole number of at least 0, got -1$"):
        fitted(GaussianProcessLabeler(seed=-1))


every_flag = pytest.mark.parametrize(("kind", "name"), FLAGS)


@every_flag
@pytest.mark.parametrize("value", ["x", "false", "", 1, 0.0, None, [True]])
def test_a_flag_is_true_or_false(kind: type[Learner], name: str, value: Any) -> None:
    with pytest.raises(LearnerParameterError, match=f"^{name} must be True or False, got {re.escape(repr(value))}$"):
        fitted(kind(**{name: value}))


@every_flag
@pytest.mark.parametrize("value", [True, np.False_])
def test_flags_of_python_and_numpy_are_taken(kind: type[Learner], name: str, value: Any) -> None:
    state, _ = fitted(kind(**{name: value})).to_state()
    assert state["params"][name] is bool(value)


def test_labels_by_name_are_no_list_of_them() -> None:
    with pytest.raises(LabelError, match=r"^labels must be one list of strings per structure, got {0: "):
        LabelingPerceptron().fit(GRAM, dict(enumerate(LABELS)))  # type: ignore[arg-type]
