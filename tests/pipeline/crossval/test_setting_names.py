"""Settings are named by what differs."""

from __future__ import annotations

from gramline.kernels import SequenceLabeling
from gramline.pipeline.crossval.setting_names import setting_names


def test_settings_are_named_by_what_differs() -> None:
    kernels = [SequenceLabeling(c=c).to_dict() for c in (0.5, 1.0)]
    settings = [
        {"kernel": kernel, "learner": "labeling-perceptron", "params": {"rounds": rounds, "average": True}}
        for kernel in kernels
        for rounds in (1, 5)
    ]
    settings.append({"kernel": None, "learner": "zscore", "params": {"ridge": 0.1}})
    assert setting_names(settings) == [
        "labeling-perceptron(c=0.5, rounds=1)",
        "labeling-perceptron(c=0.5, rounds=5)",
        "labeling-perceptron(c=1, rounds=1)",
        "labeling-perceptron(c=1, rounds=5)",
        "zscore",
    ]


def test_a_learner_with_and_without_a_kernel_is_not_named_by_all_of_the_kernel() -> None:
    kernel, learner = SequenceLabeling().to_dict(), "hidden-markov-perceptron"
    settings = [
        {"kernel": kernel, "learner": learner, "params": {"dual": True}},
        {"kernel": None, "learner": learner, "params": {"dual": False}},
    ]
    assert setting_names(settings) == [f"{learner}(dual=True)", f"{learner}(dual=False)"]
