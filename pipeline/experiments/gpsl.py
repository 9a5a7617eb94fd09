"""The Gaussian-process labeler on the four CRF++ sets: losses, times, decoding, missing labels and calibration.

Every fold trains on the linear kernel of its training sentences and is tested on the others, as published.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Cell, ResultTable, Run
from gramline.pipeline.experiments.crf import MISSING_NOTE, has_crf, trained_tagger
from gramline.pipeline.experiments.gpsl_data import FeatureSet, Fold, Source
from gramline.pipeline.experiments.gpsl_figure import missing_labels_picture

MODELS = ("GPSL1", "GPSL2", "GPSL4")
SCALE = 3.0  # of the linear kernel, for every set
CRF = "CRF, python-crfsuite"  # with its defaults
LEARNED = "GPSL1, scale learned"
JENSEN = ", Jensen's bound"  # the paper's training, at scale 1
EXTRA_MODELS = (*(name + JENSEN for name in MODELS), LEARNED)  # on the published folds only
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
MISSING_MODEL = "GPSL2"
PUBLISHED_FOLDS, DRAWN_FOLDS = 5, 5
BINS = 10


@dataclass(frozen=True)
class Paper:
    """A set, and what is known of it: Hamming losses in per cent, seconds of one training."""

    title: str
    source: Source
    losses: tuple[float, float, float]  # GPSL1, GPSL2, GPSL4
    seconds: float  # GPSL1
    crf: float  # not the paper's, as the next two: measured on the five published folds
    best: float  # the best of structural SVMs and a Gaussian process per token
    peer_seconds: float | None  # that Gaussian process, scikit-learn's, per fold


SETS = (
    Paper("Segmentation", Source("segmentation", "splits_36.txt", 20), (23.45, 23.51, 23.53), 17, 16.02, 14.96, 2.5),
    Paper("Chunking", Source("chunking", "splits_100.txt", 50), (13.02, 12.69, 12.70), 1090, 8.46, 7.91, 12),
    Paper("Japanese NE", Source("japanesene", "splits_100.txt", 50), (8.26, 7.86, 7.82), 1240, 5.60, 4.75, None),
    Paper("Base NP", Source("basenp", "splits_300.txt", 150), (5.73, 5.55, 5.54), 6010, 4.91, 4.86, 68),
)


@dataclass
class Measured:
    """What the folds of one set gave, by model."""

    losses: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    viterbi: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    confidences: dict[str, list[NDArray[np.float64]]] = field(default_factory=lambda: defaultdict(list))
    hits: dict[str, list[NDArray[np.bool_]]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[float, list[float]] = field(default_factory=lambda: defaultdict(list))


def gpsl(run: Run) -> Sequence[ResultTable]:
    """Tables 1 and 3 and figure 2 of the paper, and the calibration of the label probabilities."""
    there, left_out = present_sets(run)
    # The matrices are small enough for one core; waiting threads would only be in the way of other processes.
    with one_blas_thread():
        found = {paper: _measure(run, paper) for paper in there}
    return [
        _losses(run, found, left_out),
        _seconds(found),
        _decoding(found),
        _missing(found),
        _calibration(found),
    ]


def present_sets(run: Run) -> tuple[list[Paper], tuple[str, ...]]:
    """The sets that the data folder holds, of all or (quick) of the smallest one; a note for each that is missing."""
    wanted = [paper for paper in SETS if not run.quick or paper.title == "Segmentation"]
    there = [paper for paper in wanted if paper.source.is_there(run)]
    if not there:
        raise InputError(f"{run.data} holds none of {', '.join(wanted[0].source.files)}; --data must name their folder")
    return there, tuple(f"{paper.title} is not in the data folder: left out" for paper in wanted if paper not in there)


def _measure(run: Run, paper: Paper) -> Measured:
    n_published, n_drawn = (1, 0) if run.quick else (PUBLISHED_FOLDS, DRAWN_FOLDS)
    data = paper.source.read(run, n_published, n_drawn)
    measured = Measured()
    for number, fold in enumerate(data.folds):
        run.say(f"{paper.title}: fold {number + 1} of {len(data.folds)}")
        is_published = number < n_published
        for name in MODELS + (EXTRA_MODELS if is_published else ()):
            _measure_model(name, data, fold, measured)
        if has_crf():
            _measure_crf(data, fold, measured)
        if is_published:
            for fraction in FRACTIONS[-1:] if run.quick else FRACTIONS:
                measured.missing[fraction].append(_missing_loss(data, fold, fraction, [run.seed, number]))
    return measured


def labeler(name: str) -> GaussianProcessLabeler:
    """The untrained labeler of a row: one of MODELS or of EXTRA_MODELS."""
    offsets = name.partition(",")[0]
    if name == LEARNED:
        return GaussianProcessLabeler(offsets=offsets, bound="expected", learn_scale="shared")
    if name.endswith(JENSEN):
        return GaussianProcessLabeler(offsets=offsets, bound="jensen")
    return GaussianProcessLabeler(offsets=offsets, bound="expected", scale=SCALE)


def _measure_model(name: str, data: FeatureSet, fold: Fold, measured: Measured) -> None:
    gram, cross = data.grams(fold)
    known = flat(data.labels_of(fold.test))
    begin = perf_counter()
    model = labeler(name)
    model.fit(gram, data.labels_of(fold.train))
    measured.seconds[name].append(perf_counter() - begin)
    _test(model, cross, known, measured, name)
    if name.startswith("GPSL1") and name != LEARNED:
        model.set_params(decoding="viterbi")
        measured.viterbi[name].append(float((flat(model.predict(cross)) != known).mean()))


def _measure_crf(data: FeatureSet, fold: Fold, measured: Measured) -> None:
    train, test = data.features_of(fold.train), data.features_of(fold.test)
    begin = perf_counter()
    with trained_tagger(train, data.labels_of(fold.train)) as tagger:
        measured.seconds[CRF].append(perf_counter() - begin)
        found = [tagger.tag(sentence) for sentence in test]
    measured.losses[CRF].append(float((flat(found) != flat(data.labels_of(fold.test))).mean()))


def _test(model: GaussianProcessLabeler, cross: DenseGram, known: NDArray[np.str_], out: Measured, name: str) -> None:
    """Loss and confidences of the refined scores."""
    probabilities = model.predict_proba(cross)
    right = np.array(model.label_names_)[probabilities.argmax(axis=1)] == known
    out.losses[name].append(float(1 - right.mean()))
    out.confidences[name].append(probabilities.max(axis=1))
    out.hits[name].append(right)


def _missing_loss(data: FeatureSet, fold: Fold, fraction: float, seed: list[int]) -> float:
    """The loss after so many training labels, drawn at random, were forgotten; more of them include the fewer."""
    labels = data.labels_of(fold.train)
    lengths = data.lengths[fold.train]
    order = np.random.default_rng(seed).permutation(int(lengths.sum()))
    forgotten = np.zeros(len(order), bool)
    forgotten[order[: round(fraction * len(order))]] = True
    masks = np.split(forgotten, np.cumsum(lengths)[:-1])
    partial = [
        [None if gone else label for label, gone in zip(row, mask, strict=True)]
        for row, mask in zip(labels, masks, strict=True)
    ]
    gram, cross = data.grams(fold)
    model = labeler(MISSING_MODEL).fit(gram, partial)
    return float((flat(model.predict(cross)) != flat(data.labels_of(fold.test))).mean())


def _losses(run: Run, found: dict[Paper, Measured], left_out: tuple[str, ...]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for paper, measured in found.items():
        for name, values in measured.losses.items():
            published = dict(zip(MODELS, paper.losses, strict=True)).get(name.removesuffix(JENSEN))
            given = 100 * float(np.mean(values[:PUBLISHED_FOLDS]))
            rows.append((paper.title, name, len(values), *per_cent(values), given, published, paper.crf, paper.best))
    return ResultTable(
        "Table 1: Hamming loss in per cent",
        ("set", "model", "folds", "loss", "dev.", "published folds", "paper", "CRF", "best peer"),
        tuple(rows),
        (
            f"linear kernel, K(s, t) = number of shared features; GPSL1/2/4: scale {SCALE:g}, the expected normaliser",
            "Jensen's bound: the paper's training, scale 1; scale learned: by the bound, from 1",
            f"published folds: mean of the first {1 if run.quick else PUBLISHED_FOLDS}; the others are drawn with "
            "the seed, the paper's own are not published",
            "columns CRF, best peer: measured on the five published folds, apart from this program",
            *([] if has_crf() else [MISSING_NOTE]),
            *left_out,
        ),
    )


def _seconds(found: dict[Paper, Measured]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for paper, measured in found.items():
        for name, values in measured.seconds.items():
            known = (paper.seconds, paper.peer_seconds) if name == "GPSL1" else (None, None)
            rows.append((paper.title, name, float(np.mean(values)), max(values), *known))
    return ResultTable(
        "Training time per fold in seconds",
        ("set", "model", "mean", "longest", "paper", "scikit-learn"),
        tuple(rows),
        ("one core; the paper's machine is another one; scikit-learn: its Gaussian process per token",),
    )


def _decoding(found: dict[Paper, Measured]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = [
        (paper.title, name, *per_cent(measured.losses[name]), *per_cent(values))
        for paper, measured in found.items()
        for name, values in measured.viterbi.items()
    ]
    return ResultTable(
        "Table 3: GPSL1 by refined scores (Algorithm 2) and by Viterbi, Hamming loss in per cent",
        ("set", "model", "refined", "dev.", "Viterbi", "dev. of it"),
        tuple(rows),
    )


def _missing(found: dict[Paper, Measured]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = [
        (paper.title, fraction, len(values), *per_cent(values))
        for paper, measured in found.items()
        for fraction, values in measured.missing.items()
    ]
    lines = {
        paper.title: [(fraction, 100 * float(np.mean(values))) for fraction, values in measured.missing.items()]
        for paper, measured in found.items()
    }
    return ResultTable(
        f"Figure 2: Hamming loss in per cent with missing training labels, {MISSING_MODEL}",
        ("set", "fraction missing", "folds", "loss", "dev."),
        tuple(rows),
        ("labels are forgotten at random, on the published folds",),
        picture=missing_labels_picture(lines),
    )


def _calibration(found: dict[Paper, Measured]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for paper, measured in found.items():
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


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """sum over bins of (share of the tokens in it) |mean confidence - share that was right|."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(right))


def per_cent(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and deviation over folds, times 100."""
    return 100 * float(np.mean(values)), 100 * float(np.std(values, ddof=1)) if len(values) > 1 else None


def flat(labels: list[list[str]]) -> NDArray[np.str_]:
    """The labels of all tokens, one after another."""
    return np.array([label for row in labels for label in row])
