"""Support vector machines and random fields beside Gaussian processes on the four CRF++ sets.

Every published fold chooses the constant of every learner by folds of its own training sentences; its test sentences
take no part. Trainings are timed afterwards, with what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gramline.pipeline.crossval.crf import CHOOSING_FOLDS, CHOSEN_NOTE, chosen_crfs, has_crf, missing_crf
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.gpsl import CRFS, MEANS, MODELS, PEER_NOTE, PUBLISHED_FOLDS, per_cent
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet, present_sets
from gramline.pipeline.experiments.kept_parts import KeptParts, load, save
from gramline.pipeline.experiments.margin_families import FAMILIES, KERNELS, PROCESSES, SCALES, STEPS, Family
from gramline.pipeline.experiments.margin_times import Key, Times, timed, times_table
from gramline.pipeline.experiments.record import quiet_load
from gramline.pipeline.experiments.side_by_side import side_by_side

KEPT = "gramline-margins-folds"  # folder of finished folds, until all of them are
BEST = "best of these by the folds inside"


class Outcome(NamedTuple):
    """What one method gave on one fold."""

    loss: float
    chosen: str
    wrong: float  # share of the labels of hidden training sentences, with what was chosen


Outcomes: TypeAlias = dict[Key, Outcome]  # of one fold


class FoldTask(NamedTuple):
    """One fold of one set, for a process of its own."""

    data: TokenSet
    fold: Fold
    quick: bool
    kept: Path | None = None  # where what it gives is kept until the end of the run


def margins(run: Run) -> Sequence[ResultTable]:
    """Losses of every method, and what a training takes."""
    papers, left_out = present_sets(run)
    kept = KeptParts(None if run.quick else run.scratch / KEPT)
    sets = {paper: paper.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0) for paper in papers}
    outcomes = {paper: _outcomes(run, paper, data, kept) for paper, data in sets.items()}
    if not run.quick:
        run.loads.append(quiet_load(run.say))  # how long folds took to choose is in no table
    first = papers[0]
    timed(sets[first], [_steps(fold) for fold in outcomes[first][:1]])  # every program is loaded before
    times: dict[Paper, Times] = {}
    for paper, data in sets.items():
        times[paper] = timed(data, [_steps(fold) for fold in outcomes[paper]])
        run.say(f"{paper.title}: trainings timed")
    tables = [_losses(outcomes, left_out), times_table(times)]
    kept.clear()
    return tables


def _outcomes(run: Run, paper: Paper, data: TokenSet, kept: KeptParts) -> list[Outcomes]:
    """What every fold of a set gives."""
    tasks = [FoldTask(data, fold, run.quick, kept.path(_deciding(paper, fold))) for fold in data.folds]
    if n_known := sum(task.kept is not None and task.kept.is_file() for task in tasks):
        run.say(f"{paper.title}: {n_known} of {len(tasks)} folds are known from an earlier start")
    outcomes = []
    for number, fold in enumerate(side_by_side(_fold, tasks, inline=run.quick), 1):
        outcomes.append(fold)
        run.say(f"{paper.title}: fold {number} of {len(tasks)}")
    return outcomes


def _deciding(paper: Paper, fold: Fold) -> list[Any]:
    """What decides what a fold gives, beside the version of the program."""
    methods = [
        (
            name,
            family.learner,
            *family.steps,
            *family.kernels,
            family.n_folds,
            family.trial,
            *family.readings,
            *family.relatives,
        )
        for name, family in [*FAMILIES.items(), *PROCESSES.items()]
    ]
    return [paper.title, fold.train.tolist(), fold.test.tolist(), methods, has_crf()]


def _fold(task: FoldTask) -> Outcomes:
    """What a fold gives, or gave an earlier start of this run."""
    if (known := load(task.kept)) is not None:
        return {(name, kernel): Outcome(*values) for name, kernel, values in known}
    outcomes = _measure_fold(task)
    save(task.kept, [[*key, outcome] for key, outcome in outcomes.items()])
    return outcomes


def _measure_fold(task: FoldTask) -> Outcomes:
    data, fold = task.data, task.fold
    outcomes: Outcomes = {}
    for name, family in FAMILIES.items():
        for kernel in family.kernels:
            outcomes |= _measure_family(name, family, kernel, task)
    (name, kernel), best = min(outcomes.items(), key=lambda one: one[1].wrong)
    outcomes[BEST, ""] = best._replace(chosen=f"{name} ({kernel})")
    n_hidden = int(data.corpus.lengths[fold.train].sum())
    for decoding, found in (chosen_crfs(*data.packed(fold)) if has_crf() else {}).items():
        loss = data.loss(found.labels, fold.test)
        outcomes[CRFS[decoding], ""] = Outcome(loss, f"{found.c2:g}", found.wrong / n_hidden)
    for name, family in PROCESSES.items():
        outcomes |= _measure_family(name, family, family.kernels[0], task)
    return outcomes


def _measure_family(name: str, family: Family, kernel: str, task: FoldTask) -> Outcomes:
    data, fold, is_cosine = task.data, task.fold, KERNELS[kernel]
    chosen = choose(family, data, fold, is_cosine=is_cosine, quick=task.quick)
    gram, cross = data.grams(fold, is_cosine=is_cosine)
    labels = data.labels_of(fold.train)
    outcomes: Outcomes = {}
    for relative, own in family.alike(name).items():
        steps = sorted({step for step, _ in chosen.values()})
        models = dict(zip(steps, own.fits(steps, gram, labels), strict=True))
        for reading, (step, wrong) in chosen.items():
            predicted = models[step].set_params(**family.readings[reading]).predict(cross)
            outcomes[relative + reading, kernel] = Outcome(data.loss(predicted, fold.test), f"{step:g}", wrong)
    return outcomes


def _steps(fold: Outcomes) -> dict[Key, float]:
    """The constant of every method that chose one."""
    return {key: float(outcome.chosen) for key, outcome in fold.items() if key != (BEST, "")}


def choose(
    family: Family, data: TokenSet, fold: Fold, *, is_cosine: bool, quick: bool = False
) -> dict[str, tuple[float, float]]:
    """By reading the step with the fewest wrong labels on hidden training sentences, and the share of these."""
    steps = family.steps[1:3] if quick else family.steps
    wrong = {reading: np.zeros(len(steps)) for reading in family.readings}
    trials = replace(family, learner=family.learner.fresh().set_params(**family.trial))
    for part in fold.inner(2 if quick else family.n_folds):
        gram, cross = data.grams(part, is_cosine=is_cosine)
        for number, model in enumerate(trials.fits(steps, gram, data.labels_of(part.train))):
            for reading, changes in family.readings.items():
                is_right = data.is_right(model.set_params(**changes).predict(cross), part.test)
                wrong[reading][number] += (~is_right).sum()
    n_hidden = int(data.corpus.lengths[fold.train].sum())
    return {reading: (steps[int(counts.argmin())], float(counts.min()) / n_hidden) for reading, counts in wrong.items()}


def _losses(sets: Mapping[Paper, Sequence[Outcomes]], left_out: tuple[str, ...]) -> ResultTable:
    rows = [row for paper, folds in sets.items() for row in _loss_rows(paper, folds)]
    steps, scales = (", ".join(f"{value:g}" for value in values) for values in (STEPS, SCALES))
    return ResultTable(
        "Hamming loss in per cent, every constant chosen on the training sentences",
        ("set", "method", "kernel", "loss", "dev.", "paper", "best peer", "chosen per fold"),
        tuple(rows),
        (
            f"the {PUBLISHED_FOLDS} published folds; linear: K(s, t) = number of shared features, cosine: the same "
            "over the geometric mean of K(s, s) and K(t, t)",
            f"chosen: C of the SVMs and of the kernel CRF (its penalty is 1 / (2 C)) times the median of k(x, x), of "
            f"{steps} by 5 folds; the scale of GPSL1, by the expected normaliser, of {scales} by 3 folds, and GPSL2 "
            "and GPSL4 with the same; the first of equally good ones; structured SVMs choose at a gap of 5 % or after "
            "30 passes",
            "the range of C was set after a look at test sentences of Segmentation, so that set is not blind to it",
            "means: predicted by the softmax of the expected functions, as the GP paper's text says; otherwise with "
            "their variances, as its formulas print",
            f"{BEST}: of all SVMs and kernel CRFs the one with the fewest wrong labels there",
            "paper: its own numbers of SSVM, CRF, GPSL and GPstruct on 10 partitions of its own",
            PEER_NOTE,
            *((f"{CHOSEN_NOTE} by {CHOOSING_FOLDS} folds",) if has_crf() else missing_crf()),
            *left_out,
        ),
    )


def _loss_rows(paper: Paper, folds: Sequence[Outcomes]) -> Iterator[Row]:
    printed = paper.printed | dict(zip(MODELS, paper.losses, strict=True))
    for name, kernel in folds[0]:
        outcomes = [fold[name, kernel] for fold in folds]
        words = [outcome.chosen for outcome in outcomes]
        counted = (f"{words.count(word)} x {word}" for word in dict.fromkeys(words))
        chosen = ", ".join(counted) if name == BEST else " ".join(words)
        losses = per_cent([outcome.loss for outcome in outcomes])
        yield paper.title, name, kernel, *losses, printed.get(_method(name)), paper.best, chosen
    yield paper.title, "GPstruct, as printed", "", None, None, printed["GPstruct"], paper.best, ""


def _method(name: str) -> str:
    """The paper's name for a method of ours."""
    if name in CRFS.values():
        return "CRF"
    return next((family.printed for own, family in FAMILIES.items() if name.startswith(own)), name.removesuffix(MEANS))
