"""What one training of every method of the margins experiment takes, one after another on one core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.pipeline.crossval.crf import crfs
from gramline.pipeline.experiments.base import Cell, ResultTable, Row
from gramline.pipeline.experiments.gpsl import CRFS
from gramline.pipeline.experiments.gpsl_sets import Fold, Paper, TokenSet
from gramline.pipeline.experiments.margin_families import FAMILIES, KERNELS, PROCESSES, Family

TIMED_FOLDS = 2  # the first ones of every set

Key: TypeAlias = tuple[str, str]  # method and kernel


class Training(NamedTuple):
    """Processor seconds of one training with what was chosen."""

    on_gram: float | None
    on_features: float | None
    passes: int | None


Times: TypeAlias = dict[Key, list[Training]]


def timed(data: TokenSet, chosen: Sequence[Mapping[Key, float]]) -> Times:
    """Trainings of the first folds of a set; `chosen` are the constants of its folds by method."""
    times: Times = {}
    with one_blas_thread():
        for fold, steps in list(zip(data.folds, chosen, strict=False))[:TIMED_FOLDS]:
            for name, family in [*FAMILIES.items(), *PROCESSES.items()]:
                first = next(iter(family.readings))  # its constant; the other readings are of such a training, too
                for kernel in family.kernels:
                    for relative, own in family.alike(name).items():
                        training = _training(own, steps[relative + first, kernel], kernel, data, fold)
                        times.setdefault((relative, kernel), []).append(training)
            for name in CRFS.values():
                if (name, "") in steps:
                    (found,) = crfs(*data.packed(fold), [steps[name, ""]])
                    times.setdefault((name, ""), []).append(Training(None, found.seconds, None))
    return times


def _training(family: Family, step: float, kernel: str, data: TokenSet, fold: Fold) -> Training:
    gram, _ = data.grams(fold, is_cosine=KERNELS[kernel])
    labels = data.labels_of(fold.train)
    begin = process_time()
    (model,) = family.fits([step], gram, labels)
    on_gram = process_time() - begin
    on_features = None
    if kernel == "linear" and "dual" in model.get_params():
        train, _ = data.packed(fold)
        begin = process_time()
        model.fresh().set_params(dual=False).fit(train)
        on_features = process_time() - begin
    return Training(on_gram, on_features, _passes(model))


def _passes(model: Any) -> int:
    """Passes over the Gram matrix: of an SVM, iterations of L-BFGS, sweeps of a Gaussian process."""
    trace = next(iter(model.traces().values()))
    return len(trace) - isinstance(model, KernelCRF)  # which begins with what was there before


def times_table(sets: Mapping[Paper, Times]) -> ResultTable:
    rows: list[Row] = []
    for paper, times in sets.items():
        for (name, kernel), trainings in times.items():
            rows.append((paper.title, name, kernel, *map(_mean, zip(*trainings, strict=True))))
    return ResultTable(
        "One training with what was chosen: processor seconds and passes",
        ("set", "method", "kernel", "Gram matrix, s", "features, s", "passes"),
        tuple(rows),
        (
            "programs are loaded before",
            f"means over the first {TIMED_FOLDS} folds of a set, one training after another on one core",
            "Gram matrix: on the Gram matrix of the training sentences, which is there; features: the same learner on "
            "explicit features, with the linear kernel",
            "passes: over the training sentences to a duality gap of 1 % of the objective for SVMs, iterations of "
            "L-BFGS to 1e-5 of it for the kernel CRF, sweeps for Gaussian processes",
        ),
    )


def _mean(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
