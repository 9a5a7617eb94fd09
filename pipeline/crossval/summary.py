"""The outcome of a job as one JSON-able dictionary: settings with their scores, the best, comparisons, versions."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gramline.kernels.descriptions import describe, short_value
from gramline.pipeline.crossval.job import Job, JobData
from gramline.pipeline.crossval.nested import NestedSelection
from gramline.pipeline.crossval.validate import METRICS, CrossValidation

PACKAGES = ("gramline", "numpy", "numba", "scipy", "zarr", "pyarrow", "dask", "distributed")


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
        varied = [key for key in values if any(other.get(key) != values[key] for other in others)]
        parts = ", ".join(f"{key.rpartition('.')[2]}={short_value(values[key])}" for key in varied)
        names.append(f"{learner}({parts})" if parts else learner)
    return names


def _flat(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of kernel and learner side by side; a kernel's own are prefixed."""
    kernel = {} if setting["kernel"] is None else setting["kernel"]
    flat = {f"kernel.{key}": describe(value) if isinstance(value, Mapping) else value for key, value in kernel.items()}
    return flat | {f"learner.{key}": value for key, value in setting["params"].items()}
