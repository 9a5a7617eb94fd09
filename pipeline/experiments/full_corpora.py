"""Whole corpora without a stored matrix: exact training on all of CoNLL-2002 Spanish and of CoNLL-2000 chunking.

Every method runs in a process of its own, so that its processor time and its memory are its own.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.observations.features import Linear, Polynomial
from gramline.kernels.packing import Packed
from gramline.kernels.positions import PositionKernel
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.chosen_constants import ChoosesConstant
from gramline.learners.estimator import Learner
from gramline.learners.labels import Labels
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.metrics import evaluate
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.cost import peak_bytes
from gramline.pipeline.crossval.crf import (
    DECODINGS,
    DEFAULT_C2,
    FEW_CONSTANTS,
    FEW_FOLDS,
    MARGINALS,
    VITERBI,
    chosen_constants,
    decoded,
    has_crf,
    missing_crf,
    named_features,
    named_labels,
    trained_tagger,
)
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.models.model import Model

WINDOW = 1  # neighbours whose features count as well
QUICK = 60  # sentences
CRF = "CRF, python-crfsuite"
CHOOSING = 3000  # of the first training sentences, for a constant that is chosen
Predict = Callable[[Corpus], dict[str, list[list[str]]]]  # labels by reading of one trained model; "" of the only one


@dataclass(frozen=True)
class FullSet:
    """A corpus with the parts it is tested on."""

    title: str
    train: str
    tests: Mapping[str, str]

    def read(self, run: Run) -> dict[str, Corpus]:
        """Training and test parts by name, described by their spelling."""
        read = partial(read_conll, features="spelling", window=WINDOW)
        return {
            name: run.part(read(run.file(path)), QUICK) for name, path in {"train": self.train, **self.tests}.items()
        }


@dataclass(frozen=True)
class Measured:
    """What one method gave, and what it took."""

    errors: dict[str, tuple[float, float]]  # by test part: per cent of tokens wrong, entity or chunk F1
    training_seconds: float  # of the processor
    prediction_seconds: float
    peak_bytes: int
    values: float | None  # kernel values of the training, in N^2
    n_support: int | None
    chosen: str = ""  # constant


SETS = (
    FullSet(
        "CoNLL-2002 Spanish",
        "conll2002_es/esp.train.gz",
        {"testa": "conll2002_es/esp.testa.gz", "testb": "conll2002_es/esp.testb.gz"},
    ),
    FullSet("CoNLL-2000 chunking", "conll2000/train.txt.gz", {"test": "conll2000/test.txt.gz"}),
)
SQUARED = Polynomial(2, normalized=True)
METHODS: dict[str, Callable[[], tuple[Kernel | None, Learner]]] = {  # without a kernel: from explicit features
    "labeling perceptron, sequence kernel": lambda: (
        SequenceLabeling(c=2.0, observation=SQUARED),
        LabelingPerceptron(3, constraints="iob2"),
    ),
    "dual hidden Markov perceptron, position kernel": lambda: (
        PositionKernel(SQUARED),
        HiddenMarkovPerceptron(10, dual=True, constraints="iob2"),
    ),
    "dual hidden Markov perceptron, sequence kernel": lambda: (
        SequenceLabeling(reach=0.1, observation=SQUARED),
        HiddenMarkovPerceptron(5, dual=True, constraints="iob2"),
    ),
    "kernel Z-score, position kernel": lambda: (
        PositionKernel(Linear(normalized=True)),
        # Transitions of a large corpus need a large ridge of their own; found on 3,000 of the sentences.
        KernelZScoreLabeler(
            ridge=0.03, transition_ridge=1e6, tolerance=0.03, preconditioner="none", constraints="iob2"
        ),
    ),
    # Their constants are chosen on some training sentences, by folds of these (`with_constant`).
    "structured SVM, features": lambda: (
        None,
        StructuredSVM(C="auto", passes=30, tolerance=0.05, dual=False, constraints="iob2"),
    ),
    "kernel CRF, features": lambda: (
        None,
        KernelCRF(penalty="auto", iterations=100, tolerance=1e-3, dual=False, constraints="iob2"),
    ),
}
READINGS = {VITERBI: {"decoding": "viterbi"}, MARGINALS: {"decoding": "marginals"}}  # of a random field


def full_corpora(run: Run) -> Sequence[ResultTable]:
    """One table per corpus: error, F1, processor time and memory of every method."""
    return [_table(run, one) for one in SETS]


def _table(run: Run, data: FullSet) -> ResultTable:
    rows: list[Row] = []
    with TemporaryDirectory(dir=run.scratch or None, prefix="gramline-") as folder:
        parts = data.read(run)
        for name, corpus in parts.items():
            corpus.save(Path(folder) / f"{name}.parquet")
        train = parts["train"]
        shape = f"{len(train):,} sentences, {train.n_positions:,} tokens"
        del parts
        for method, c2 in {**dict.fromkeys(METHODS), **(_crfs(run, data, train) if has_crf() else {})}.items():
            run.say(f"{data.title}: {method}")
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                measured = pool.submit(measure, method, c2, folder, tuple(data.tests)).result()
            rows += [_row(f"{method}, {reading}".removesuffix(", "), one) for reading, one in measured.items()]
    scores = [f"{part} {what}" for part in data.tests for what in ("error", "F1")]
    return ResultTable(
        f"{data.title}: {shape}, no stored matrix",
        ("method", "chosen", *scores, "training, s", "labeling, s", "memory, MB", "values, N^2", "support"),
        tuple(rows),
        (
            "error: per cent of tokens; F1 of entities or chunks; s: processor seconds of one process; memory: the "
            "largest resident size of that process, with Python and the corpora",
            f"features: spelling of the word, its part of speech if the file has it, and of {WINDOW} neighbour at each "
            "side; the CRF has the same",
            "values: kernel values that training computed, as a multiple of N^2; a stored matrix has N^2 / 2",
            f"c2 of the CRF: its default of {DEFAULT_C2:g}, and of {', '.join(map('{:g}'.format, FEW_CONSTANTS))} the "
            f"one with the fewest labels wrong along the best path in {FEW_FOLDS} folds of the first {CHOOSING:,} "
            "training sentences (all of them would take hours); two rows of one training: by the best path (Viterbi) "
            "and by the best label of every position (marginals)",
            f"chosen: C of the structured SVM and the penalty of the kernel CRF (its c2), of five values, by the wrong "
            f"labels of hidden sentences among the first {CHOOSING:,} training sentences; the seconds are of the "
            "training with it on all of them",
            *missing_crf(),
        ),
    )


def _crfs(run: Run, data: FullSet, train: Corpus) -> dict[str, float]:
    """Names and constants of the CRFs of python-crfsuite: by default, and chosen on some training sentences."""
    run.say(f"{data.title}: choosing c2")
    some = train.select(range(min(CHOOSING, len(train)))).packed()
    c2 = chosen_constants(some, FEW_CONSTANTS[:2] if run.quick else FEW_CONSTANTS, FEW_FOLDS)[VITERBI]
    return {f"{CRF}, c2 {value:g}": value for value in (DEFAULT_C2, c2)}


def _row(method: str, measured: Measured) -> Row:
    scores = [score for part in measured.errors.values() for score in part]
    times = (measured.training_seconds, measured.prediction_seconds)
    return (
        method,
        measured.chosen,
        *scores,
        *times,
        round(measured.peak_bytes / 1e6),
        measured.values,
        measured.n_support,
    )


def measure(method: str, c2: float | None, folder: str, tests: Sequence[str]) -> dict[str, Measured]:
    """Train and test in this process, by reading; `folder` has the parts. A CRF of python-crfsuite has a c2."""
    train = Corpus.load(f"{folder}/train.parquet")
    packed, labels, recipe = train.packed(), train.labels, train.recipe
    some = train.select(range(min(CHOOSING, len(train)))).packed()
    del train  # what is trained on has all that is needed of it
    values, n_support, chosen = None, None, ""
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        kernel, learner = METHODS[method]() if c2 is None else (None, None)
        if isinstance(learner, ChoosesConstant):
            learner, chosen = with_constant(learner, some)
        del some
        begin = time.process_time()
        predict: Predict
        if c2 is not None:
            tagger = stack.enter_context(trained_tagger(named_features(packed), named_labels(packed), c2))
            predict = partial(_tagged, tagger, packed)
        else:
            assert learner is not None
            values = _fit(kernel, learner, packed, labels)
            model = Model.of(learner, packed, kernel, recipe=recipe)
            n_support, predict = model.support.n_positions or None, partial(_labeled, model)
        training_seconds, prediction_seconds = time.process_time() - begin, 0.0
        errors: dict[str, dict[str, tuple[float, float]]] = {}
        for name in tests:
            part = Corpus.load(f"{folder}/{name}.parquet")
            begin = time.process_time()
            predicted = predict(part)
            prediction_seconds += (time.process_time() - begin) / len(predicted)
            for reading, guess in predicted.items():
                score = evaluate(part.labels, guess)
                errors.setdefault(reading, {})[name] = (100 * (1 - score.accuracy), 100 * score.spans.f1)
    return {
        reading: Measured(own, training_seconds, prediction_seconds, peak_bytes(), values, n_support, chosen)
        for reading, own in errors.items()
    }


def with_constant(learner: Any, some: Packed) -> tuple[Any, str]:
    """The learner with the constant that hidden sentences of `some` choose, and that constant in words."""
    found = learner.fresh().fit(some).chosen()
    words = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
    return learner.fresh().set_params(**found), words


def _fit(kernel: Kernel | None, learner: Any, train: Packed, labels: Labels) -> float | None:
    """Train; the kernel values that it computed, as a multiple of N^2."""
    if kernel is None:
        learner.fit(train)
        return None
    gram = ComputedGram(kernel, kernel.prepare(train), dtype="float32")
    learner.fit(gram, labels)
    return gram.values_computed / gram.shape[0] ** 2


def _labeled(model: Model, part: Corpus) -> dict[str, list[list[str]]]:
    if not isinstance(model.learner, KernelCRF):
        return {"": model.predict(part)}
    found = {}
    for reading, changes in READINGS.items():
        model.learner.set_params(**changes)
        found[reading] = model.predict(part)
    return found


def _tagged(tagger: Any, train: Packed, part: Corpus) -> dict[str, list[list[str]]]:
    found = [decoded(tagger, sequence) for sequence in named_features(part.packed(like=train))]
    return {decoding: [labels[decoding] for labels in found] for decoding in DECODINGS}
