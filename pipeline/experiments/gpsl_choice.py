"""The Gaussian-process labeler on the four CRF++ sets with a bound that every fold chooses for itself.

Each published fold chooses by folds of its own training sentences; its test sentences take no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.gpsl import (
    EXTRA_LABELERS,
    JENSEN,
    LABELERS,
    MODELS,
    PEER_NOTE,
    PUBLISHED_FOLDS,
    per_cent,
    predict_fold,
)
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet, present_sets
from gramline.pipeline.experiments.side_by_side import NOTE, side_by_side

BOUNDS = {"jensen": EXTRA_LABELERS[MODELS[0] + JENSEN], "expected": LABELERS[MODELS[0]]}  # to choose from
N_FOLDS = 5  # of the training sentences, to choose by


def gpsl_bound(run: Run) -> Sequence[ResultTable]:
    """One table: loss of GPSL1 with a bound that every fold chose for itself."""
    papers, left_out = present_sets(run)
    note = (
        "GPSL1; of Jensen's bound and the expected normaliser, each as in `gpsl`, the one that gets fewer tokens "
        f"wrong over {N_FOLDS} folds of the training sentences, Jensen's of equals"
    )
    return [
        ResultTable(
            "Hamming loss in per cent, bound chosen on the training sentences",
            ("set", "folds", "loss", "dev.", "CRF", "best peer", "bounds chosen", "seconds of choosing"),
            tuple(_row(run, paper) for paper in papers),
            (note, PEER_NOTE, NOTE, *left_out),
        )
    ]


class Chosen(NamedTuple):
    """What one fold chose, and its loss."""

    name: str
    seconds: float
    loss: float


def _row(run: Run, paper: Paper) -> Row:
    data = paper.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0)
    folds: list[Chosen] = []
    for fold in side_by_side(_choose, [(data, fold) for fold in data.folds], inline=run.quick):
        folds.append(fold)
        run.say(f"{paper.title}: fold {len(folds)} of {len(data.folds)}")
    names = [fold.name for fold in folds]
    words = ", ".join(f"{name} {names.count(name)}" for name in BOUNDS if name in names)
    scores = (len(folds), *per_cent([fold.loss for fold in folds]), paper.crf, paper.best)
    return paper.title, *scores, words, float(np.mean([fold.seconds for fold in folds]))


def _choose(task: tuple[TokenSet, Fold]) -> Chosen:
    data, fold = task
    begin = perf_counter()
    name = fewest_wrong(BOUNDS, data, fold, N_FOLDS)
    seconds = perf_counter() - begin
    return Chosen(name, seconds, data.loss(predict_fold(BOUNDS[name], data, fold), fold.test))


def fewest_wrong(labelers: Mapping[str, GaussianProcessLabeler], data: TokenSet, fold: Fold, n_folds: int) -> str:
    """The labeler with the fewest wrong tokens when folds of the training sentences are held out in turn.

    The first of equals; the test sentences take no part.
    """
    inner = fold.inner(n_folds)
    wrong = {
        name: sum((~data.is_right(predict_fold(model, data, part), part.test)).sum() for part in inner)
        for name, model in labelers.items()
    }
    return min(wrong, key=lambda name: wrong[name])
