"""The outcome of a job as one JSON-able dictionary: settings with their scores, the best, comparisons, versions."""

from __future__ import annotations

import math
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

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
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _finite(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else None
