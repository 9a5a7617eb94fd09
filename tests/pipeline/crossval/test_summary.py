"""Settings are named by what differs."""

from __future__ import annotations

from gramline.kernels import SequenceLabeling
from gramline.pipeline.crossval.summary import setting_names


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
