"""Methods with settings on one set of outer and inner folds: what each reaches, what it would have chosen, its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.packing import Packed
from gramline.learners.estimator import Learner
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.crf import CONSTANTS, DECODINGS, crfs
from gramline.pipeline.crossval.folds import Folds, FoldSpec, Labels, joined
from gramline.pipeline.crossval.summary import NestedSelection, select_nested
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import METRICS, CrossValidation, Settings, assembled, cross_validate

Predict = Callable[[Packed, Packed], list[list[str]]]  # training and test sequences -> labels of the test sequences
HINT = "p: two-sided paired t-test over the folds, which share training sentences: read it as a hint"


@dataclass(frozen=True, eq=False)
class Method:
    """Outcomes of every setting (by its words) on the folds of a trial; only the outer ones when nothing is chosen."""

    settings: tuple[str, ...]
    outcomes: Sequence[Sequence[HeldOut]]  # [setting][fold]
    seconds: float  # of one training, with its share of the Gram matrix

    @classmethod
    def union(cls, methods: Sequence[Method]) -> Method:
        """All settings of several methods together."""
        settings = tuple(name for method in methods for name in method.settings)
        outcomes = tuple(row for method in methods for row in method.outcomes)
        share = sum(method.seconds * len(method.settings) for method in methods) / len(settings)
        return cls(settings, outcomes, share)

    def named(self, name: str) -> Method:
        """The same with the name of the method before every setting."""
        return replace(self, settings=tuple(f"{name}, {setting}".rstrip(", ") for setting in self.settings))


class Trial:
    """Outer folds, and inner folds inside the training part of each; `dummy` is the label that F1 leaves out."""

    def __init__(self, labels: Labels, spec: FoldSpec, n_inner: int, metric: str, dummy: str | None = "O") -> None:
        self.labels = labels
        self.outer = spec.make(labels)
        self.inner = spec.inner(self.outer, n_inner, labels)
        self.folds = joined(self.outer, self.inner)
        self.metric = metric
        self.dummy = dummy

    @property
    def n_inner(self) -> int:
        """Inner folds of every outer one."""
        return len(self.inner) // len(self.outer)

    def on_gram(
        self,
        gram: Callable[[], GramOperator],
        learner: Learner,
        settings: Settings = ({},),
        name: str | Callable[[Mapping[str, Any]], str] = "",
        nested: bool = True,
    ) -> Method:
        """A learner with every setting on a Gram matrix over all structures.

        `name` comes before the words of every setting, or makes these words.
        """
        begin = perf_counter()
        folds = self.folds if nested else self.outer
        validation = cross_validate(learner, gram(), self.labels, folds, settings)
        seconds = (perf_counter() - begin) / (len(folds) * len(settings))
        if isinstance(name, str):
            names = tuple(" ".join([name, *_words(setting)]).strip() for setting in settings)
        else:
            names = tuple(map(name, settings))
        return Method(names, validation.outcomes, seconds)

    def on_grams(self, grams: Mapping[str, Callable[[], GramOperator]], learner: Learner) -> Method:
        """A learner on every Gram matrix; their names are its settings."""
        return Method.union([self.on_gram(gram, learner, name=name) for name, gram in grams.items()])

    def on_corpus(self, corpus: Corpus, learner: Learner, settings: Settings | None = None, name: str = "") -> Method:
        """A learner on features: as it is, on the outer folds alone, or with every setting on all folds."""
        begin = perf_counter()
        folds = self.outer if settings is None else self.folds
        validation = cross_validate(learner, corpus, self.labels, folds, settings)
        names = tuple(" ".join([name, *_words(setting)]).strip() for setting in settings or ({},))
        return Method(names, validation.outcomes, (perf_counter() - begin) / (len(folds) * len(names)))

    def by_fold(self, fit: Callable[[Folds, int], HeldOut], nested: bool = True) -> Method:
        """Anything that trains on a fold and predicts what it holds out."""
        begin = perf_counter()
        folds = self.folds if nested else self.outer
        outcomes = tuple(fit(folds, fold) for fold in range(len(folds)))
        return Method(("",), (outcomes,), (perf_counter() - begin) / len(folds))

    def predicted(self, corpus: Corpus, predict: Predict) -> Method:
        """Another program on the training and test sequences of each outer fold."""

        def fit(folds: Folds, fold: int) -> HeldOut:
            train = corpus.select(folds.training(fold)).packed()
            return HeldOut(predict(train, corpus.select(folds.held_out[fold]).packed(like=train)))

        return self.by_fold(fit, nested=False)

    def crfs(self, corpus: Corpus, constants: Sequence[float] = CONSTANTS) -> dict[str, Method]:
        """python-crfsuite by decoding, with every constant; both decodings share a training."""
        begin = perf_counter()
        outcomes: dict[str, list[list[HeldOut]]] = {decoding: [[] for _ in constants] for decoding in DECODINGS}
        for fold in range(len(self.folds)):
            train = corpus.select(self.folds.training(fold)).packed()
            test = corpus.select(self.folds.held_out[fold]).packed(like=train)
            for number, found in enumerate(crfs(train, test, constants)):
                for decoding, labels in found.by_decoding.items():
                    outcomes[decoding][number].append(HeldOut(labels))
        seconds = (perf_counter() - begin) / (len(self.folds) * len(constants))
        settings = tuple(f"c2 {c2:g}" for c2 in constants)
        return {
            decoding: Method(settings, tuple(tuple(row) for row in rows), seconds)
            for decoding, rows in outcomes.items()
        }

    def chosen(self, method: Method) -> NestedSelection:
        """On every outer fold the setting that its inner folds prefer; the only one when there is one."""
        n_outer = len(self.outer)
        outer = self._results(method, self.outer, slice(n_outer))
        if len(method.settings) == 1:
            values = {name: tuple(outer.table(name)[0].tolist()) for name in METRICS}
            return NestedSelection(self.metric, (0,) * n_outer, (), values)
        return select_nested(outer, self._results(method, self.inner, slice(n_outer, None)), self.metric)

    def _results(self, method: Method, folds: Folds, part: slice) -> CrossValidation:
        """Every setting on some of the folds."""
        settings = [{"setting": name} for name in method.settings]
        outcomes = [row[part] for row in method.outcomes]
        return assembled(settings, folds, self.labels, outcomes, dummy=self.dummy)


def between_positions(corpus: Corpus) -> NDArray[np.float64]:
    """(x . x' + 1)^2 between the features of all positions, scaled to 1 on the diagonal; neighbours take no part."""
    packed = corpus.packed()
    values = np.empty((packed.n_positions, packed.n_positions))
    Polynomial(2, normalized=True).strips(packed, packed).fill(0, packed.n_positions, values)
    return values


def choice_counts(method: Method, selection: NestedSelection) -> str:
    """Which settings were chosen how often, in words."""
    if len(method.settings) == 1:
        return method.settings[0]
    counts = Counter(method.settings[number] for number in selection.chosen)
    return ", ".join(f"{count} x {name}" for name, count in counts.most_common())


def difference(one: NestedSelection, other: NestedSelection, metric: str) -> tuple[float, float | None]:
    """Mean difference over the folds, and p of a paired t-test; no p when all differences are equal."""
    left, right = np.array(one.values[metric]), np.array(other.values[metric])
    is_constant = np.ptp(left - right) == 0
    return float((left - right).mean()), None if is_constant else float(ttest_rel(left, right).pvalue)


def _words(setting: Mapping[str, Any]) -> list[str]:
    return [f"{name.replace('_', ' ')} {value:g}" for name, value in setting.items()]
