"""The Z-score paper's named entities: five folds over the first 300 Spanish sentences of CoNLL-2002.

Ridges are chosen by inner folds inside the training part of each fold, never by what the fold holds out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.packing import Packed
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.arrays import Matrix
from gramline.learners.estimator import Loss
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.crossval.crf import CHOSEN_NOTE, CONSTANTS, MARGINALS, VITERBI, has_crf, missing_crf
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import grid
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.fold_trial import Method, Trial, between_positions, choice_counts

FILE = "conll2002_es/esp.train.first300"
FEATURES = {"S1": "words", "S2": "spelling"}
PAPER = {
    "Z-score, both ridges": {"S1": 11.66, "S2": 8.01},
    "Z-score, Hamming": {"S1": 11.07, "S2": 7.89},
    "HM perceptron": {"S1": 20.99, "S2": 13.78},
    "CRF (python-crfsuite), Viterbi": {"S1": 12.01, "S2": 8.29},
}
PRINTED_ALONE = {"MM, as printed": {"S1": 13.94, "S2": 9.04}, "MM (H), as printed": {"S1": 10.97, "S2": 8.11}}
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TRANSITION_RIDGES = (1e2, 1e3, 1e4, 1e5, 1e6)
KERNEL_RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1)
INNER_FOLDS = 3


def zscore_ner(run: Run) -> Sequence[ResultTable]:
    """Error and F1 of every method on S1 and S2."""
    tables = []
    for set_name, features in FEATURES.items():
        corpus = run.part(read_conll(run.file(FILE), features=features), 30)
        entities = Entities(corpus, run.quick)
        trial = entities.trial
        rows: list[Row] = []
        for name, make in METHODS.items():
            run.say(f"{set_name}: {name}")
            if (method := make(entities)) is not None:
                selection = trial.chosen(method)
                scores = [100 * selection.mean(metric) for metric in ("hamming_loss", "span_f1")]
                rows.append((name, *scores, PAPER.get(name, {}).get(set_name), choice_counts(method, selection)))
        rows += [(name, None, None, errors[set_name], "") for name, errors in PRINTED_ALONE.items()]
        n_features = len(corpus.packed().vocabulary.features)
        table = ResultTable(
            f"{set_name} ({features}, {n_features:,} features): {len(corpus)} sentences, {corpus.n_positions:,} tokens",
            ("method", "error %", "F1 %", "paper error %", "chosen"),
            tuple(rows),
            (
                f"{len(trial.outer)} folds in the order of the file; error: wrong tokens, F1: named entities, means "
                "over the folds",
                f"ridges (emissions/transitions): chosen by {trial.n_inner} folds inside each training part",
                f"the features are our own set {features!r}; the paper's S1 is the word alone, its S2 the word and its "
                "two neighbours, so paper and measured errors are not of the same features",
                "MM, MM (H): the paper's max-margin learner, C = 1, plain and with Hamming loss",
                *((f"{CHOSEN_NOTE} as the ridges are",) if has_crf() else missing_crf()),
            ),
        )
        tables.append(table)
    return tables


class Entities:
    """The sentences with one feature set, and their folds."""

    def __init__(self, corpus: Corpus, quick: bool) -> None:
        self.corpus = corpus
        self.quick = quick
        self.trial = Trial(corpus.labels, FoldSpec(3 if quick else 5), 2 if quick else INNER_FOLDS, "hamming_loss")

    def explicit(self, loss: Loss, transition_ridges: Sequence[float | None]) -> Method:
        """The Z-score on the features, its ridges chosen inside each training part."""
        settings, every = self._explicit
        wanted = [
            k
            for k, setting in enumerate(settings)
            if setting["loss"] == loss and setting["transition_ridge"] in transition_ridges
        ]
        return Method(tuple(every.settings[k] for k in wanted), tuple(every.outcomes[k] for k in wanted), every.seconds)

    @cached_property
    def _explicit(self) -> tuple[list[dict[str, Any]], Method]:
        """Predictions with every setting on all folds; one solve per fold and ridge."""
        ridges = RIDGES[3:5] if self.quick else RIDGES
        settings = grid({"loss": ("none", "hamming"), "ridge": ridges, "transition_ridge": (None, *TRANSITION_RIDGES)})
        begin, folds = perf_counter(), self.trial.folds
        outcomes: list[list[HeldOut]] = [[] for _ in settings]
        for fold in range(len(folds)):
            train = self.corpus.select(folds.training(fold)).packed()
            test = self.corpus.select(folds.held_out[fold]).without_labels().packed(like=train)
            learners = [ZScoreLabeler(tolerance=1e-5, **setting) for setting in settings]
            ZScoreLabeler.fit_many(learners, train)
            for row, learner in zip(outcomes, learners, strict=True):
                row.append(HeldOut(learner.predict(test)))
        seconds = (perf_counter() - begin) / (len(folds) * len(settings))
        return settings, Method(tuple(map(_ridges, settings)), tuple(map(tuple, outcomes)), seconds)

    def kernelized(self, kernel: Callable[[Corpus], Matrix]) -> Method:
        """The kernel Z-score; all folds and ridges share the products with the Gram. Priors take no part."""
        ridges, others = ((0.03, 0.1), (1e3, 1e4)) if self.quick else (KERNEL_RIDGES, TRANSITION_RIDGES)
        settings = grid({"ridge": ridges, "transition_ridge": others})
        return self.trial.on_gram(
            lambda: DenseGram(kernel(self.corpus), self.corpus.lengths), KERNEL_LEARNER, settings, _ridges
        )

    @cached_property
    def crfs(self) -> dict[str, Method]:
        """The CRF on the features, by decoding."""
        return self.trial.crfs(self.corpus, CONSTANTS[2:4] if self.quick else CONSTANTS) if has_crf() else {}

    def perceptron(self, **parameters: Any) -> Method:
        """The hidden Markov perceptron on the features."""
        return self.trial.on_corpus(self.corpus, HiddenMarkovPerceptron(10, **parameters))


def _ridges(setting: Mapping[str, Any]) -> str:
    other = setting.get("transition_ridge")
    return f"{setting['ridge']:g}" + ("" if other is None else f"/{other:.0e}".replace("e+0", "e"))


def _majority(train: Packed, test: Packed) -> list[list[str]]:
    most = train.vocabulary.labels[int(np.bincount(train.labels).argmax())]
    return [[most] * int(length) for length in test.lengths]


SEQUENCE_KERNEL = SequenceLabeling(c=2.0, observation=Polynomial(2, normalized=True))
KERNEL_LEARNER = KernelZScoreLabeler(
    tolerance=1e-4, preconditioner="none", unlabeled="drop", ridge=1e-2, transition_ridge=None
)
METHODS: dict[str, Callable[[Entities], Method | None]] = {
    "most frequent label": lambda entities: entities.trial.predicted(entities.corpus, _majority),
    "Z-score, one ridge": lambda entities: entities.explicit("none", (None,)),
    "Z-score, both ridges": lambda entities: entities.explicit("none", TRANSITION_RIDGES),
    "Z-score, Hamming": lambda entities: entities.explicit("hamming", (None, *TRANSITION_RIDGES)),
    "kernel Z-score, Polynomial(2)": lambda entities: entities.kernelized(between_positions),
    "kernel Z-score, marginalized": lambda entities: entities.kernelized(SEQUENCE_KERNEL.gram),
    "HM perceptron": lambda entities: entities.perceptron(average=False),
    "HM perceptron, averaged": lambda entities: entities.perceptron(average=True),
    "CRF (python-crfsuite), Viterbi": lambda entities: entities.crfs.get(VITERBI),
    "CRF (python-crfsuite), marginals": lambda entities: entities.crfs.get(MARGINALS),
}
