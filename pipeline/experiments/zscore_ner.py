"""The Z-score paper's named entities: five folds over the first 300 Spanish sentences of CoNLL-2002.

Ridges are chosen by inner folds inside the training part of each fold, never by what the fold holds out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.packing import Packed
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.operators.dense import DenseGram
from gramline.learners.parameters import Loss
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.token_features import feature_matrix
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.crossval.fold_spec import FoldSpec
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.grid import grid
from gramline.pipeline.crossval.nested import select_nested
from gramline.pipeline.crossval.training import HeldOut, fit_on_gram
from gramline.pipeline.crossval.validate import CrossValidation, assembled, cross_validate
from gramline.pipeline.experiments.base import Cell, ResultTable, Run
from gramline.pipeline.experiments.crf import MISSING_NOTE, crf_predictions, has_crf

FILE = "conll2002_es/esp.train.first300"
FEATURES = {"S1": "words", "S2": "spelling"}
PAPER = {
    "Z-score, both ridges": {"S1": 11.66, "S2": 8.01},
    "Z-score, Hamming": {"S1": 11.07, "S2": 7.89},
    "HM perceptron": {"S1": 20.99, "S2": 13.78},
    "CRF (python-crfsuite)": {"S1": 12.01, "S2": 8.29},
}
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TRANSITION_RIDGES = (1e2, 1e3, 1e4, 1e5, 1e6)
KERNEL_RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1)
INNER_FOLDS = 3
Settings = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """Means over the folds, and what was chosen on each."""

    error: float
    f1: float
    chosen: str = ""

    @classmethod
    def of(cls, found: CrossValidation) -> Outcome:
        return cls(float(found.table("hamming_loss").mean()), float(found.table("span_f1").mean()))


def zscore_ner(run: Run) -> Sequence[ResultTable]:
    """Error and F1 of every method on S1 and S2."""
    tables = []
    for set_name, features in FEATURES.items():
        corpus = read_conll(run.file(FILE), features=features)
        if run.quick:
            corpus = corpus.select(range(min(30, len(corpus))))
        trial = Trial(corpus, run, set_name)
        rows: list[tuple[Cell, ...]] = []
        for name, method in METHODS.items():
            run.say(f"{set_name}: {name}")
            outcome = method(trial)
            if outcome is not None:
                paper = PAPER.get(name, {}).get(set_name)
                rows.append((name, 100 * outcome.error, 100 * outcome.f1, paper, outcome.chosen))
        tables.append(_table(set_name, features, trial, tuple(rows)))
    return tables


def _table(set_name: str, features: str, trial: Trial, rows: tuple[tuple[Cell, ...], ...]) -> ResultTable:
    corpus, n_folds = trial.corpus, len(trial.outer)
    n_features = len(corpus.packed().vocabulary.features)
    return ResultTable(
        f"{set_name} ({features}, {n_features:,} features): {len(corpus)} sentences, {corpus.n_positions:,} tokens",
        ("method", "error %", "F1 %", "paper error %", "chosen ridges"),
        rows,
        (
            f"{n_folds} folds in the order of the file; error: wrong tokens, F1: named entities, means over the folds",
            f"ridges (emissions/transitions): chosen by {len(trial.inner) // n_folds} folds inside each training part",
            f"the features are our own set {features!r}, so paper and measured errors are not of the same features",
            *(() if has_crf() else (MISSING_NOTE,)),
        ),
    )


class Trial:
    """One feature set with its folds."""

    def __init__(self, corpus: Corpus, run: Run, name: str) -> None:
        self.corpus = corpus
        self.run = run
        self.name = name
        self.labels = corpus.labels
        spec = FoldSpec(3 if run.quick else 5)
        self.outer = spec.make(self.labels)
        self.inner = spec.inner(self.outer, 2 if run.quick else INNER_FOLDS, self.labels)

    def explicit(self, loss: Loss, transition_ridges: Sequence[float | None]) -> Outcome:
        """The Z-score on the features, its ridges chosen inside each training part."""
        settings = grid({"loss": (loss,), "ridge": self._ridges, "transition_ridge": transition_ridges})
        chosen = [self._explicit_settings.index(setting) for setting in settings]
        outer, inner = (
            assembled(settings, folds, self.labels, [outcomes[k] for k in chosen])
            for folds, outcomes in zip((self.outer, self.inner), self._explicit_outcomes, strict=True)
        )
        return self._chosen(settings, outer, inner)

    @property
    def _ridges(self) -> tuple[float, ...]:
        return RIDGES[3:5] if self.run.quick else RIDGES

    @cached_property
    def _explicit_settings(self) -> list[dict[str, Any]]:
        return grid(
            {"loss": ("none", "hamming"), "ridge": self._ridges, "transition_ridge": (None, *TRANSITION_RIDGES)}
        )

    @cached_property
    def _explicit_outcomes(self) -> tuple[list[list[HeldOut]], list[list[HeldOut]]]:
        """Predictions of every setting on the outer and on the inner folds; one solve per fold and ridge."""
        return self._fit_many(self.outer), self._fit_many(self.inner)

    def _fit_many(self, folds: Folds) -> list[list[HeldOut]]:
        outcomes: list[list[HeldOut]] = [[] for _ in self._explicit_settings]
        for fold in range(len(folds)):
            train = self.corpus.select(folds.training(fold)).packed()
            test = self.corpus.select(folds.held_out[fold]).without_labels().packed(like=train)
            learners = [ZScoreLabeler(tolerance=1e-5, **setting) for setting in self._explicit_settings]
            ZScoreLabeler.fit_many(learners, train)
            for found, learner in zip(outcomes, learners, strict=True):
                found.append(HeldOut(learner.predict(test)))
        return outcomes

    def kernelized(self, gram: DenseGram, learner: KernelZScoreLabeler) -> Outcome:
        """The kernel Z-score; all folds and ridges share the products with the Gram."""
        ridges, others = (KERNEL_RIDGES, TRANSITION_RIDGES) if not self.run.quick else ((0.03, 0.1), (1e3, 1e4))
        settings = grid({"ridge": ridges, "transition_ridge": others})
        return self._chosen(
            settings, *(self._fit_on_gram(gram, learner, settings, f) for f in (self.outer, self.inner))
        )

    def _fit_on_gram(
        self, gram: DenseGram, learner: KernelZScoreLabeler, settings: Settings, folds: Folds
    ) -> CrossValidation:
        jobs = [(setting, fold) for setting in settings for fold in range(len(folds))]
        learners = [learner.fresh().set_params(**setting) for setting, _ in jobs]
        found = fit_on_gram(learners, gram, self.labels, folds, [fold for _, fold in jobs])
        width = len(folds)
        outcomes = [found[k * width : (k + 1) * width] for k in range(len(settings))]
        return assembled(settings, folds, self.labels, outcomes)

    def _chosen(self, settings: Settings, outer: CrossValidation, inner: CrossValidation) -> Outcome:
        selected = select_nested(outer, inner, "hamming_loss")
        counts = Counter(_shown(settings[number]) for number in selected.chosen)
        chosen = ", ".join(f"{count} x {shown}" for shown, count in counts.most_common())
        return Outcome(selected.mean("hamming_loss"), selected.mean("span_f1"), chosen)

    def validated(self, learner: Any) -> Outcome:
        """A learner on the features as it is."""
        return Outcome.of(cross_validate(learner, self.corpus, self.labels, self.outer))

    def predicted(self, predict: Callable[[Packed, Packed], list[list[str]]]) -> Outcome:
        """Anything that labels test sequences given training sequences."""
        outcomes = []
        for fold in range(len(self.outer)):
            train = self.corpus.select(self.outer.training(fold)).packed()
            outcomes.append(HeldOut(predict(train, self.corpus.select(self.outer.held_out[fold]).packed(like=train))))
        return Outcome.of(assembled([{}], self.outer, self.labels, [outcomes]))

    @cached_property
    def polynomial(self) -> DenseGram:
        """(x . x' + 1)^2 between the feature rows of all positions, scaled to 1 on the diagonal."""
        packed = self.corpus.packed()
        features = feature_matrix(packed, len(packed.vocabulary.features))
        products = (features @ features.T).toarray()
        products += 1.0
        np.square(products, out=products)
        scale = 1.0 / np.sqrt(np.diagonal(products))
        products *= scale[:, None]
        products *= scale[None, :]
        return DenseGram(products, packed.lengths)


def _shown(setting: Mapping[str, Any]) -> str:
    other = setting.get("transition_ridge")
    return f"{setting['ridge']:g}" + ("" if other is None else f"/{other:.0e}".replace("e+0", "e"))


def _majority(train: Packed, test: Packed) -> list[list[str]]:
    most = train.vocabulary.labels[int(np.bincount(train.labels).argmax())]
    return [[most] * int(length) for length in test.lengths]


def _marginalized(trial: Trial) -> Outcome:
    kernel = SequenceLabeling(c=2.0, observation=Polynomial(2, normalized=True))
    rows, _ = kernel.prepared_pair(trial.corpus, None)
    return trial.kernelized(DenseGram(kernel.tile(rows, rows), rows.lengths), KERNEL_LEARNER)


KERNEL_LEARNER = KernelZScoreLabeler(tolerance=1e-4, preconditioner="none", unlabeled="drop")
METHODS: dict[str, Callable[[Trial], Outcome | None]] = {
    "most frequent label": lambda trial: trial.predicted(_majority),
    "Z-score, one ridge": lambda trial: trial.explicit("none", (None,)),
    "Z-score, both ridges": lambda trial: trial.explicit("none", TRANSITION_RIDGES),
    "Z-score, Hamming": lambda trial: trial.explicit("hamming", (None, *TRANSITION_RIDGES)),
    "kernel Z-score, Polynomial(2)": lambda trial: trial.kernelized(trial.polynomial, KERNEL_LEARNER),
    "kernel Z-score, marginalized": _marginalized,
    "HM perceptron": lambda trial: trial.validated(HiddenMarkovPerceptron(10)),
    "HM perceptron, averaged": lambda trial: trial.validated(HiddenMarkovPerceptron(10, average=True)),
    "CRF (python-crfsuite)": lambda trial: trial.predicted(crf_predictions) if has_crf() else None,
}
