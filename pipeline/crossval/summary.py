"""The outcome of a job as one JSON-able dictionary: settings, their scores, the best, the nested choice, versions."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gramline.kernels.catalogue import describe, short_value
from gramline.pipeline.crossval.job import Job, JobData
from gramline.pipeline.crossval.validate import METRICS, CrossValidation

KERNEL = "kernel."  # what the names of a kernel's parameters begin with
PACKAGES = ("gramline", "numpy", "numba", "scipy", "zarr", "pyarrow", "dask", "distributed")


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


def summarize(job: Job, data: JobData, result: CrossValidation, nested: NestedSelection | None) -> dict[str, Any]:
    """Everything but timings and places."""
    best = result.best(job.metric)
    settings = []
    for number, setting in enumerate(job.settings()):
        scores = {
            metric: {
                "mean": float(values.mean()),
                "deviation": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                "folds": values.tolist(),
            }
            for metric in METRICS
            for values in [result.table(metric)[number]]
        }
        against = result.compare(best, number, job.metric)
        settings.append(
            setting
            | {
                "scores": scores,
                "behind_best": {
                    "difference": against.difference,
                    "deviation": against.deviation,
                    "t": _finite(against.t),
                    "p": _finite(against.p),
                },
            }
        )
    return {
        "metric": job.metric,
        "best": best,
        "settings": settings,
        "nested": None if nested is None else nested.to_dict(),
        "folds": job.folds.to_dict()
        | {"held_out": [len(held) for held in result.folds.held_out], "held_out_again": result.folds.n_repeated},
        "inner_folds": job.inner_folds,
        "dummy": job.dummy,
        "dtype": job.dtype,
        "source": data.source,
        "structures": len(data.labels),
        "positions": data.n_positions,
        "labels": data.label_names,
        "fingerprint": data.fingerprint,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What ran: Python, the machine and the packages that decide numbers."""
    installed = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def _finite(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else None


def setting_names(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short name for every setting: its learner, and the parameters in which the settings of that learner differ."""
    described = [(str(setting["learner"]), _flat(setting)) for setting in settings]
    names = []
    for learner, values in described:
        others = [other for name, other in described if name == learner]
        on_kernels = [other for other in others if any(key.startswith(KERNEL) for key in other)]
        varied = [
            key
            for key in values
            if any(other.get(key) != values[key] for other in (on_kernels if key.startswith(KERNEL) else others))
        ]
        parts = ", ".join(f"{key.rpartition('.')[2]}={short_value(values[key])}" for key in varied)
        names.append(f"{learner}({parts})" if parts else learner)
    return names


def _flat(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of kernel and learner side by side; a kernel's own are prefixed."""
    kernel = {} if setting["kernel"] is None else setting["kernel"]
    flat = {f"{KERNEL}{key}": describe(value) if isinstance(value, Mapping) else value for key, value in kernel.items()}
    return flat | {f"learner.{key}": value for key, value in setting["params"].items()}
