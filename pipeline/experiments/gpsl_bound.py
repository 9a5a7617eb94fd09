"""The bound of the Gaussian-process labeler chosen on training sentences only, on the published folds.

Every fold chooses between the two labelers of `gpsl` by its own training sentences: the paper's bound at its scale,
and the expected normaliser at its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

import numpy as np

from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.experiments.base import Cell, ResultTable, Run
from gramline.pipeline.experiments.gpsl import JENSEN, MODELS, PUBLISHED_FOLDS, Paper, labeler, per_cent, present_sets
from gramline.pipeline.experiments.gpsl_choice import fewest_wrong, loss

BOUNDS = {"jensen": MODELS[0] + JENSEN, "expected": MODELS[0]}
CHOOSING_FOLDS = 5


def gpsl_bound(run: Run) -> Sequence[ResultTable]:
    """One table: loss of GPSL1 with a bound that every fold chose for itself."""
    there, left_out = present_sets(run)
    with one_blas_thread():
        rows = tuple(_row(run, paper) for paper in there)
    return [
        ResultTable(
            "Hamming loss in per cent, bound chosen on the training sentences",
            ("set", "folds", "loss", "dev.", "CRF", "best peer", "bounds chosen", "seconds of choosing"),
            rows,
            (
                "GPSL1; of Jensen's bound and the expected normaliser, each as in `gpsl`, the one that gets fewer "
                f"tokens wrong over {CHOOSING_FOLDS} folds of the training sentences, Jensen's of equals",
                "CRF, best peer: measured on the five published folds, apart from this program",
                *left_out,
            ),
        )
    ]


def _row(run: Run, paper: Paper) -> tuple[Cell, ...]:
    data = paper.source.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0)
    names = list(BOUNDS)
    losses, chosen, seconds = [], [], []
    for number, fold in enumerate(data.folds, 1):
        run.say(f"{paper.title}: fold {number} of {len(data.folds)}")
        begin = perf_counter()
        candidates = [partial(labeler, row) for row in BOUNDS.values()]
        chosen.append(names[fewest_wrong(candidates, data, fold, CHOOSING_FOLDS)])
        seconds.append(perf_counter() - begin)
        losses.append(loss(labeler(BOUNDS[chosen[-1]]), data, fold))
    shown = ", ".join(f"{name} {chosen.count(name)}" for name in names if name in chosen)
    return (paper.title, len(losses), *per_cent(losses), paper.crf, paper.best, shown, float(np.mean(seconds)))
