"""Cross-validation from one Gram matrix: every fold and every setting of a learner, held-out predictions included.

A fold trains on the same Gram with the labels of its held-out structures left out, so nothing is computed twice.
A `SharedPassLearner` reads every tile once for all folds and settings; learners on explicit features
train on the structures of each fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ttest_rel

from gramline.kernels.base import Kernel
from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Number
from gramline.learners.estimator import Learner, is_listed
from gramline.learners.kinds import RankingLearner, RoundProgress
from gramline.learners.labels import label_lists
from gramline.learners.metrics import Evaluation, evaluate
from gramline.learners.operators.operator import GramOperator, check_operator
from gramline.pipeline.choices import Metric
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds, custom_folds, k_fold
from gramline.pipeline.crossval.training import HeldOut, fit_on_corpus, fit_on_gram
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.spec import counts_labels, has_learned_prior

Settings = Sequence[Mapping[str, Any]]
METRICS: tuple[str, ...] = get_args(Metric)


@runtime_checkable
class HasKernel(Protocol):
    """A Gram matrix that may know which kernel it was made with."""

    @property
    def kernel(self) -> Kernel | None: ...


@runtime_checkable
class HasLabels(Protocol):
    """A Gram matrix that knows the labels it was made with."""

    @property
    def labels(self) -> Sequence[Sequence[str | None]]: ...


@dataclass(frozen=True)
class FoldResult:
    """What one setting reached on the held-out structures of one fold."""

    fold: int
    setting: int
    evaluation: Evaluation

    def metric(self, name: str) -> float:
        if name in ("precision", "recall", "f1"):
            return float(getattr(self.evaluation.tokens, name))
        if name == "span_f1":
            return self.evaluation.spans.f1
        if name not in METRICS:
            raise InputError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
        return float(getattr(self.evaluation, name))


@dataclass(frozen=True)
class Comparison:
    """Setting a against setting b over the same folds."""

    difference: float  # mean of a - b
    deviation: float
    t: float
    p: float  # two-sided


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """All results; `predictions[setting][fold]` are the labels of the fold's held-out structures."""

    settings: tuple[dict[str, Any], ...]
    folds: Folds
    results: tuple[FoldResult, ...]
    outcomes: Sequence[Sequence[HeldOut]] = ()  # predictions with confidences and traces; a job reads them from disk

    @property
    def predictions(self) -> tuple[tuple[list[list[str]], ...], ...]:
        return tuple(tuple(held.predicted for held in row) for row in self.outcomes)

    def table(self, metric: str = "accuracy") -> NDArray[np.float64]:
        """Values, shape (n_settings, n_folds)."""
        values = np.empty((len(self.settings), len(self.folds)))
        for result in self.results:
            values[result.setting, result.fold] = result.metric(metric)
        return values

    def best(self, metric: str = "accuracy") -> int:
        """The setting with the best mean (the lowest for a loss); the first of equals."""
        means = self.table(metric).mean(axis=1)
        return int(np.argmin(means) if metric == "hamming_loss" else np.argmax(means))

    def summary(self) -> list[dict[str, Any]]:
        """Per setting: its parameters, and mean and standard deviation over the folds of every metric."""
        rows = [{"setting": dict(setting)} for setting in self.settings]
        for metric in METRICS:
            values = self.table(metric)
            for row, mean, deviation in zip(rows, values.mean(axis=1), _deviation(values), strict=True):
                row[metric] = {"mean": float(mean), "deviation": float(deviation)}
        return rows

    def compare(self, a: int, b: int, metric: str = "accuracy") -> Comparison:
        """Paired t-test over the folds: is a - b more than chance?"""
        values = self.table(metric)
        for setting in (a, b):
            if not isinstance(setting, int | np.integer) or not -len(values) <= setting < len(values):
                raise InputError(f"there is no setting {setting!r}", advice=f"there are {len(values)}, counted from 0")
        return compare_values(values[a], values[b])


