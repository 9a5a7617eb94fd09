"""Defaults on sets that nobody tuned them for: the path without options, and every learner, beside a CRF and a grid.

Everything sees the same features. The best of a grid is the lowest error on the test structures themselves: a bound
that nobody could have chosen, which the defaults should come near.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from gramline.learners.estimator import Learner
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.kinds import SharedPassLearner
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.metrics import evaluate
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.crf import crf_predictions, has_crf, missing_crf
from gramline.pipeline.crossval.validate import grid
from gramline.pipeline.experiments.base import Cell, ResultTable, Row, Run
from gramline.pipeline.experiments.defaults_sets import SOURCES, Part
from gramline.pipeline.models.recommended import recommend

ZERO = "no options"
EXACT = 1400  # training positions at most of the exact Gaussian process: N^3 steps per label and sweep
FACTORED = 2000  # of the one of low rank: N RANK^2 steps
RANK = 300


@dataclass(frozen=True)
class Family:
    """A learner at its defaults, or with a constant that it chooses, and the settings it is compared with."""

    learner: Learner
    grid: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        """In the tables: with what is not as it comes."""
        own = self.learner.changed_params().items()
        return ", ".join([self.learner.name, *(key if value is True else f"{key} {value}" for key, value in own)])

    def suited(self, trials: Sequence[Trial]) -> tuple[Learner, Sequence[Trial]]:
        """The learner and what it is trained on: everything, but of a Gaussian process no more than can be factored."""
        if not isinstance(self.learner, GaussianProcessLabeler):
            return self.learner, trials
        first = [trial.first(FACTORED) for trial in trials]
        if max(trial.train.n_positions for trial in first) <= EXACT:
            return self.learner, first
        return self.learner.fresh().set_params(approximation="nystrom", rank=RANK), first


def families(quick: bool) -> list[Family]:
    rounds = (5, 10) if quick else (5, 10, 20)
    ridges = {"ridge": (1e-2, 1.0) if quick else (1e-3, 1e-2, 1e-1, 1.0), "transition_ridge": (1.0, 1e3, 1e6)}
    weights = (3.0, 30.0) if quick else (1.0, 3.0, 10.0, 30.0, 100.0)
    chosen: dict[str, Any] = {"C": "auto", **({"passes": 10} if quick else {})}
    return [
        Family(LabelingPerceptron(), grid({"rounds": rounds, "average": (False, True)})),
        Family(HiddenMarkovPerceptron(), grid({"rounds": rounds, "average": (False, True)})),
        Family(
            HiddenMarkovPerceptron(dual=True),
            grid({"rounds": rounds[1:], "scale": (1.0, 10.0, 30.0)}),
        ),
        Family(LabelingSVM(**chosen), grid({"C": weights})),
        Family(StructuredSVM(**chosen), grid({"C": weights, "loss": ("hamming", "none")})),
        Family(KernelCRF(penalty="auto"), grid({"penalty": [0.5 / weight for weight in weights]})),
        Family(ZScoreLabeler(), grid(ridges)),
        Family(KernelZScoreLabeler(), grid(ridges)),
        Family(GaussianProcessLabeler(), grid({"scale": (10.0, 100.0) if quick else (10.0, 30.0, 100.0, 300.0)})),
    ]


def defaults(run: Run) -> Sequence[ResultTable]:
    """Errors of the path without options and of every learner's defaults, on every set that is there."""
    present = [source for source in SOURCES if source.is_there(run)]
    absent = tuple(f"{source.title} is not in the data folder: left out" for source in SOURCES if source not in present)
    zero_rows: list[Row] = []
    learner_rows: list[Row] = []
    with one_blas_thread():
        for source in dict.fromkeys((present[0], present[-1])) if run.quick else present:
            trials = [Trial.of(part) for part in source.parts(run)]
            run.say(f"{source.title}: no options")
            crf = _mean(trial.crf_error() for trial in trials) if has_crf() else None
            zero = _mean(trial.errors([trial.recommended])[0] for trial in trials)
            majority = _mean(trial.majority_error() for trial in trials)
            n_positions = round(_mean(trial.train.n_positions for trial in trials))
            zero_rows.append((source.title, n_positions, zero, crf, _ratio(zero, crf), majority))
            for family in families(run.quick):
                run.say(f"{source.title}: {family.learner!r}")
                learner_rows.append((source.title, *_family_row(family, trials)))
    ratios = [row[4] for row in zero_rows if isinstance(row[4], float)]
    mean = exp(sum(map(log, ratios)) / len(ratios)) if ratios else None
    zero_rows.append(("geometric mean", None, None, None, mean, None))
    columns = ("set", "positions", ZERO, "CRF", "ratio", "majority")
    described = (
        "the four CRF++ sets: means over published folds, with the features of their templates; all others: spelling "
        "features of the word and its neighbours"
    )
    return [
        ResultTable(
            "The path without options: error in per cent beside python-crfsuite at its defaults on the same features",
            columns,
            tuple(zero_rows),
            (described, *missing_crf(), *absent),
        ),
        ResultTable(
            "Every learner at its defaults: error in per cent beside the best of a grid",
            ("set", "learner", "default", "best of its grid", "ratio", "the best setting"),
            tuple(learner_rows),
            (
                "learners on a Gram matrix have the recommended kernel; the best of a grid is the lowest error on the "
                "test structures, which nobody could have chosen",
                f"the Gaussian process learns from the first structures up to {FACTORED:,} positions, and has "
                f"rank {RANK} where these are more than {EXACT:,}",
            ),
        ),
    ]


