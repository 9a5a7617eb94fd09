"""What simple models score on the folds of a run: a hidden Markov perceptron and a CRF on the same features.

A setting is worth its Gram matrix when it does better than they do. They read the positions of every structure as a
chain, also those of trees and graphs. One is left out where it would take long: its work is known before it begins,

    work = sum over folds and their training positions of (features of the position + labels) * labels,

the multiplications of one pass, and never depends on how fast the machine is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.errors import LearnerError
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.token_features import chosen_sequences, training_sequences
from gramline.pipeline.crossval.crf import NOT_INSTALLED, best_crf_predictions, has_crf
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.job import JobData
from gramline.pipeline.crossval.summary import fold_scores
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.training_time import SAMPLE_POSITIONS
from gramline.pipeline.crossval.validate import assembled
from gramline.pipeline.errors import first_line
from gramline.pipeline.events import Listener, Message, silent
from gramline.pipeline.models.demand import spread_sample

VERSION = 2  # of what is computed here; older rows are computed again
NO_CORPUS = "the features are not known: the run was made from a Gram matrix without its corpus"


@dataclass(frozen=True)
class Baseline:
    """A model that is trained on chains of features."""

    name: str
    predict: Callable[[Packed, Packed], list[list[str]]]  # (training, held out) -> labels
    largest_work: float  # above it a run leaves it out
    note: str = ""  # what a report says of it


def perceptron_predictions(train: Packed, test: Packed) -> list[list[str]]:
    """Labels of the test sequences by a hidden Markov perceptron with its usual parameters."""
    return HiddenMarkovPerceptron().fit(train).predict(test)


# At their limits the perceptron takes a quarter of a minute and the CRF half a minute on one core: 0.16 s and 4 s were
# measured for a work of 1.2e7; choosing its constant trains it on half of the sequences eight more times.
PERCEPTRON = Baseline("hidden Markov perceptron", perceptron_predictions, 1e9)
CRF = Baseline(
    "CRF",
    best_crf_predictions,
    2e7,
    "CRF: its constant c2, and whether it labels by the best path or by the best label of every position, are chosen "
    "by folds of each training part.",
)
BASELINES = (PERCEPTRON, CRF)


def baseline_scores(
    data: JobData,
    folds: Folds,
    *,
    dummy: str | None,
    before: Mapping[str, Any] | None = None,
    computes: bool = True,
    progress: Listener = silent,
) -> dict[str, Any] | None:
    """{"digest", "rows": name, scores, seconds and note of each, "left_out": name and reason}, JSON-able.

    What an earlier call gave for the same structures and folds is taken from `before`. None when nothing is known and
    it does not `compute`.
    """
    digest = _digest(data, folds, dummy)
    if before is not None and before.get("digest") == digest:
        return dict(before)
    if not computes:
        return None
    if data.corpus is None:
        return {
            "digest": digest,
            "rows": [],
            "left_out": [{"name": one.name, "reason": NO_CORPUS} for one in BASELINES],
        }
    packed = data.corpus.packed()
    rows, left_out = [], []
    work = baseline_work(packed, folds)
    for one in BASELINES:
        reason = _reason_against(one, work)
        if reason is None:
            progress(Message(f"comparing with a {one.name} on the same features and folds"))
            begin = perf_counter()
            try:
                outcomes = _outcomes(one, packed, folds)
            except LearnerError as error:
                reason = first_line(error)
            else:
                scores = fold_scores(assembled([{}], folds, data.labels, [outcomes], dummy=dummy), 0)
                seconds = perf_counter() - begin
                rows.append({"name": one.name, "scores": scores, "seconds": seconds, "note": one.note})
        if reason is not None:
            left_out.append({"name": one.name, "reason": reason})
    return {"digest": digest, "rows": rows, "left_out": left_out}


def planned_baselines(data: JobData, folds: Folds) -> list[dict[str, Any]]:
    """Name and seconds of every baseline, measured on a sample; None and the reason where it will be left out."""
    if data.corpus is None:
        return []
    packed = data.corpus.packed()
    work = baseline_work(packed, folds)
    sampled = chosen_sequences(packed, spread_sample(packed.lengths, SAMPLE_POSITIONS))
    rows = []
    for one in BASELINES:
        reason, seconds = _reason_against(one, work), None
        if reason is None:
            try:
                few = training_sequences(sampled, "drop")
                one.predict(few, few)  # loads compiled code
                begin = perf_counter()
                one.predict(few, few)
                seconds = (perf_counter() - begin) * work / _structure_work(few).sum()
            except LearnerError as error:
                reason = first_line(error)
        rows.append({"name": one.name, "seconds": seconds, "reason": reason})
    return rows


def left_out_sentences(known: Mapping[str, Any]) -> list[str]:
    """Which baselines are missing and why, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for row in known["left_out"]:
        reasons.setdefault(row["reason"], []).append(row["name"])
    return [f"no {' and no '.join(names)} to compare with: {reason}" for reason, names in reasons.items()]


def baseline_work(packed: Packed, folds: Folds) -> float:
    """Multiplications of one pass over the training positions of all folds."""
    per_structure = _structure_work(packed)
    return float(sum(per_structure[folds.training(fold)].sum() for fold in range(len(folds))))


def _structure_work(packed: Packed) -> NDArray[np.float64]:
    """Of one pass over every structure, shape (n_structures,)."""
    each = (np.diff(packed.features.indptr) + packed.n_labels) * float(packed.n_labels)
    before = np.concatenate([[0.0], np.cumsum(each)])
    return np.asarray(before[packed.starts[1:]] - before[packed.starts[:-1]])


def _reason_against(one: Baseline, work: float) -> str | None:
    if one is CRF and not has_crf():
        return NOT_INSTALLED
    if work > one.largest_work:
        times = work / one.largest_work
        return f"it would take long: {times:,.1f} times the work that a run spends on it without being asked"
    return None


def _outcomes(one: Baseline, packed: Packed, folds: Folds) -> list[HeldOut]:
    """Predictions of every fold; structures that miss a label are not trained on."""
    outcomes = []
    for fold in range(len(folds)):
        train = training_sequences(chosen_sequences(packed, folds.training(fold)), "drop")
        outcomes.append(HeldOut(one.predict(train, chosen_sequences(packed, folds.held_out[fold]))))
    return outcomes


def _digest(data: JobData, folds: Folds, dummy: str | None) -> str:
    """Of everything that decides the scores."""
    parts = [[folds.held_out[fold].tolist(), folds.hidden(fold).tolist()] for fold in range(len(folds))]
    known = [VERSION, data.fingerprint, dummy, has_crf(), [one.largest_work for one in BASELINES], parts]
    return hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
