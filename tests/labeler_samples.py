"""Sentences of tests with their labels, and a labeler of them."""

from __future__ import annotations

from typing import Any

from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.models.labeler import KernelLabeler

X: list[Any] = [
    ["the", "cat", "sat"],
    ["a", "dog", "ran"],
    ["cat", "ran"],
    ["the", "dog"],
    ["a", "cat"],
    ["dog", "sat"],
]
Y: list[Any] = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N"], ["D", "N"], [None, "V"]]
WHOLE_Y = [[label or "D" for label in line] for line in Y]  # recommended label chains need all of them
NEW = [["the", "cat", "ran"], ["bird", "sat"]]


def labeler(**params: Any) -> KernelLabeler:
    return KernelLabeler(SequenceLabeling(c=0.7), LabelingPerceptron(rounds=5), **params)
