"""Methods with settings on one set of outer and inner folds: what each reaches, what it would have chosen, its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from gramline.kernels.packing import Packed
from gramline.learners.estimator import Learner
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.fold_spec import FoldSpec, joined
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.nested import NestedSelection, select_nested
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import CrossValidation, assembled, cross_validate

Settings = Sequence[Mapping[str, Any]]
Predict = Callable[[Packed, Packed], list[list[str]]]  # training and test sequences -> labels of the test sequences


@dataclass(frozen=True, eq=False)
class Method:
    """Outcomes of every setting (by its words) on the folds of a trial; only the outer ones when nothing is chosen."""

    settings: tuple[str, ...]
    outcomes: tuple[tuple[HeldOut, ...], ...]  # [setting][fold]
    seconds: float  # of one training, the Gram matrix shared out

    def named(self, name: str) -> Method:
        """The same with the name of the method before every setting."""
        return replace(self, settings=tuple(f"{name}, {setting}".rstrip(", ") for setting in self.settings))

    def with_others(self, *others: Method) -> Method:
        """All settings together."""
        every = (self, *others)
        settings = tuple(name for method in every for name in method.settings)
        outcomes = tuple(row for method in every for row in method.outcomes)
        share = sum(method.seconds * len(method.settings) for method in every) / len(settings)
        return Method(settings, outcomes, share)


class Trial:
    """Outer folds, and inner folds inside the training part of each."""

    def __init__(self, labels: Sequence[Sequence[str | None]], n_outer: int, n_inner: int, metric: str) -> None:
        self.labels = labels
        spec = FoldSpec(n_outer)
        self.outer = spec.make(labels)
        self.inner = spec.inner(self.outer, n_inner, labels)
        self.folds = joined(self.outer, self.inner)
        self.metric = metric

    def on_gram(
        self,
        gram: Callable[[], GramOperator],
        learner: Learner,
        settings: Settings,
        prefix: str = "",
        nested: bool = True,
    ) -> Method:
        """A learner with every setting on a Gram matrix over all structures."""
        begin = perf_counter()
        folds = self.folds if nested else self.outer
        found = cross_validate(learner, gram(), self.labels, folds, settings)
        seconds = (perf_counter() - begin) / (len(folds) * len(settings))
        names = tuple(" ".join([prefix, *_words(setting)]).strip() for setting in settings)
        return Method(names, found.outcomes, seconds)

    def on_corpus(self, corpus: Corpus, learner: Learner, name: str = "") -> Method:
        """A learner on features, as it is."""
        begin = perf_counter()
        found = cross_validate(learner, corpus, self.labels, self.outer)
        return Method((name,), found.outcomes, (perf_counter() - begin) / len(self.outer))

    def by_fold(self, fit: Callable[[Folds, int], HeldOut], name: str = "", nested: bool = True) -> Method:
        """Anything that trains on a fold and predicts what it holds out."""
        begin = perf_counter()
        folds = self.folds if nested else self.outer
        found = tuple(fit(folds, fold) for fold in range(len(folds)))
        return Method((name,), (found,), (perf_counter() - begin) / len(folds))

    def predicted(self, corpus: Corpus, predict: Predict, name: str = "") -> Method:
        """A program of its own on the training and test sequences of each outer fold."""

        def fit(folds: Folds, fold: int) -> HeldOut:
            train = corpus.select(folds.training(fold)).packed()
            return HeldOut(predict(train, corpus.select(folds.held_out[fold]).packed(like=train)))

        return self.by_fold(fit, name, nested=False)

    def chosen(self, method: Method) -> NestedSelection:
        """On every outer fold the setting that its inner folds prefer; the only one when there is one."""
        tested = self.tested(method)
        if len(method.settings) == 1:
            values = {name: tuple(tested.table(name)[0].tolist()) for name in METRICS}
            return NestedSelection(self.metric, (0,) * len(self.outer), (), values)
        cut = len(self.outer)
        settings = [{"setting": name} for name in method.settings]
        inner = assembled(settings, self.inner, self.labels, [list(row[cut:]) for row in method.outcomes])
        return select_nested(tested, inner, self.metric)

    def tested(self, method: Method) -> CrossValidation:
        """Every setting on the outer folds."""
        settings = [{"setting": name} for name in method.settings]
        cut = len(self.outer)
        return assembled(settings, self.outer, self.labels, [list(row[:cut]) for row in method.outcomes])

    def said(self, method: Method, selection: NestedSelection) -> str:
        """What was chosen how often."""
        if len(method.settings) == 1:
            return method.settings[0]
        counts = Counter(method.settings[number] for number in selection.chosen)
        return ", ".join(f"{count} x {name}" for name, count in counts.most_common())


METRICS = ("accuracy", "hamming_loss", "precision", "recall", "f1", "span_f1")


def _words(setting: Mapping[str, Any]) -> list[str]:
    return [f"{name.replace('_', ' ')} {value:g}" for name, value in setting.items()]
