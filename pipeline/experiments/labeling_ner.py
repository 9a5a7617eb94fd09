"""The labeling-kernel paper's named entities: 300 Spanish sentences, the sequence kernel against chain learners.

First the paper's own setting, then what it could not try: averages, normalized observations, gaps, the marginals of a
CRF as prior, chain learners on the kernel. Every choice is made by inner folds inside the training part of a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.priors import TabulatedPrior
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.estimator import Learner
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.crossval.crf import CHOSEN_NOTE, CONSTANTS, DECODINGS, crf_marginals, has_crf, missing_crf
from gramline.pipeline.crossval.folds import Folds, FoldSpec, k_fold
from gramline.pipeline.crossval.training import HeldOut, fit_on_gram
from gramline.pipeline.crossval.validate import grid
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.fold_trial import HINT, Method, Trial, between_positions, choice_counts, difference

FILE = "conll2002_es/esp.train.first300"
PAPER = {  # by the number of folds: accuracy, precision, recall, F1
    3: {"sequence kernel": (88.4, 52.3, 19.3, 27.9), "HM perceptron, window 3": (82.9, 21.8, 15.6, 17.2)},
    5: {"sequence kernel": (88.7, 49.0, 23.1, 30.5), "HM perceptron, window 3": (80.2, 23.8, 17.9, 18.6)},
}
ROUNDS = 10
PRIOR_FOLDS = 3  # the CRF never labels a sentence that it was trained on
PRIOR_SMOOTHING = 0.01  # share of the even distribution, so that no label is ruled out
METRIC = "hamming_loss"
STEPS = (1.0, 3.0, 10.0, 30.0)  # C times the usual k(x, x)
KERNEL_STEPS = (10.0, 30.0, 100.0)  # C of a kernel whose k(x, x) is 1
CRF = "CRF (python-crfsuite)"
BEST = "best of all above by inner folds"


def labeling_ner(run: Run) -> Sequence[ResultTable]:
    """The paper's table with 3 and with 5 folds, then everything else with 5."""
    with one_blas_thread():
        spanish = Spanish(run)
        tables = [_paper_table(spanish, n_folds) for n_folds in ((2,) if run.quick else (3, 5))]
        return [*tables, *_further_tables(spanish)]


class Spanish:
    """The sentences, with features of the word alone (window 0) and of its neighbours."""

    def __init__(self, run: Run) -> None:
        self.run = run
        read = partial(read_conll, run.file(FILE), features="spelling")
        self.windows = {window: run.part(read(window=window), 30) for window in (0, 1, 2)}

    def trial(self, n_folds: int) -> Trial:
        return Trial(self.windows[0].labels, FoldSpec(n_folds), 2, METRIC)

    def sequence_gram(
        self, window: int, c: float, gap: float = 0.0, normalized: bool = True
    ) -> Callable[[], DenseGram]:
        kernel = SequenceLabeling(c=c, gap=gap, observation=Polynomial(2, normalized=normalized))
        return lambda: DenseGram.of(kernel, self.windows[window])

    def position_gram(self, scale: float) -> Callable[[], DenseGram]:
        corpus = self.windows[1]
        return lambda: DenseGram(
            scale * between_positions(corpus), corpus.lengths, label_names=corpus.packed().vocabulary.labels
        )

    def usual_size(self, window: int) -> float:
        """The usual number of features of a position, its k(x, x)."""
        return float(np.median(np.diff(self.windows[window].packed().features.indptr)))

    def with_marginals(self, folds: Folds, fold: int) -> HeldOut:
        """The labeling perceptron of one fold with the marginals of a CRF as P(y|x)."""
        corpus = self.windows[1]
        kernel = SequenceLabeling(c=2.0, observation=Polynomial(2, normalized=True), prior=TabulatedPrior())
        packed = replace(corpus.packed(), table=_marginals(corpus, folds, fold))
        learner = LabelingPerceptron(ROUNDS, average=True)
        return fit_on_gram([learner], DenseGram.of(kernel, packed), corpus.labels, folds, [fold])[0]


