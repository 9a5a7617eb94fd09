"""Support vector machines and random fields beside Gaussian processes on the four CRF++ sets.

Every published fold chooses the constant of every learner by folds of its own training sentences; its test sentences
take no part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from gramline.learners.kinds import SharedPassLearner
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.pipeline.crossval.crf import CHOOSING_FOLDS, CHOSEN_NOTE, chosen_crfs, has_crf, missing_crf
from gramline.pipeline.experiments.base import Cell, ResultTable, Row, Run
from gramline.pipeline.experiments.gpsl import CRFS, MEANS, MODELS, PEER_NOTE, PUBLISHED_FOLDS, per_cent, scaled
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet, present_sets
from gramline.pipeline.experiments.kept_parts import KeptParts as KeptFolds
from gramline.pipeline.experiments.kept_parts import load, save
from gramline.pipeline.experiments.side_by_side import NOTE, side_by_side

STEPS = (0.1, 0.3, 1.0, 3.0, 10.0)  # C times the typical k(x, x)
SCALES = (1.0, 3.0, 10.0)  # of the linear kernel, for the Gaussian processes
TRIAL = {"tolerance": 0.05, "passes": 30}  # as C="auto" chooses
KERNELS = {"linear": False, "cosine": True}  # whether it is normalised
KEPT = "gramline-margins-folds"  # folder of finished folds, until all of them are
BEST = "best of these by the folds inside"
Constant = Callable[[float, float], dict[str, Any]]  # (step, typical k(x, x)) -> parameters


@dataclass(frozen=True)
class Family:
    """A learner with one constant, and everything that is trained and tested with what is chosen for it."""

    learner: Any
    constant: Constant
    steps: Sequence[float]  # of equally good ones the first is chosen
    kernels: Sequence[str] = tuple(KERNELS)
    n_folds: int = 5  # of the training sentences, to choose by
    trial: Mapping[str, Any] = field(default_factory=dict)  # while choosing, where a label more or less is all
    printed: str = ""  # the paper's name of the method
    readings: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"": {}})  # of one and the same fit
    relatives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # trained with the same constant

    def fits(self, steps: Sequence[float], gram: DenseGram, labels: Sequence[Sequence[str | None]]) -> list[Any]:
        """A trained learner for every step."""
        size = typical(gram)
        models = [self.learner.fresh().set_params(**self.constant(step, size)) for step in steps]
        if isinstance(self.learner, SharedPassLearner):
            type(self.learner).fit_many(models, gram, [labels] * len(models))
        else:
            for model in models:
                model.fit(gram, labels)
        return models


def typical(gram: DenseGram) -> float:
    """The median of k(x, x) where it is above 0."""
    diagonal = gram.diagonal()
    return float(np.median(diagonal[diagonal > 0]))


def _weight(step: float, size: float) -> dict[str, Any]:
    return {"C": step / size}


def _penalty(step: float, size: float) -> dict[str, Any]:
    return {"penalty": size / (2.0 * step)}  # C = 1 / (2 penalty)


def _scale(step: float, _size: float) -> dict[str, Any]:
    return {"scale": step}


FAMILIES = {
    "labeling SVM": Family(LabelingSVM(), _weight, STEPS, printed="SSVM"),
    "structured SVM": Family(StructuredSVM(), _weight, STEPS, printed="SSVM", trial=TRIAL),
    "structured SVM, zero-one": Family(StructuredSVM(loss="zero-one"), _weight, STEPS, printed="SSVM", trial=TRIAL),
    "kernel CRF": Family(
        KernelCRF(),
        _penalty,
        STEPS,
        printed="CRF",
        readings={", Viterbi": {"decoding": "viterbi"}, ", marginals": {"decoding": "marginals"}},
    ),
}
PROCESSES = {
    MODELS[0]: Family(
        scaled(MODELS[0], 1.0),
        _scale,
        SCALES,
        kernels=("linear",),
        n_folds=3,
        printed=MODELS[0],
        readings={"": {"variance": "auto"}, MEANS: {"variance": "none"}},
        relatives={model: {"offsets": model} for model in MODELS[1:]},
    ),
}


class Outcome(NamedTuple):
    """What one method gave on one fold."""

    loss: float
    chosen: str
    wrong: float  # share of the labels of hidden training sentences, with what was chosen


class Training(NamedTuple):
    """Processor seconds of one training with what was chosen."""

    on_gram: float | None
    on_features: float | None
    passes: int | None


Key = tuple[str, str]  # method and kernel


@dataclass(eq=False)
class Measured:
    """What folds of a set gave, by method and kernel."""

    outcomes: dict[Key, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    trainings: dict[Key, list[Training]] = field(default_factory=lambda: defaultdict(list))

    def add(self, fold: Measured) -> None:
        for key, outcomes in fold.outcomes.items():
            self.outcomes[key] += outcomes
        for key, trainings in fold.trainings.items():
            self.trainings[key] += trainings

    def plain(self) -> Measured:
        """The same in ordinary dictionaries, which travel between processes."""
        return Measured(dict(self.outcomes), dict(self.trainings))

    def to_lists(self) -> list[list[list[Any]]]:
        """The same as JSON has it."""
        return [[[*key, rows] for key, rows in table.items()] for table in (self.outcomes, self.trainings)]

    @classmethod
    def from_lists(cls, lists: list[list[list[Any]]]) -> Measured:
        """The inverse of `to_lists`."""
        outcomes, trainings = lists
        return cls(
            {(name, kernel): [Outcome(*row) for row in rows] for name, kernel, rows in outcomes},
            {(name, kernel): [Training(*row) for row in rows] for name, kernel, rows in trainings},
        )


class FoldTask(NamedTuple):
    """One fold of one set, for a process of its own."""

    data: TokenSet
    fold: Fold
    quick: bool
    kept: Path | None = None  # where what it gives is kept until the end of the run


def margins(run: Run) -> Sequence[ResultTable]:
    """Losses of every method, and what a training takes."""
    papers, left_out = present_sets(run)
    kept = KeptFolds(None if run.quick else run.scratch / KEPT)
    sets: dict[Paper, Measured] = {}
    for paper in papers:
        data = paper.read(run, 1 if run.quick else PUBLISHED_FOLDS, 0)
        sets[paper] = Measured()
        tasks = [FoldTask(data, fold, run.quick, kept.path(_deciding(paper, fold))) for fold in data.folds]
        if n_known := sum(task.kept is not None and task.kept.is_file() for task in tasks):
            run.say(f"{paper.title}: {n_known} of {len(tasks)} folds are known from an earlier start")
        for number, fold in enumerate(side_by_side(_fold, tasks, inline=run.quick), 1):
            sets[paper].add(fold)
            run.say(f"{paper.title}: fold {number} of {len(tasks)}")
    tables = [_losses(sets, left_out), _trainings(sets)]
    kept.clear()
    return tables


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


def _fold(task: FoldTask) -> Measured:
    """What a fold gives, or gave an earlier start of this run."""
    if (known := load(task.kept)) is not None:
        return Measured.from_lists(known)
    measured = _measure_fold(task)
    save(task.kept, measured.to_lists())
    return measured


def _measure_fold(task: FoldTask) -> Measured:
    data, fold, measured = task.data, task.fold, Measured()
    for name, family in FAMILIES.items():
        for kernel in family.kernels:
            _measure_family(name, family, kernel, task, measured)
    (name, kernel), (best,) = min(measured.outcomes.items(), key=lambda one: one[1][0].wrong)
    measured.outcomes[BEST, ""].append(best._replace(chosen=f"{name} ({kernel})"))
    for decoding, found in (chosen_crfs(*data.packed(fold)) if has_crf() else {}).items():
        n_hidden = int(data.corpus.lengths[fold.train].sum())
        outcome = Outcome(data.loss(found.labels, fold.test), f"{found.c2:g}", found.wrong / n_hidden)
        measured.outcomes[CRFS[decoding], ""].append(outcome)
        measured.trainings[CRFS[decoding], ""].append(Training(None, found.seconds, None))
    for name, family in PROCESSES.items():
        _measure_family(name, family, family.kernels[0], task, measured)
    return measured.plain()


def _measure_family(name: str, family: Family, kernel: str, task: FoldTask, measured: Measured) -> None:
    data, fold, quick, is_cosine = task.data, task.fold, task.quick, KERNELS[kernel]
    chosen = choose(family, data, fold, is_cosine=is_cosine, quick=quick)
    gram, cross = data.grams(fold, is_cosine=is_cosine)
    labels = data.labels_of(fold.train)
    for relative, changes in {name: {}, **family.relatives}.items():
        own = Family(family.learner.fresh().set_params(**changes), family.constant, family.steps)
        models: dict[float, Any] = {}
        for reading, (step, wrong) in chosen.items():
            if step not in models:
                begin = process_time()
                (models[step],) = own.fits([step], gram, labels)
                seconds = process_time() - begin
                explicit = None if is_cosine else _seconds_on_features(models[step], data, fold)
                measured.trainings[relative, kernel].append(Training(seconds, explicit, _passes(models[step])))
            predicted = models[step].set_params(**family.readings[reading]).predict(cross)
            loss = data.loss(predicted, fold.test)
            measured.outcomes[relative + reading, kernel].append(Outcome(loss, f"{step:g}", wrong))


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


def _seconds_on_features(model: Any, data: TokenSet, fold: Fold) -> float | None:
    """Of the same training from explicit features, where the learner can."""
    if "dual" not in model.get_params():
        return None
    train, _ = data.packed(fold)
    begin = process_time()
    model.fresh().set_params(dual=False).fit(train)
    return process_time() - begin


def _passes(model: Any) -> int:
    """Passes over the Gram matrix: of an SVM, iterations of L-BFGS, sweeps of a Gaussian process."""
    trace = next(iter(model.traces().values()))
    return len(trace) - isinstance(model, KernelCRF)  # which begins with what was there before


def _losses(sets: Mapping[Paper, Measured], left_out: tuple[str, ...]) -> ResultTable:
    rows = [row for paper, measured in sets.items() for row in _loss_rows(paper, measured)]
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


def _loss_rows(paper: Paper, measured: Measured) -> Iterator[Row]:
    printed = paper.printed | dict(zip(MODELS, paper.losses, strict=True))
    for (name, kernel), outcomes in measured.outcomes.items():
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


def _trainings(sets: Mapping[Paper, Measured]) -> ResultTable:
    rows: list[Row] = []
    for paper, measured in sets.items():
        for (name, kernel), trainings in measured.trainings.items():
            columns = zip(*trainings, strict=True)
            rows.append((paper.title, name, kernel, *map(_mean, columns)))
    return ResultTable(
        "One training with what was chosen: processor seconds and passes, means over the folds",
        ("set", "method", "kernel", "Gram matrix, s", "features, s", "passes"),
        tuple(rows),
        (
            "Gram matrix: on the Gram matrix of the training sentences, which is there; features: the same learner on "
            "explicit features, with the linear kernel",
            "passes: over the training sentences to a duality gap of 1 % of the objective for SVMs, iterations of "
            "L-BFGS to 1e-5 of it for the kernel CRF, sweeps for Gaussian processes",
            NOTE,
        ),
    )


def _mean(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