def compare_values(a: ArrayLike, b: ArrayLike) -> Comparison:
    """Paired t-test of values over the same folds, shape (n_folds,) each: is a - b more than chance?"""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    differences = first - second
    mean, deviation = float(differences.mean()), float(_deviation(differences[None])[0])
    if len(differences) < 2:
        return Comparison(mean, deviation, nan, nan)
    if deviation == 0:  # the same difference on every fold: no chance in it, or no difference at all
        return Comparison(mean, 0.0, nan if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0))
    test = ttest_rel(first, second)
    return Comparison(mean, deviation, float(test.statistic), float(test.pvalue))


def cross_validate(
    learner: Learner,
    gram: GramOperator | Corpus,
    labels: Sequence[Sequence[str | None] | None],
    folds: int | Folds | Sequence[Sequence[int]] = 5,
    settings: Settings | Mapping[str, Iterable[Any]] | None = None,
    *,
    seed: int | None = None,
    dummy: str | None = "O",
    progress: RoundProgress | None = None,
) -> CrossValidation:
    """Train and test `learner` on every fold with every setting.

    `gram` is the Gram over all structures (a corpus for learners on explicit features); `labels` has one list per
    structure. `folds` is a number (in order, or shuffled with `seed`), `Folds`, or held-out structure numbers per
    fold. `settings` are parameters to change, one dictionary each, or a dictionary of lists for every combination.

    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.learners import DenseGram, LabelingPerceptron
    >>> from gramline.pipeline import Corpus, cross_validate
    >>> words = [["the", "cat"], ["a", "dog"], ["the", "dog", "sat"], ["a", "cat", "sat"]]
    >>> labels = [["D", "N"], ["D", "N"], ["D", "N", "V"], ["D", "N", "V"]]
    >>> gram = DenseGram.of(SequenceLabeling(c=0.5), Corpus.from_sequences(words))
    >>> scores = cross_validate(LabelingPerceptron(), gram, labels, [[0, 2], [1, 3]], {"rounds": [1, 5]})
    >>> scores.table("accuracy").shape, scores.settings[scores.best("accuracy")]
    ((2, 2), {'rounds': 1})
    """
    _check_source(learner, gram)
    if seed is not None:
        plain_value("seed", Number(whole=True, least=0), seed, InputError, as_given=True)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function, got {progress!r}", key="progress")
    gold = label_lists(labels, gram.lengths if isinstance(gram, Corpus) else gram.layout.rows.lengths)
    chosen = _folds(folds, len(gold), seed)
    variants = _settings(learner, settings)
    check_folds(len(gram) if isinstance(gram, Corpus) else gram.layout.rows.n_structures, gold, chosen)
    check_leaks(gram, chosen)
    jobs = [(setting, fold) for setting in range(len(variants)) for fold in range(len(chosen))]
    learners = [learner.fresh().set_params(**variants[setting]) for setting, _ in jobs]
    if isinstance(gram, Corpus):
        outcomes = [
            fit_on_corpus(one, gram, gold, chosen.training(fold), chosen.held_out[fold])
            for one, (_, fold) in zip(learners, jobs, strict=True)
        ]
    else:
        outcomes = fit_on_gram(learners, gram, gold, chosen, [fold for _, fold in jobs], progress)
    width = len(chosen)
    by_setting = tuple(tuple(outcomes[k * width : (k + 1) * width]) for k in range(len(variants)))
    return assembled(variants, chosen, gold, by_setting, dummy=dummy)


def assembled(
    settings: Settings,
    folds: Folds,
    labels: Sequence[Sequence[str | None]],
    outcomes: Sequence[Sequence[HeldOut]],
    *,
    dummy: str | None = "O",
) -> CrossValidation:
    """The results of outcomes[setting][fold], compared with the labels."""
    results = tuple(
        FoldResult(fold, setting, evaluate([labels[k] for k in folds.held_out[fold]], held.predicted, dummy=dummy))
        for setting, row in enumerate(outcomes)
        for fold, held in enumerate(row)
    )
    return CrossValidation(tuple(dict(setting) for setting in settings), folds, results, tuple(outcomes))


