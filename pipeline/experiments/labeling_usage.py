"""Tree against sequence kernel: who uses, wishes or rejects what, and the nodes of real dependency trees.

The same sentences as sequences and as dependency trees, the same observations, folds and learner; only the kernel
differs. Its c is chosen inside the training part of every fold, so the held-out sentences have no say in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import ttest_rel

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
from gramline.pipeline.crossval.fold_spec import FoldSpec, joined
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.nested import NestedSelection, select_nested
from gramline.pipeline.crossval.validate import CrossValidation, assembled, cross_validate
from gramline.pipeline.experiments.base import ResultTable, Run

OBSERVATION = Polynomial(degree=2, normalized=True)
WEIGHTS = (1.0, 2.0, 4.0)  # c
KERNELS: dict[str, tuple[str, Callable[..., PositionLabeling]]] = {  # name: kind of corpus, kernel but for its c
    "sequence": ("sequences", partial(SequenceLabeling, observation=OBSERVATION)),
    "gappy sequence": ("sequences", partial(SequenceLabeling, gap=0.5, observation=OBSERVATION)),
    "tree": ("trees", partial(TreeLabeling, observation=OBSERVATION)),
}
ROUNDS = 10
SALESLOG_SENTENCES = 184  # as many as the paper's corpus had


@dataclass(frozen=True)
class Task:
    """Sentences as sequences and as trees, with labels."""

    name: str
    sequences: Corpus
    trees: Corpus
    dummy: str | None  # the label that F1 leaves out

    def corpus(self, kind: str) -> Corpus:
        return self.trees if kind == "trees" else self.sequences


@dataclass(frozen=True)
class Treebank:
    """A file of the data folder, how many of its first sentences, and what labels its nodes."""

    title: str
    file: str
    sentences: int
    label: str
    dummy: str | None = None

    def task(self, run: Run) -> Task:
        # An entity is easier to see with the part of speech; a part of speech must not be seen.
        observed = ("FORM",) if self.label == "UPOS" else ("FORM", "UPOS")
        sequences, trees = (
            read_conllu(run.file(self.file), label=self.label, observation=observed, features="words", kind=kind)
            for kind in ("sequences", "trees")
        )
        first = range(self.sentences)
        return Task(f"{self.title} {self.label}", sequences.select(first), trees.select(first), self.dummy)


TREEBANKS = (
    Treebank("EWT", "ud_english_ewt/en_ewt-ud-dev.ner.conllu.gz", 300, "UPOS"),
    Treebank("EWT", "ud_english_ewt/en_ewt-ud-dev.ner.conllu.gz", 300, "NER", "O"),
    Treebank("GSD", "ud_japanese_gsd/ja_gsd-ud-dev.ne.conllu.gz", 200, "UPOS"),
)


def labeling_usage(run: Run) -> Sequence[ResultTable]:
    """Accuracy and F1 of each kernel on each task, and whether the tree kernel differs from the sequence kernel."""
    rows: list[tuple[str | float | None, ...]] = []
    differences: list[tuple[str | float | None, ...]] = []
    missing = [bank.file for bank in TREEBANKS if not (run.data / bank.file).is_file()]
    for task in _tasks(run):
        run.say(f"{task.name}: {len(task.trees):,} sentences, {task.trees.n_positions:,} nodes")
        spec = FoldSpec(2 if run.quick else 5, run.seed)
        outer = spec.make(task.trees.labels)
        baseline = cross_validate(
            HiddenMarkovPerceptron(rounds=ROUNDS, average=True),
            task.sequences,
            task.sequences.labels,
            outer,
            dummy=task.dummy,
        )
        rows.append((task.name, "HM perceptron", *_spread(baseline), ""))
        found = {name: _selected(run, task, name, spec, outer) for name in KERNELS}
        for name, selection in found.items():
            weights = " ".join(f"{_weights(run)[setting]:g}" for setting in selection.chosen)
            spread = [(selection.mean(metric), selection.deviation(metric)) for metric in ("accuracy", "f1")]
            rows.append((task.name, name, *spread[0], *spread[1], weights))
        for other in ("sequence", "gappy sequence"):
            differences.append((task.name, f"tree - {other}", *_difference(found["tree"], found[other])))
    notes = [
        "the paper's corpus is not published: saleslog is generated, and its labels hang on a distant verb by design",
        "EWT: 300 sentences of English, GSD: 200 of Japanese; HM perceptron: hidden Markov perceptron, no kernel",
        "gappy sequence: a skipped word counts 0.5; F1 over tokens, all labels but O, for parts of speech all labels",
        "averaged labeling perceptron; second-degree observation kernel over words (and parts of speech for NER)",
        f"c of {', '.join(f'{c:g}' for c in WEIGHTS)} chosen per fold by cross-validation inside its training part",
    ]
    notes += [f"{name} is not in the data folder: left out" for name in dict.fromkeys(missing) if not run.quick]
    return [
        ResultTable(
            "Sequence against tree kernel, 2 folds" if run.quick else "Sequence against tree kernel, 5 folds",
            ("task", "kernel", "accuracy", "dev.", "F1", "F1 dev.", "c per fold"),
            tuple(rows),
            tuple(notes),
        ),
        ResultTable(
            "Differences over the folds",
            ("task", "kernels", "accuracy", "p", "F1", "F1 p"),
            tuple(differences),
            ("p: two-sided paired t-test over the folds, which share training sentences: read it as a hint",),
        ),
    ]


def _tasks(run: Run) -> Iterator[Task]:
    n = 100 if run.quick else SALESLOG_SENTENCES
    sequences, trees = (generate_saleslog(n, run.seed, kind, features="words") for kind in ("sequences", "trees"))
    yield Task("saleslog", sequences, trees, "O")
    for bank in () if run.quick else TREEBANKS:
        if (run.data / bank.file).is_file():
            yield bank.task(run)


def _weights(run: Run) -> tuple[float, ...]:
    return WEIGHTS[:2] if run.quick else WEIGHTS


def _selected(run: Run, task: Task, name: str, spec: FoldSpec, outer: Folds) -> NestedSelection:
    """Every c on all folds, outer and inner, from one Gram matrix each; then the choice per outer fold."""
    kind, make = KERNELS[name]
    corpus = task.corpus(kind)
    inner = spec.inner(outer, 2 if run.quick else 3, corpus.labels)
    folds = joined(outer, inner)
    learner = LabelingPerceptron(rounds=ROUNDS, average=True)
    outcomes = []
    for c in _weights(run):
        gram = DenseGram.of(make(c=c), corpus)
        done = cross_validate(learner, gram, corpus.labels, folds, dummy=task.dummy)
        outcomes.append(done.outcomes[0])
    settings = [{"c": c} for c in _weights(run)]
    cut = len(outer)
    tested, choosing = (
        assembled(settings, part, corpus.labels, [row[chosen] for row in outcomes], dummy=task.dummy)
        for part, chosen in ((outer, slice(cut)), (inner, slice(cut, None)))
    )
    return select_nested(tested, choosing)


def _spread(result: CrossValidation) -> tuple[float, ...]:
    values = [result.table(metric)[0] for metric in ("accuracy", "f1")]
    return tuple(float(number) for row in values for number in (row.mean(), row.std(ddof=1)))


def _difference(one: NestedSelection, other: NestedSelection) -> tuple[float | None, ...]:
    found: list[float | None] = []
    for metric in ("accuracy", "f1"):
        left, right = np.array(one.values[metric]), np.array(other.values[metric])
        is_constant = np.ptp(left - right) == 0
        found += [float((left - right).mean()), None if is_constant else float(ttest_rel(left, right).pvalue)]
    return tuple(found)
