"""The scale of the Gaussian-process labeler's kernel chosen on training sentences only, on the published folds.

Every fold chooses among the same four scales by its own training sentences; GPSL1's choice serves GPSL2 and 4 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

import numpy as np

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.experiments.base import Cell, ResultTable, Run
from gramline.pipeline.experiments.gpsl import MODELS, PUBLISHED_FOLDS, Paper, per_cent, present_sets
from gramline.pipeline.experiments.gpsl_choice import fewest_wrong, loss

SCALES = (0.3, 1.0, 3.0, 10.0)
CHOOSING_FOLDS = 3


def gpsl_scale(run: Run) -> Sequence[ResultTable]:
    """One table: loss of GPSL1, 2 and 4 with a scale that every fold chose for itself."""
    there, left_out = present_sets(run)
    rows: list[tuple[Cell, ...]] = []
    with one_blas_thread():
        for paper in there:
            rows.extend(_rows(run, paper))
    return [
        ResultTable(
            "Hamming loss in per cent, scale chosen on the training sentences",
            ("set", "model", "folds", "loss", "dev.", "CRF", "best peer", "scales chosen", "seconds of choosing"),
            tuple(rows),
            (
                f"expected normaliser; of the scales {', '.join(f'{scale:g}' for scale in SCALES)} the one with which "
                f"GPSL1 gets the fewest tokens wrong over {CHOOSING_FOLDS} folds of the training sentences, "
                "the smallest of equals",
                "CRF, best peer: measured on the five published folds, apart from this program",
                *left_out,
            ),
        )
    ]


def _rows(run: Run, paper: Paper) -> list[tuple[Cell, ...]]:
    data = paper.source.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0)
    losses: dict[str, list[float]] = {name: [] for name in MODELS}
    scales, seconds = [], []
    for number, fold in enumerate(data.folds, 1):
        run.say(f"{paper.title}: fold {number} of {len(data.folds)}")
        begin = perf_counter()
        candidates = [partial(_labeler, MODELS[0], scale) for scale in SCALES]
        scales.append(SCALES[fewest_wrong(candidates, data, fold, CHOOSING_FOLDS)])
        seconds.append(perf_counter() - begin)
        for name in MODELS:
            losses[name].append(loss(_labeler(name, scales[-1]), data, fold))
    shown = " ".join(f"{scale:g}" for scale in scales)
    return [
        (paper.title, name, len(values), *per_cent(values), paper.crf, paper.best, shown, float(np.mean(seconds)))
        for name, values in losses.items()
    ]


def _labeler(name: str, scale: float) -> GaussianProcessLabeler:
    return GaussianProcessLabeler(offsets=name, bound="expected", scale=scale)