def _folds(folds: int | Folds | Sequence[Sequence[int]], n_structures: int, seed: int | None) -> Folds:
    if isinstance(folds, Folds):
        return folds
    if isinstance(folds, int | np.integer):
        return k_fold(n_structures, int(folds), seed=seed)
    if not is_listed(folds):
        raise InputError(f"folds must be a number, Folds or lists of held-out structures, got {folds!r}")
    return custom_folds(folds, n_structures)


def _settings(learner: Learner, settings: Settings | Mapping[str, Iterable[Any]] | None) -> list[dict[str, Any]]:
    if settings is None:
        return [{}]
    if isinstance(settings, Mapping):
        variants = grid(settings)
    else:
        if not is_listed(settings):
            raise InputError(f"settings must be a list of dictionaries, or one of lists, got {settings!r}")
        given = list(settings)
        if strange := [setting for setting in given if not isinstance(setting, Mapping)]:
            raise InputError(f"a setting is a dictionary of parameters, got {strange[0]!r}")
        variants = [dict(setting) for setting in given]
    if not variants:
        raise InputError("settings is empty; give at least one, or leave it out")
    for variant in variants:
        if unnamed := [name for name in variant if not isinstance(name, str)]:
            raise InputError(f"the name of a parameter is a string, got {unnamed[0]!r}")
        learner.fresh().set_params(**variant)  # an unknown parameter is refused before anything runs
    return variants


def grid(parameters: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the given values, in the order of the names."""
    names = list(parameters)
    for name in names:
        if not is_listed(parameters[name]):
            raise InputError(f"settings of {name} must be a list of values to try, got {parameters[name]!r}")
    return [dict(zip(names, values, strict=True)) for values in product(*(list(parameters[name]) for name in names))]


def _check_source(learner: Learner, gram: GramOperator | Corpus) -> None:
    if not isinstance(learner, Learner):
        raise InputError(f"expected a learner such as LabelingPerceptron(), got {learner!r}")
    if isinstance(learner, RankingLearner):
        raise InputError(f"{learner.name} chooses candidates and labels nothing; cross-validate it with `gramline cv`")
    if isinstance(gram, Corpus) != learner.reads_corpus:
        needs = "a corpus: it reads features" if learner.reads_corpus else "a Gram matrix"
        raise InputError(f"{learner.name} learns from {needs}, but was given a {type(gram).__name__}")
    if not isinstance(gram, Corpus):
        check_operator(gram)


def check_folds(n_structures: int, labels: Sequence[Sequence[str | None]], folds: Folds) -> None:
    """Refuse folds that do not fit the structures, or that leave nothing to train or to test on."""
    if len(labels) != n_structures or folds.n_structures != n_structures:
        raise InputError(
            f"there are {n_structures} structures, labels for {len(labels)} and folds over {folds.n_structures}"
        )
    for fold in range(len(folds)):
        for part, members in (("train on", folds.training(fold)), ("test on", folds.held_out[fold])):
            if all(label is None for k in members for label in labels[k]):
                raise InputError(f"fold {fold} has no label to {part}; use other folds, or label more structures")


def check_leaks(gram: GramOperator | Corpus, folds: Folds) -> None:
    """Refuse a Gram matrix whose numbers know labels that a fold hides."""
    if isinstance(gram, HasKernel) and counts_labels(gram.kernel) and not _never_counted(gram, folds):
        is_learned = has_learned_prior(gram.kernel)
        what = "a learned prior was trained on" if is_learned else "an empirical prior was counted from"
        raise InputError(
            f"{what} the labels of all structures, so held-out labels would leak into training; use a uniform or "
            "tabulated prior, or one Gram matrix per fold (a job file makes them)"
        )


def _never_counted(gram: object, folds: Folds) -> bool:
    """True when the labels of every hidden structure were missing already when the Gram was made."""
    if not isinstance(gram, HasLabels):
        return False
    known, hidden = gram.labels, {k for fold in range(len(folds)) for k in folds.hidden(fold).tolist()}
    return all(label is None for k in hidden for label in known[k])


def _deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of a sample along the last axis; 0 for a single value."""
    if values.shape[-1] < 2:
        return np.zeros(values.shape[:-1])
    return np.asarray(values.std(axis=-1, ddof=1))