def _marginals(corpus: Corpus, folds: Folds, fold: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """P(y|x) of all positions: of training sentences by CRFs of other training sentences, else by one of all."""
    training = folds.training(fold)
    table = np.full((corpus.n_positions, len(corpus.label_names)), 1.0 / len(corpus.label_names))
    starts = offsets_from_lengths(corpus.lengths)
    parts = [
        (np.setdiff1d(training, training[held]), training[held]) for held in k_fold(len(training), PRIOR_FOLDS).held_out
    ]
    for known, others in (*parts, (training, folds.held_out[fold])):
        train = corpus.select(known).packed()
        marginals = crf_marginals(train, corpus.select(others).packed(like=train), corpus.label_names)
        rows = indices_of_ranges(starts[others], corpus.lengths[others])
        table[rows] = (1 - PRIOR_SMOOTHING) * marginals + PRIOR_SMOOTHING / marginals.shape[1]
    return table


def _paper_table(spanish: Spanish, n_folds: int) -> ResultTable:
    """The paper's kernel and its baseline, with its columns beside."""
    run, trial = spanish.run, spanish.trial(n_folds)
    run.say(f"the paper's setting, {n_folds} folds")
    methods = {
        "sequence kernel": trial.on_gram(
            spanish.sequence_gram(0, 1.0, normalized=False), LabelingPerceptron(ROUNDS, average=False), nested=False
        ),
        "sequence kernel, features of window 3": trial.on_gram(
            spanish.sequence_gram(1, 1.0, normalized=False), LabelingPerceptron(ROUNDS, average=False), nested=False
        ),
        "HM perceptron, window 3": trial.on_corpus(spanish.windows[1], HiddenMarkovPerceptron(ROUNDS, average=False)),
    }
    rows: list[Row] = []
    for name, method in methods.items():
        selection = trial.chosen(method)
        measured = [100 * selection.mean(metric) for metric in ("accuracy", "precision", "recall", "f1")]
        paper = PAPER[3 if run.quick else n_folds].get(name)
        rows.append((name, *measured, *(paper or (None,) * 4)))
    corpus = spanish.windows[0]
    return ResultTable(
        f"Table 1, {n_folds} folds: {len(corpus)} sentences, {corpus.n_positions:,} tokens, in per cent",
        ("method", "accuracy", "precision", "recall", "F1", *(f"paper {m}" for m in ("acc.", "prec.", "recall", "F1"))),
        tuple(rows),
        (
            "Polynomial(2), c = 1, uniform prior; precision, recall and F1 over tokens with a label other than O; "
            f"{ROUNDS} rounds, last weights; folds in the order of the file, means over them",
            "not as in the paper: its spelling features S2, its folds and its rounds are not published; ours are the "
            "word, its shape, affixes, capitals, digits and part of speech (window 3: also of both neighbours)",
            "paper: with 3 folds the English edition of 2004, with 5 the Japanese one",
        ),
    )


def _further_tables(spanish: Spanish) -> list[ResultTable]:
    run, trial = spanish.run, spanish.trial(2 if spanish.run.quick else 5)
    methods: dict[str, Method] = {}
    for name, make in _kernel_methods(spanish, trial).items():
        run.say(f"{len(trial.outer)} folds: {name}")
        methods[name] = make()
    deciding = [method.named(name) for name, method in methods.items() if len(method.outcomes[0]) == len(trial.folds)]
    methods[BEST] = Method.union(deciding)
    for window, name in ((1, CRF), (2, f"{CRF}, window 5")) if has_crf() else ():
        run.say(f"{len(trial.outer)} folds: {name}")
        found = trial.crfs(spanish.windows[window], CONSTANTS[2:4] if run.quick else CONSTANTS)
        methods |= {f"{name}, {decoding}": found[decoding] for decoding in DECODINGS}
    rows: list[Row] = []
    for name, method in methods.items():
        selection = trial.chosen(method)
        scores = [100 * selection.mean(metric) for metric in ("hamming_loss", "precision", "recall", "f1", "span_f1")]
        seconds = None if name == BEST else method.seconds
        rows.append((name, *scores, seconds, choice_counts(method, selection)))
    table = ResultTable(
        f"What the paper could not try, {len(trial.outer)} folds, in per cent",
        ("method", "error", "precision", "recall", "F1", "entity F1", "s per training", "chosen"),
        tuple(rows),
        (
            f"settings chosen by the error on {trial.n_inner} folds inside each training part; "
            "s per training: by the clock, Gram matrix shared out over folds and settings",
            "CRF marginals as prior: of training sentences by CRFs that were not trained on them; window: features of "
            "so many neighbours on either side; scale: of the kernel beside transitions, which count 1",
            "window 3 unless said otherwise; the Gaussian process is of low rank and takes no part in the choice of "
            "the best, for want of time; CRF++ is not on the package index, so python-crfsuite stands for CRFs",
            "features: a linear kernel on explicit features; C of the structured SVM is "
            f"{', '.join(f'{step:g}' for step in STEPS)} over the usual k(x, x), the penalty of the kernel CRF "
            "there one of the c2 of python-crfsuite, and on Polynomial(2) 1 / (2 C) for C of "
            f"{', '.join(f'{step:g}' for step in KERNEL_STEPS)}",
            *((f"{CHOSEN_NOTE} as the other settings are",) if has_crf() else missing_crf()),
        ),
    )
    return [table, *([_against_crf(trial, methods)] if has_crf() else [])]


def _kernel_methods(spanish: Spanish, trial: Trial) -> dict[str, Callable[[], Method]]:
    """Methods on a kernel by name; calling one trains it on all folds."""
    quick = spanish.run.quick
    averaged = LabelingPerceptron(ROUNDS, average=True)
    weights, gaps, scales = ((2.0,), (0.5,), (10.0,)) if quick else ((1.0, 2.0), (0.2, 0.5), (5.0, 10.0, 20.0))
    ridges = grid({"ridge": (0.1,) if quick else (0.03, 0.1, 0.3), "transition_ridge": (1e3, 1e4, 1e5)})
    zscore = KernelZScoreLabeler(
        tolerance=1e-4, preconditioner="none", unlabeled="drop", ridge=1e-2, transition_ridge=None
    )
    chains = HiddenMarkovPerceptron(ROUNDS, average=True, dual=True, unlabeled="drop", scale=1.0)
    field, steps = KernelCRF(decoding="marginals"), STEPS[1:3] if quick else STEPS
    constants = CONSTANTS[2:4] if quick else CONSTANTS
    process = GaussianProcessLabeler(
        bound="expected",
        offsets="GPSL2",
        approximation="nystrom",
        rank=20 if quick else 100,
        max_sweeps=3 if quick else 10,
        variance="none",
        scale=1.0,
    )

    def on_features(learner: Learner, parameters: Callable[[float], list[dict[str, float]]]) -> Method:
        """A learner on the features of windows 3 and 5, with what is tried for their usual k(x, x)."""
        return Method.union(
            [
                trial.on_corpus(corpus, learner, parameters(spanish.usual_size(window)), f"window {2 * window + 1}")
                for window, corpus in spanish.windows.items()
                if window
            ]
        )

    methods: dict[str, Callable[[], Method]] = {
        "sequence kernel, averaged": lambda: trial.on_gram(spanish.sequence_gram(0, 1.0, normalized=False), averaged),
        "normalized observations": lambda: trial.on_grams(
            {f"window {w} c {c:g}": spanish.sequence_gram(w, c) for w in (0, 1) for c in weights}, averaged
        ),
        "normalized, gaps": lambda: trial.on_grams(
            {f"gap {gap:g} c 2": spanish.sequence_gram(1, 2.0, gap) for gap in gaps}, averaged
        ),
        "kernel Z-score, sequence kernel": lambda: trial.on_gram(spanish.sequence_gram(1, 2.0), zscore, ridges),
        "kernel Z-score, Polynomial(2)": lambda: trial.on_gram(spanish.position_gram(1.0), zscore, ridges),
        "dual HM perceptron, sequence kernel": lambda: trial.on_gram(spanish.sequence_gram(1, 2.0), chains),
        "dual HM perceptron, Polynomial(2)": lambda: trial.on_grams(
            {f"scale {scale:g}": spanish.position_gram(scale) for scale in scales}, chains
        ),
        "structured SVM, features": lambda: on_features(
            StructuredSVM(dual=False), lambda size: [{"C": float(f"{step / size:.2g}")} for step in steps]
        ),
        "kernel CRF, features": lambda: on_features(
            field.fresh().set_params(dual=False), lambda _: [{"penalty": penalty} for penalty in constants]
        ),
        "kernel CRF, Polynomial(2)": lambda: trial.on_gram(
            spanish.position_gram(1.0),
            field.fresh().set_params(tolerance=1e-3),
            [_penalty(step) for step in (KERNEL_STEPS[:1] if quick else KERNEL_STEPS)],
        ),
        "Gaussian process, Polynomial(2)": lambda: trial.on_gram(
            spanish.position_gram(1.0), process, [{"scale": 10.0}], nested=False
        ),
    }
    if has_crf():
        methods["CRF marginals as prior"] = lambda: trial.by_fold(spanish.with_marginals)
    return methods


def _penalty(C: float) -> dict[str, float]:
    """Of a CRF whose loss weighs C."""
    return {"penalty": float(f"{0.5 / C:.2g}")}


def _against_crf(trial: Trial, methods: Mapping[str, Method]) -> ResultTable:
    """Differences over the folds between our best and the CRFs."""
    best = trial.chosen(methods[BEST])
    rows: list[Row] = []
    for name, method in methods.items():
        if name.startswith(CRF):
            other = trial.chosen(method)
            pairs = (difference(best, other, metric) for metric in ("hamming_loss", "f1", "span_f1"))
            rows.append((f"best - {name}", *(cell for mean, p in pairs for cell in (100 * mean, p))))
    return ResultTable(
        "The best kernel learner against the CRF, difference in per cent",
        ("methods", "error", "p", "F1", "p", "entity F1", "p"),
        tuple(rows),
        (HINT,),
    )