def _family_row(family: Family, trials: Sequence[Trial]) -> Row:
    """Learner, error at its defaults, the lowest error of its grid, their ratio and the setting."""
    learner, trials = family.suited(trials)
    learners = [learner, *(learner.fresh().set_params(**setting) for setting in family.grid)]
    default, *errors = np.mean([trial.errors(learners) for trial in trials], axis=0).tolist()
    best = int(np.argmin(errors))
    words = " ".join(f"{name} {_short(value)}".replace("_", " ") for name, value in family.grid[best].items())
    lowest = min(default, errors[best])
    return family.name, default, lowest, _ratio(default, lowest), words


@dataclass(frozen=True, eq=False)
class Trial:
    """One part with the recommended learner and the Gram matrices of its kernel, made once for all learners."""

    train: Corpus
    test: Corpus
    recommended: Learner
    gram: DenseGram
    cross: DenseGram

    @classmethod
    def of(cls, part: Part) -> Trial:
        kernel, learner = recommend(part.train)
        gram, cross = DenseGram.of(kernel, part.train), DenseGram.of(kernel, part.train, part.test.without_labels())
        return cls(part.train, part.test, learner, gram, cross)

    def first(self, n_positions: int) -> Trial:
        """The same with the first training structures, which have at most so many positions together."""
        if self.train.n_positions <= n_positions:
            return self
        n_structures = int(np.searchsorted(np.cumsum(self.train.lengths), n_positions, side="right"))
        return Trial.of(Part(self.train.select(range(n_structures)), self.test))

    def errors(self, learners: Sequence[Any]) -> list[float]:
        """Wrong labels of the test structures, in per cent, for learners of one class; trained together if they can."""
        fresh = [learner.fresh() for learner in learners]
        if isinstance(fresh[0], ZScoreLabeler):
            ZScoreLabeler.fit_many(fresh, self.train)
        elif isinstance(fresh[0], SharedPassLearner):
            type(fresh[0]).fit_many(fresh, self.gram, [self.train.labels] * len(fresh))
        else:
            for learner in fresh:
                learner.fit(*([self.train] if learner.reads_corpus else [self.gram, self.train.labels]))
        new = self.test.without_labels()
        return [self._error(learner.predict(new if learner.reads_corpus else self.cross)) for learner in fresh]

    def crf_error(self) -> float:
        packed = self.train.packed()
        return self._error(crf_predictions(packed, self.test.packed(like=packed)))

    def majority_error(self) -> float:
        counts = self.train.label_counts()
        frequent = max(counts, key=lambda label: counts[label])
        return self._error([[frequent] * int(length) for length in self.test.lengths])

    def _error(self, predicted: list[list[str]]) -> float:
        return 100 * evaluate(self.test.labels, predicted).hamming_loss


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _ratio(error: float, other: float | None) -> Cell:
    return error / other if other else None
