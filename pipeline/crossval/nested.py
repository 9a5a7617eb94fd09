"""Nested selection: on every outer fold the setting that was best on inner folds, and how that one does there.

Inner folds lie inside the training part of their outer fold, so what an outer fold holds out has no say in the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramline.pipeline.crossval.validate import METRICS, CrossValidation


@dataclass(frozen=True)
class NestedSelection:
    """`chosen[f]` is the setting that outer fold f would have picked; the values are that setting's on fold f."""

    metric: str
    chosen: tuple[int, ...]
    inner: tuple[float, ...]  # its mean over the inner folds
    values: dict[str, tuple[float, ...]]  # every metric, per outer fold

    def mean(self, metric: str) -> float:
        return float(np.mean(self.values[metric]))

    def deviation(self, metric: str) -> float:
        return float(np.std(self.values[metric], ddof=1)) if len(self.chosen) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "chosen": list(self.chosen),
            "inner": list(self.inner),
            "outer": {name: list(values) for name, values in self.values.items()},
            "mean": {name: self.mean(name) for name in self.values},
            "deviation": {name: self.deviation(name) for name in self.values},
        }


def select_nested(outer: CrossValidation, inner: CrossValidation, metric: str = "accuracy") -> NestedSelection:
    """`inner` has the folds of `FoldSpec.inner(outer.folds, ...)`, equally many for every outer fold, in order."""
    per_fold = len(inner.folds) // len(outer.folds)
    sign = -1.0 if metric == "hamming_loss" else 1.0
    means = inner.table(metric).reshape(len(inner.settings), len(outer.folds), per_fold).mean(axis=2)
    chosen = np.argmax(sign * means, axis=0)
    values = {
        name: tuple(float(outer.table(name)[setting, fold]) for fold, setting in enumerate(chosen)) for name in METRICS
    }
    best = tuple(float(means[setting, fold]) for fold, setting in enumerate(chosen))
    return NestedSelection(metric, tuple(int(setting) for setting in chosen), best, values)
