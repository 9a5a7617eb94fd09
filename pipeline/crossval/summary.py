"""The outcome of a job as one JSON-able dictionary: settings, their scores, the best, the majority label
beside them, the nested choice, versions."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gramline.pipeline.corpus.duplicates import duplicate_groups
from gramline.pipeline.crossval.folds import Folds, Labels
from gramline.pipeline.crossval.job import Job, JobData
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import METRICS, CrossValidation, assembled

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
    sign = sign_of(metric)
    means = inner.table(metric).reshape(len(inner.settings), len(outer.folds), per_fold).mean(axis=2)
    chosen = np.argmax(sign * means, axis=0)
    values = {
        name: tuple(float(outer.table(name)[setting, fold]) for fold, setting in enumerate(chosen)) for name in METRICS
    }
    best = tuple(float(means[setting, fold]) for fold, setting in enumerate(chosen))
    return NestedSelection(metric, tuple(int(setting) for setting in chosen), best, values)


def sign_of(metric: str) -> float:
    """-1 for a loss: the lowest is best."""
    return -1.0 if metric == "hamming_loss" else 1.0


def by_score(summary: Mapping[str, Any]) -> list[int]:
    """The numbers of the settings of a summary, the best first; of equal ones the first, as the best is chosen."""
    metric, settings = summary["metric"], summary["settings"]
    sign = sign_of(metric)
    return sorted(range(len(settings)), key=lambda k: (-sign * settings[k]["scores"][metric]["mean"], k))


def _chosen(held: Sequence[HeldOut]) -> dict[str, dict[str, list[float]]]:
    """The constants that a setting left open, as each fold chose them."""
    names = dict.fromkeys(name for one in held for name in one.chosen)
    chosen = {name: [one.chosen[name] for one in held if name in one.chosen] for name in names}
    return {"chosen": chosen} if chosen else {}


def chosen_words(setting: Mapping[str, Any]) -> str:
    """The same for a table: every value with the number of folds that chose it."""
    return "; ".join(
        f"{name} " + ", ".join(f"{count} x {value:.2g}" for value, count in sorted(Counter(values).items()))
        for name, values in setting.get("chosen", {}).items()
    )


def summarize(job: Job, data: JobData, result: CrossValidation, nested: NestedSelection | None) -> dict[str, Any]:
    """Everything but timings and places; of the settings that came to an end."""
    best = result.best(job.metric)
    settings = []
    for number, setting in enumerate(result.settings):
        against = result.compare(best, number, job.metric)
        settings.append(
            setting
            | {
                "scores": fold_scores(result, number),
                "behind_best": {
                    "difference": against.difference,
                    "deviation": against.deviation,
                    "t": _finite(against.t),
                    "p": _finite(against.p),
                },
            }
            | _chosen(result.outcomes[number] if result.outcomes else ())
        )
    return {
        "metric": job.metric,
        "best": best,
        "settings": settings,
        "majority": _majority(result, data, job),
        "nested": None if nested is None else nested.to_dict(),
        "folds": job.folds.to_dict()
        | {
            "held_out": [len(held) for held in result.folds.held_out],
            "held_out_again": result.folds.n_repeated,
            "duplicates": n_duplicates(data, result.folds),
        },
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


def fold_scores(result: CrossValidation, setting: int) -> dict[str, Any]:
    """Mean, deviation and values per fold of every metric."""
    return {
        metric: {
            "mean": float(values.mean()),
            "deviation": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
            "folds": values.tolist(),
        }
        for metric in METRICS
        for values in [result.table(metric)[setting]]
    }


def _majority(result: CrossValidation, data: JobData, job: Job) -> dict[str, Any]:
    """What the most frequent training label of each fold would score: a setting worth its time does better."""
    labels = majority_labels(data.labels, result.folds)
    outcomes = [
        HeldOut([[label] * len(data.labels[k]) for k in result.folds.held_out[fold]])
        for fold, label in enumerate(labels)
    ]
    guessed = assembled([{}], result.folds, data.labels, [outcomes], dummy=job.dummy)
    best, own = (part.table(job.metric)[k].mean() for part, k in ((result, result.best(job.metric)), (guessed, 0)))
    is_beaten = bool(sign_of(job.metric) * (best - own) > 0)
    return {"labels": labels, "scores": fold_scores(guessed, 0), "is_beaten": is_beaten}


def majority_labels(labels: Labels, folds: Folds) -> list[str]:
    """The most frequent training label of every fold; of equally frequent ones the first by name."""
    chosen = []
    for fold in range(len(folds)):
        counts = Counter(label for k in folds.training(fold) for label in labels[k] if label is not None)
        chosen.append(min(counts, key=lambda label: (-counts[label], label)))
    return chosen


def n_duplicates(data: JobData, folds: Folds) -> int | None:
    """Structures that a fold holds out while it trains on an equal one; None where structures are not known."""
    return None if data.corpus is None else folds.n_seen_in_training(duplicate_groups(data.corpus))


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
