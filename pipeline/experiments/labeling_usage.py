"""Tree against sequence kernel: who uses, wishes or rejects what, and the nodes of real dependency trees.

The same sentences as sequences and as dependency trees, the same observations, folds and learner; only the kernel
differs. Its c is chosen inside the training part of every fold, so the held-out sentences have no say in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.observations.features import Polynomial
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.kernels.trees.labeling import TreeLabeling
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conllu import read_conllu
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.summary import NestedSelection
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.experiments.fold_trial import HINT, Method, Trial, difference

OBSERVATION = Polynomial(degree=2, normalized=True)
KINDS = ("sequences", "trees")
WEIGHTS = (1.0, 2.0, 4.0)  # c
KERNELS: dict[str, tuple[str, Callable[..., PositionLabeling]]] = {  # name: kind of corpus, kernel but for its c
    "sequence": ("sequences", partial(SequenceLabeling, observation=OBSERVATION)),
    "gappy sequence": ("sequences", partial(SequenceLabeling, gap=0.5, observation=OBSERVATION)),
    "tree": ("trees", partial(TreeLabeling, observation=OBSERVATION)),
}
METRICS = ("accuracy", "f1")
PERCEPTRON = "HM perceptron"
PRINTED = {  # of product usage: accuracy and F1 with 3 folds (2004), and with 5 (the Japanese edition)
    PERCEPTRON: (0.877, 0.307, 0.897, 0.289),
    "sequence": (0.884, 0.367, 0.897, 0.375),
    "tree": (0.898, 0.379, 0.899, 0.389),
}
NOT_PRINTED = (None,) * 4
SALESLOG = "saleslog"
ROUNDS = 10
SALESLOG_SENTENCES = 184  # as many as the paper's corpus had


class SentenceTask(NamedTuple):
    """The same labeled sentences as `sequences` and as `trees`."""

    name: str
    corpora: dict[str, Corpus]
    dummy: str | None  # the label that F1 leaves out


@dataclass(frozen=True)
class Treebank:
    """A file of the data folder, how many of its first sentences, and what labels its nodes."""

    title: str
    file: str
    sentences: int
    label: str
    dummy: str | None = None

    def task(self, run: Run) -> SentenceTask:
        # An entity is easier to see with the part of speech; a part of speech must not be seen.
        observed = ("FORM",) if self.label == "UPOS" else ("FORM", "UPOS")
        read = partial(read_conllu, run.file(self.file), label=self.label, observation=observed, features="words")
        corpora = {kind: read(kind=kind).select(range(self.sentences)) for kind in KINDS}
        return SentenceTask(f"{self.title} {self.label}", corpora, self.dummy)


TREEBANKS = (
    Treebank("EWT", "ud_english_ewt/en_ewt-ud-dev.ner.conllu.gz", 300, "UPOS"),
    Treebank("EWT", "ud_english_ewt/en_ewt-ud-dev.ner.conllu.gz", 300, "NER", "O"),
    Treebank("GSD", "ud_japanese_gsd/ja_gsd-ud-dev.ne.conllu.gz", 200, "UPOS"),
)


def labeling_usage(run: Run) -> Sequence[ResultTable]:
    """Accuracy and F1 of each kernel on each task, and whether the tree kernel differs from the sequence kernel."""
    n_folds = 2 if run.quick else 5
    rows: list[Row] = []
    differences: list[Row] = []
    missing = [bank.file for bank in TREEBANKS if not (run.data / bank.file).is_file()]
    for task in _tasks(run):
        trees = task.corpora["trees"]
        run.say(f"{task.name}: {len(trees):,} sentences, {trees.n_positions:,} nodes")
        trial = Trial(trees.labels, FoldSpec(n_folds, run.seed), 2 if run.quick else 3, "accuracy", task.dummy)
        baseline = trial.on_corpus(task.corpora["sequences"], HiddenMarkovPerceptron(rounds=ROUNDS, average=True))
        rows.append((task.name, PERCEPTRON, *_scores(trial.chosen(baseline)), "", *_printed(task, PERCEPTRON)))
        selections = {}
        for name in KERNELS:
            method = _kernel_method(run, task, name, trial)
            selections[name] = trial.chosen(method)
            weights = " ".join(method.settings[setting] for setting in selections[name].chosen)
            rows.append((task.name, name, *_scores(selections[name]), weights, *_printed(task, name)))
        for other in ("sequence", "gappy sequence"):
            pair = selections["tree"], selections[other]
            cells = [cell for metric in METRICS for cell in difference(*pair, metric)]
            differences.append((task.name, f"tree - {other}", *cells))
    notes = [
        "the paper's corpus is not published: saleslog is generated, and its labels hang on a distant verb by design",
        "paper: its own corpus of as many sentences, c = 0.8; 3 folds in the edition of 2004, 5 in the Japanese one",
        "EWT: 300 sentences of English, GSD: 200 of Japanese; HM perceptron: hidden Markov perceptron, no kernel",
        "gappy sequence: a skipped word counts 0.5; F1 over tokens, all labels but O, for parts of speech all labels",
        "averaged labeling perceptron; second-degree observation kernel over words (and parts of speech for NER)",
        f"c of {', '.join(f'{c:g}' for c in WEIGHTS)} chosen per fold by cross-validation inside its training part",
    ]
    notes += [f"{name} is not in the data folder: left out" for name in dict.fromkeys(missing) if not run.quick]
    return [
        ResultTable(
            f"Sequence against tree kernel, {n_folds} folds",
            (
                *("task", "kernel", "accuracy", "dev.", "F1", "F1 dev.", "c per fold"),
                *("paper acc., 3 folds", "paper F1, 3 folds", "paper acc., 5 folds", "paper F1, 5 folds"),
            ),
            tuple(rows),
            tuple(notes),
        ),
        ResultTable(
            "Differences over the folds",
            ("task", "kernels", "accuracy", "p", "F1", "F1 p"),
            tuple(differences),
            (HINT,),
        ),
    ]


def _tasks(run: Run) -> Iterator[SentenceTask]:
    n = 100 if run.quick else SALESLOG_SENTENCES
    corpora = {kind: generate_saleslog(n, run.seed, kind, features="words") for kind in KINDS}
    yield SentenceTask(SALESLOG, corpora, "O")
    for bank in () if run.quick else TREEBANKS:
        if (run.data / bank.file).is_file():
            yield bank.task(run)


def _kernel_method(run: Run, task: SentenceTask, name: str, trial: Trial) -> Method:
    """The perceptron with every c, each from one Gram matrix for all folds."""
    kind, make = KERNELS[name]
    learner = LabelingPerceptron(rounds=ROUNDS, average=True)
    weights = WEIGHTS[:2] if run.quick else WEIGHTS
    return trial.on_grams({f"{c:g}": partial(DenseGram.of, make(c=c), task.corpora[kind]) for c in weights}, learner)


def _printed(task: SentenceTask, name: str) -> tuple[float | None, ...]:
    """What the paper printed for a kernel, beside the sentences that stand for its own."""
    return PRINTED.get(name, NOT_PRINTED) if task.name == SALESLOG else NOT_PRINTED


def _scores(selection: NestedSelection) -> list[float]:
    """Mean and deviation over the folds, of accuracy and F1."""
    return [value for metric in METRICS for value in (selection.mean(metric), selection.deviation(metric))]
