"""What learners refuse of their parameters: judged from the declarations, without anything to learn from."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gramline.kernels.parameters import parameters_of
from gramline.kernels.value_kinds import Flag, Kind, Number
from gramline.learners import DenseGram, GaussianProcessLabeler, LabelingPerceptron
from gramline.learners.catalogue import LEARNERS, find_learner, make_learner
from gramline.learners.errors import LabelError, LearnerParameterError
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline import Corpus

GRAM = DenseGram(np.eye(4) + 0.5, [2, 2], label_names=("A", "B"))
LABELS = [["A", "B"], ["B", "A"]]
EVERY = [(name, key) for name in LEARNERS for key in parameters_of(find_learner(name))]
OF_KIND = {
    kind: [(name, key) for name, key in EVERY if type(parameters_of(find_learner(name))[key].kind) is kind]
    for kind in (Number, Flag)
}
WHOLE = [(name, key) for name, key in OF_KIND[Number] if parameters_of(find_learner(name))[key].kind.whole]  # type: ignore[attr-defined]
NEEDS = {"rank": {"approximation": "nystrom"}}


def fitted(learner: Any) -> Learner:
    if learner.reads_corpus:
        return learner.fit(Corpus.from_sequences([["a", "b"], ["b", "a"]], LABELS))
    return learner.fit(GRAM, [2, 2] if isinstance(learner, RankingLearner) else LABELS)


def refused(name: str, params: dict[str, Any]) -> LearnerParameterError:
    """What the check says; nothing is touched by it, and `fit` says the same before it looks at anything."""
    learner: Any = make_learner(name, params)
    with pytest.raises(LearnerParameterError) as caught:
        learner.check_parameters()
    assert learner.get_params() == make_learner(name, params).get_params()
    with pytest.raises(LearnerParameterError) as again:
        learner.fit(*[object()] if learner.reads_corpus else [object(), LABELS])
    assert str(again.value) == str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", LEARNERS)
def test_everything_is_declared_and_the_defaults_pass(name: str) -> None:
    learner = make_learner(name)
    learner.check_parameters()
    assert learner.fitted() == {}
    assert find_learner(name).summary
    for parameter in parameters_of(find_learner(name)).values():
        assert type(parameter.kind) is not Kind
        assert parameter.description


@pytest.mark.parametrize(("name", "key"), OF_KIND[Number])
def test_what_is_no_number(name: str, key: str) -> None:
    for value in (-1, True, np.True_, "2", [2], math.nan, math.inf, Fraction(1, 2), 1j):
        error = refused(name, {key: value} | NEEDS.get(key, {}))
        assert error.key == key
        assert str(error).startswith(f"{key} must be a ")


@pytest.mark.parametrize(("name", "key"), WHOLE)
def test_whole_numbers(name: str, key: str) -> None:
    for value in (2.0, np.float64(2), Fraction(2)):
        assert refused(name, {key: value} | NEEDS.get(key, {})).key == key
    for value in (2, np.int64(2), np.uint8(200)):  # also small ones, whose products would overflow
        state, _ = fitted(make_learner(name, {key: value} | NEEDS.get(key, {}))).to_state()
        assert state["params"][key] == value
        assert type(state["params"][key]) is int


@pytest.mark.parametrize(("name", "key"), OF_KIND[Flag])
def test_flags(name: str, key: str) -> None:
    for value in ("x", "false", "", 1, 0.0, None, [True]):
        error = refused(name, {key: value})
        assert (error.key, str(error)) == (key, f"{key} must be true or false, got {value!r}")
    if key != "learn_kernel":  # needs another Gram
        state, _ = fitted(make_learner(name, {key: np.False_})).to_state()
        assert state["params"][key] is False


REFUSED: dict[str, dict[str, list[Any]]] = {
    "labeling-perceptron": {"rounds": [0]},
    "hidden-markov-perceptron": {"rounds": [0], "unlabeled": ["keep", None]},
    "zscore": {
        "ridge": ["much", None],
        "loss": ["hinge", "zero-one"],
        "moments": ["guessed"],
        "solver": ["lu"],
        "n_paths": [1, 2.5],
        "tolerance": [0],
        "unlabeled": ["keep"],
        "constraints": ["all"],
        "margin": [0, 1.5, "wide"],
        "max_rounds": [0],
    },
    "kernel-zscore": {
        "ridge": [0, 0.0, -1.0, "much", "12", (), [], [0.1, "much"], (0.1, -2), (0.1, 0), None, True, [True], {1: 2}],
        "loss": ["log"],
        "width": [0],
        "tolerance": [0, 0.0],
        "max_iterations": [0],
        "preconditioner": ["ilu"],
        "precision": ["half"],
        "unlabeled": ["keep"],
    },
    "gaussian-process": {
        "offsets": ["nowhere", "GPSL3", -1, {-1, 1}, iter((-1, 1)), (0.5,), (-1, 0), (1, 1), (True,), None],
        "scale": [0, 10**400],
        "jitter": [10**400],
        "missing": [1, 2, -0.1],
        "learn_scale": ["all"],
        "approximation": ["low"],
        "variance": ["some"],
        "decoding": ["beam"],
        "bound": ["tight"],
    },
    "ranking-perceptron": {"passes": [0]},
    "labeling-svm": {"C": [0, "much"], "passes": [0], "tolerance": [0], "constraints": ["all"]},
    "structured-svm": {"C": [0], "loss": ["log"], "tolerance": [0], "transition_weight": [0]},
    "kernel-crf": {"penalty": [0], "tolerance": [0, 1e-13], "iterations": [0], "decoding": ["beam"]},
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, keys in REFUSED.items() for key in keys])
def test_values_that_no_training_could_use(name: str, key: str) -> None:
    for value in REFUSED[name][key]:
        assert refused(name, {key: value}).key == key


@pytest.mark.parametrize(
    ("name", "params", "key", "sentence"),
    [
        ("zscore", {"loss": "hinge"}, "loss", "loss must be one of none, hamming, got 'hinge'"),
        (
            "kernel-zscore",
            {"ridge": (0.1, 0)},
            "ridge",
            "ridge must be a number above 0, a list of them, or auto, got (0.1, 0)",
        ),
        (
            "gaussian-process",
            {"offsets": -1},
            "offsets",
            "offsets must be a list of whole numbers, or one of GPSL1, GPSL2, GPSL4, got -1",
        ),
        (
            "gaussian-process",
            {"offsets": (-1, 0)},
            "offsets",
            "offsets must not contain 0, a position is no neighbour of itself; got (-1, 0)",
        ),
        ("gaussian-process", {"offsets": [1, 1]}, "offsets", "offsets must not repeat, got (1, 1)"),
        (
            "gaussian-process",
            {"missing": 1},
            "missing",
            "missing must be a number of at least 0 and below 1, got 1",
        ),
        (
            "zscore",
            {"moments": "dynamic", "solver": "cg"},
            "solver",
            "dynamic moments form the covariance; set solver to direct or auto",
        ),
        (
            "zscore",
            {"constraints": "iterative", "ridge": 0},
            "ridge",
            "iterative constraints need a ridge above 0; try 1e-6",
        ),
        (
            "zscore",
            {"constraints": "iterative", "moments": "sampled"},
            "constraints",
            "iterative constraints go with the loss none and closed moments, got the loss none and sampled moments",
        ),
        (
            "kernel-zscore",
            {"preconditioner": "nystrom", "ridge": (0.1, 0.2)},
            "preconditioner",
            "the Nystrom preconditioner belongs to one ridge; give a number, or set preconditioner to wide for several",
        ),
        (
            "gaussian-process",
            {"learn_kernel": True, "approximation": "nystrom", "rank": 2},
            "learn_kernel",
            "learn_kernel needs the exact covariance; leave approximation out",
        ),
        ("gaussian-process", {"rank": 3}, "rank", 'rank=3 means nothing without approximation="nystrom"'),
        ("gaussian-process", {"approximation": "nystrom"}, "rank", 'approximation="nystrom" needs a rank'),
        (
            "gaussian-process",
            {"decoding": "viterbi"},
            "decoding",
            'decoding="viterbi" needs offsets=(-1,), got (-1, 1)',
        ),
    ],
)
def test_sentences(name: str, params: dict[str, Any], key: str, sentence: str) -> None:
    error = refused(name, params)
    assert (error.key, str(error)) == (key, sentence)


def test_the_dual_form_is_judged_alike() -> None:
    make_learner("hidden-markov-perceptron", {"dual": True}).check_parameters()
    assert refused("hidden-markov-perceptron", {"dual": True, "rounds": 0}).key == "rounds"


def test_a_seed_may_be_0() -> None:
    assert fitted(GaussianProcessLabeler(seed=np.int64(0))).fitted()


def test_labels_by_name_are_no_list_of_them() -> None:
    with pytest.raises(LabelError, match=r"^labels must be one list of strings per structure, got {0: "):
        LabelingPerceptron().fit(GRAM, dict(enumerate(LABELS)))  # type: ignore[arg-type]
