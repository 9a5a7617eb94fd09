"""The Gaussian-process labeler on the four CRF++ sets: losses, times, decoding, missing labels and calibration.

Every fold trains on the linear kernel of its training sentences and is tested on the others, as published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.crossval.crf import CHOOSING_FOLDS, CHOSEN_NOTE, DECODINGS, chosen_crfs, has_crf, missing_crf
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet, present_sets
from gramline.pipeline.experiments.side_by_side import NOTE, side_by_side
from gramline.pipeline.reporting.charts import Axis, Plane, Point, named_lines
from gramline.pipeline.reporting.content import BINS, calibration_error

MODELS = ("GPSL1", "GPSL2", "GPSL4")
SCALE = 3.0  # of the linear kernel, for every set
CRF = "CRF, python-crfsuite"
CRFS = {decoding: f"{CRF}, {decoding}" for decoding in DECODINGS}
LEARNED = "GPSL1, scale learned"
JENSEN = ", Jensen's bound"  # the paper's training, at scale 1
MEANS = ", means"  # the softmax of expected functions, the other reading of the paper's prediction
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
MISSING_MODEL = "GPSL2"
PUBLISHED_FOLDS, DRAWN_FOLDS = 5, 5
PEER_NOTE = "CRF, best peer: measured on the five published folds, apart from this program"
CRF_NOTE = f"{CHOSEN_NOTE} by {CHOOSING_FOLDS} folds of the training sentences"


@dataclass(eq=False)
class Measured:
    """What the folds of one set gave, by model."""

    losses: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    viterbi: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    confidences: dict[str, list[NDArray[np.float64]]] = field(default_factory=lambda: defaultdict(list))
    hits: dict[str, list[NDArray[np.bool_]]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[float, list[float]] = field(default_factory=lambda: defaultdict(list))  # by fraction

    def add(self, fold: Measured) -> None:
        """What one more fold gave."""
        for one in fields(self):
            for name, values in getattr(fold, one.name).items():
                getattr(self, one.name)[name] += values

    def plain(self) -> Measured:
        """The same in ordinary dictionaries, which travel between processes."""
        return Measured(*(dict(getattr(self, one.name)) for one in fields(self)))


class FoldTask(NamedTuple):
    """One fold of one set, for a process of its own."""

    data: TokenSet
    number: int
    is_published: bool
    fractions: Sequence[float]  # of training labels that are forgotten, in turn
    seed: int

    @property
    def fold(self) -> Fold:
        return self.data.folds[self.number]


def gpsl(run: Run) -> Sequence[ResultTable]:
    """Tables 1 and 3 and figure 2 of the paper, and the calibration of the label probabilities."""
    papers, left_out = present_sets(run)
    sets = {paper: _measure(run, paper) for paper in papers}
    return [_losses(run, sets, left_out), _seconds(sets), _decoding(sets), _missing(sets), _calibration(sets)]


def _measure(run: Run, paper: Paper) -> Measured:
    n_published, n_drawn = (1, 0) if run.quick else (PUBLISHED_FOLDS, DRAWN_FOLDS)
    data = paper.read(run, n_published, n_drawn)
    fractions = FRACTIONS[-1:] if run.quick else FRACTIONS
    tasks = [FoldTask(data, k, k < n_published, fractions, run.seed) for k in range(len(data.folds))]
    measured = Measured()
    for number, fold in enumerate(side_by_side(_measure_fold, tasks, inline=run.quick), 1):
        measured.add(fold)
        run.say(f"{paper.title}: fold {number} of {len(tasks)}")
    return measured


def _measure_fold(task: FoldTask) -> Measured:
    data, fold, measured = task.data, task.fold, Measured()
    for name, untrained in (LABELERS | (EXTRA_LABELERS if task.is_published else {})).items():
        _measure_model(name, untrained.fresh(), data, fold, measured)
    if has_crf():
        _measure_crf(data, fold, measured)
    for fraction in task.fractions if task.is_published else ():
        measured.missing[fraction].append(_missing_loss(data, fold, fraction, [task.seed, task.number]))
    return measured.plain()


def scaled(offsets: str, scale: float) -> GaussianProcessLabeler:
    """The untrained labeler of one of MODELS at a scale."""
    return GaussianProcessLabeler(offsets=offsets, bound="expected", scale=scale)


LABELERS = {name: scaled(name, SCALE) for name in MODELS}
EXTRA_LABELERS = {  # on the published folds only
    **{name + JENSEN: GaussianProcessLabeler(offsets=name, bound="jensen", scale=1.0) for name in MODELS},
    LEARNED: GaussianProcessLabeler(offsets=MODELS[0], bound="expected", learn_scale="shared", scale=1.0),
}


def predict_fold(model: GaussianProcessLabeler, data: TokenSet, fold: Fold) -> list[list[str]]:
    """Labels of the held-out sentences by such a model, trained on the others."""
    gram, cross = data.grams(fold)
    return model.fresh().fit(gram, data.labels_of(fold.train)).predict(cross)


def _measure_model(name: str, model: GaussianProcessLabeler, data: TokenSet, fold: Fold, measured: Measured) -> None:
    gram, cross = data.grams(fold)
    begin = perf_counter()
    model.fit(gram, data.labels_of(fold.train))
    measured.seconds[name].append(perf_counter() - begin)
    readings = {name: "auto"} if name == LEARNED else {name: "auto", name + MEANS: "none"}
    for reading, variance in readings.items():
        model.set_params(variance=variance)
        probabilities = model.predict_proba(cross)  # of the refined scores
        right = data.is_right([np.array(model.label_names_)[probabilities.argmax(axis=1)]], fold.test)
        measured.losses[reading].append(float(1 - right.mean()))
        measured.confidences[reading].append(probabilities.max(axis=1))
        measured.hits[reading].append(right)
        if name.startswith("GPSL1") and name != LEARNED:
            by_path = model.set_params(decoding="viterbi").predict(cross)
            measured.viterbi[reading].append(data.loss(by_path, fold.test))
            model.set_params(decoding="refined")


def _measure_crf(data: TokenSet, fold: Fold, measured: Measured) -> None:
    for decoding, found in chosen_crfs(*data.packed(fold)).items():
        measured.seconds[CRFS[decoding]].append(found.seconds)
        measured.losses[CRFS[decoding]].append(data.loss(found.labels, fold.test))


def _missing_loss(data: TokenSet, fold: Fold, fraction: float, seed: list[int]) -> float:
    """The loss with a random fraction of the training labels missing; a larger fraction includes a smaller one."""
    train = data.corpus.select(fold.train)
    order = np.random.default_rng(seed).permutation(train.n_positions)
    forgotten = np.isin(np.arange(len(order)), order[: round(fraction * len(order))])
    known = [
        [None if gone else label for label, gone in zip(labels, mask, strict=True)]
        for labels, mask in zip(train.labels, train.by_structure(forgotten), strict=True)
    ]
    gram, cross = data.grams(fold)
    return data.loss(LABELERS[MISSING_MODEL].fresh().fit(gram, known).predict(cross), fold.test)


def _losses(run: Run, sets: Mapping[Paper, Measured], left_out: tuple[str, ...]) -> ResultTable:
    rows: list[Row] = []
    for paper, measured in sets.items():
        for name, values in measured.losses.items():
            model = name.removesuffix(MEANS).removesuffix(JENSEN)
            published = dict(zip(MODELS, paper.losses, strict=True)).get(model)
            given = 100 * float(np.mean(values[:PUBLISHED_FOLDS]))
            rows.append((paper.title, name, len(values), *per_cent(values), given, published, paper.crf, paper.best))
        rows += [
            (paper.title, f"{name}, as printed", None, None, None, None, loss, paper.crf, paper.best)
            for name, loss in paper.printed.items()
        ]
    return ResultTable(
        "Table 1: Hamming loss in per cent",
        ("set", "model", "folds", "loss", "dev.", "published folds", "paper", "CRF", "best peer"),
        tuple(rows),
        (
            f"linear kernel, K(s, t) = number of shared features; GPSL1/2/4: scale {SCALE:g}, the expected normaliser",
            "Jensen's bound: the paper's training, scale 1; scale learned: by the bound, from 1",
            "means: the same fits, predicted by the softmax of the expected functions, as the paper's text says; "
            "otherwise with their variances, as its formulas print",
            "as printed: the paper's own CRF, structural SVM and GPstruct on its 10 partitions",
            f"published folds: mean of the first {1 if run.quick else PUBLISHED_FOLDS}; the others are drawn with "
            "the seed, the paper's own are not published",
            f"columns {PEER_NOTE}",
            *((CRF_NOTE,) if has_crf() else missing_crf()),
            *left_out,
        ),
    )


def _seconds(sets: Mapping[Paper, Measured]) -> ResultTable:
    rows: list[Row] = []
    for paper, measured in sets.items():
        for name, values in measured.seconds.items():
            known = (paper.seconds, paper.peer_seconds) if name == "GPSL1" else (None, None)
            rows.append((paper.title, name, float(np.mean(values)), max(values), *known))
    return ResultTable(
        "Training time per fold in seconds",
        ("set", "model", "mean", "longest", "paper", "scikit-learn"),
        tuple(rows),
        (
            NOTE,
            "one training, without the choice of a constant; the paper's machine is another one; scikit-learn: its "
            "Gaussian process per token",
        ),
    )


def _decoding(sets: Mapping[Paper, Measured]) -> ResultTable:
    rows: list[Row] = [
        (paper.title, name, *per_cent(measured.losses[name]), *per_cent(values))
        for paper, measured in sets.items()
        for name, values in measured.viterbi.items()
    ]
    return ResultTable(
        "Table 3: GPSL1 by refined scores (Algorithm 2) and by Viterbi, Hamming loss in per cent",
        ("set", "model", "refined", "dev.", "Viterbi", "dev. of it"),
        tuple(rows),
    )


def _missing(sets: Mapping[Paper, Measured]) -> ResultTable:
    rows: list[Row] = []
    lines: dict[str, list[Point]] = defaultdict(list)
    for paper, measured in sets.items():
        for fraction, values in measured.missing.items():
            mean, deviation = per_cent(values)
            rows.append((paper.title, fraction, len(values), mean, deviation))
            lines[paper.title].append((fraction, mean))
    points = [point for line in lines.values() for point in line]
    across = Axis("fraction of training labels missing", 0, 1.3 * max(x for x, _ in points))  # room for the names
    plane = Plane(across, Axis("Hamming loss, %", 0, max(y for _, y in points)))
    return ResultTable(
        f"Figure 2: Hamming loss in per cent with missing training labels, {MISSING_MODEL}",
        ("set", "fraction missing", "folds", "loss", "dev."),
        tuple(rows),
        ("labels are forgotten at random, on the published folds",),
        picture=str(named_lines(lines, plane, "Hamming loss over the fraction of missing labels")),
    )


def _calibration(sets: Mapping[Paper, Measured]) -> ResultTable:
    rows: list[Row] = []
    for paper, measured in sets.items():
        for name in measured.hits:
            confidence, right = np.concatenate(measured.confidences[name]), np.concatenate(measured.hits[name])
            error = calibration_error(confidence, right)
            rows.append((paper.title, name, len(right), float(confidence.mean()), float(right.mean()), error))
    return ResultTable(
        "Calibration of the label probabilities on held-out tokens",
        ("set", "model", "tokens", "confidence", "right", "expected calibration error"),
        tuple(rows),
        (f"probability of the best label, {BINS} bins of equal width, all folds together",),
    )


def per_cent(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and deviation over folds, times 100."""
    return 100 * float(np.mean(values)), 100 * float(np.std(values, ddof=1)) if len(values) > 1 else None
