"""The Gaussian-process labeler on the four CRF++ sets with a scale, or a bound, that every fold chooses for itself.

Each published fold chooses by folds of its own training sentences; its test sentences take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    scaled,
)
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet, present_sets
from gramline.pipeline.experiments.side_by_side import NOTE, side_by_side

SCALES = (0.3, 1.0, 3.0, 10.0)  # to choose from
SCALE_FOLDS, BOUND_FOLDS = 3, 5  # of the training sentences, to choose by


def gpsl_scale(run: Run) -> Sequence[ResultTable]:
    """One table: loss of GPSL1, 2 and 4 with a scale that every fold chose for itself, by GPSL1."""
    note = (
        f"expected normaliser; of the scales {', '.join(f'{scale:g}' for scale in SCALES)} the one with which GPSL1 "
        f"gets the fewest tokens wrong over {SCALE_FOLDS} folds of the training sentences, the smallest of equals"
    )
    labelers = {f"{scale:g}": scaled(MODELS[0], scale) for scale in SCALES}
    return _choice_table(run, Choice("scale", labelers, SCALE_FOLDS, MODELS, " ".join), note)


def gpsl_bound(run: Run) -> Sequence[ResultTable]:
    """One table: loss of GPSL1 with a bound that every fold chose for itself."""
    note = (
        "GPSL1; of Jensen's bound and the expected normaliser, each as in `gpsl`, the one that gets fewer tokens "
        f"wrong over {BOUND_FOLDS} folds of the training sentences, Jensen's of equals"
    )
    labelers = {"jensen": EXTRA_LABELERS[MODELS[0] + JENSEN], "expected": LABELERS[MODELS[0]]}

    def words(chosen: Sequence[str]) -> str:
        return ", ".join(f"{name} {chosen.count(name)}" for name in labelers if name in chosen)

    return _choice_table(run, Choice("bound", labelers, BOUND_FOLDS, MODELS[:1], words), note)


class Choice(NamedTuple):
    """One of several labelers that every published fold chooses by folds of its own training sentences."""

    what: str
    labelers: Mapping[str, GaussianProcessLabeler]
    n_folds: int
    models: Sequence[str]  # that are trained as the chosen labeler is, a row of the table each
    words: Callable[[Sequence[str]], str]  # for the choices of all folds

    def of_fold(self) -> FoldChoice:
        return FoldChoice(self.labelers, self.n_folds, self.models)


class FoldChoice(NamedTuple):
    """What a fold needs of a choice."""

    labelers: Mapping[str, GaussianProcessLabeler]
    n_folds: int
    models: Sequence[str]


def _choice_table(run: Run, choice: Choice, note: str) -> Sequence[ResultTable]:
    papers, left_out = present_sets(run)
    rows: list[Row] = []
    for paper in papers:
        rows += _choice_rows(run, choice, paper)
    more = ("model",) if len(choice.models) > 1 else ()
    scores = ("folds", "loss", "dev.", "CRF", "best peer", f"{choice.what}s chosen", "seconds of choosing")
    title = f"Hamming loss in per cent, {choice.what} chosen on the training sentences"
    return [ResultTable(title, ("set", *more, *scores), tuple(rows), (note, PEER_NOTE, NOTE, *left_out))]


class Chosen(NamedTuple):
    """What one fold chose, and its loss with every model."""

    name: str
    seconds: float
    losses: list[float]


def _choice_rows(run: Run, choice: Choice, paper: Paper) -> Iterator[Row]:
    data = paper.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0)
    tasks = [(choice.of_fold(), data, fold) for fold in data.folds]
    folds: list[Chosen] = []
    for fold in side_by_side(_choose, tasks, inline=run.quick):
        folds.append(fold)
        run.say(f"{paper.title}: fold {len(folds)} of {len(tasks)}")
    for place, model in enumerate(choice.models):
        losses = [fold.losses[place] for fold in folds]
        names = (paper.title, model) if len(choice.models) > 1 else (paper.title,)
        scores = (len(losses), *per_cent(losses), paper.crf, paper.best)
        seconds = float(np.mean([fold.seconds for fold in folds]))
        yield *names, *scores, choice.words([fold.name for fold in folds]), seconds


def _choose(task: tuple[FoldChoice, TokenSet, Fold]) -> Chosen:
    choice, data, fold = task
    begin = perf_counter()
    name = fewest_wrong(choice.labelers, data, fold, choice.n_folds)
    seconds = perf_counter() - begin
    trained = [choice.labelers[name].fresh().set_params(offsets=model) for model in choice.models]
    return Chosen(name, seconds, [data.loss(predict_fold(model, data, fold), fold.test) for model in trained])


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
