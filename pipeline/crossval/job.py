"""A cross-validation job as plain data: kernels, settings of learners, folds, and what its problems are.

A problem is one setting on one fold. Its digest says everything that decides its outcome, so that a finished problem
is known again: after an interruption, and in a job that has more settings than the last one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.priors import EmpiricalPrior
from gramline.learners.catalogue import find_learner, make_learner
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.fold_spec import FoldSpec
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.validate import METRICS
from gramline.pipeline.errors import InputError


@dataclass(frozen=True)
class Variant:
    """One setting: a learner with its parameters, on a kernel unless it reads features itself."""

    kernel: int | None  # its number in the job
    learner: str
    params: Mapping[str, Any]

    def make(self) -> Learner:
        return make_learner(self.learner, self.params)


@dataclass(frozen=True)
class Job:
    """Everything that decides the results; `JobSettings` says where things are and how fast they come."""

    kernels: tuple[Kernel, ...]
    variants: tuple[Variant, ...]
    folds: FoldSpec = field(default_factory=FoldSpec)
    inner_folds: int | None = None  # nested selection
    metric: str = "accuracy"
    dummy: str | None = "O"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if not self.variants:
            raise InputError("a job needs at least one learner")
        if self.metric not in METRICS:
            raise InputError(f"there is no metric {self.metric!r}; there are {', '.join(METRICS)}")
        if self.inner_folds is not None and self.inner_folds < 2:
            raise InputError(f"nested selection needs at least 2 inner folds, got {self.inner_folds}")
        for variant in self.variants:
            if issubclass(find_learner(variant.learner), RankingLearner):
                raise InputError(
                    f"{variant.learner} ranks groups of candidates, which have no folds of labeled structures"
                )
            if variant.kernel is not None and not self.kernels[variant.kernel].per_position:
                raise InputError(
                    f"the kernel {self.kernels[variant.kernel].name!r} compares whole structures, but labelers are "
                    "trained on positions; use a labeling kernel"
                )

    def settings(self) -> list[dict[str, Any]]:
        """Every variant as a JSON-able dictionary."""
        return [
            {
                "kernel": None if variant.kernel is None else self.kernels[variant.kernel].to_dict(),
                "learner": variant.learner,
                "params": dict(variant.params),
            }
            for variant in self.variants
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings(),
            "folds": self.folds.to_dict(),
            "inner_folds": self.inner_folds,
            "metric": self.metric,
            "dummy": self.dummy,
            "dtype": self.dtype,
        }


@dataclass(frozen=True, eq=False)
class JobData:
    """The structures that a job is about."""

    fingerprint: str  # of everything but ids and words
    ids: Sequence[str]
    tokens: Sequence[Sequence[str | None]]
    labels: Sequence[Sequence[str | None]]
    source: str  # where they came from, for people
    corpus: Corpus | None = None  # None: only their Gram matrix is known
    groups: Sequence[Hashable] | None = None

    @property
    def n_positions(self) -> int:
        return sum(map(len, self.tokens))

    @property
    def label_names(self) -> list[str]:
        return sorted({label for structure in self.labels for label in structure if label is not None})


@dataclass(frozen=True)
class Problem:
    """One variant on one fold, by number, and the digest of all that decides its outcome."""

    variant: int
    fold: int
    digest: str


def problems_of(job: Job, data: JobData, folds: Folds) -> list[Problem]:
    """Every variant on every fold."""
    parts = []
    for fold in range(len(folds)):
        text = json.dumps([folds.held_out[fold].tolist(), folds.hidden(fold).tolist()])
        parts.append(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
    problems = []
    for number, setting in enumerate(job.settings()):
        known = json.dumps([data.fingerprint, job.dtype, setting], sort_keys=True)
        for fold, part in enumerate(parts):
            digest = hashlib.blake2b(f"{known}{part}".encode(), digest_size=16).hexdigest()
            problems.append(Problem(number, fold, digest))
    return problems


def counts_labels(kernel: Kernel) -> bool:
    """True for a kernel whose values depend on labels, so that every fold needs a Gram matrix of its own."""
    return isinstance(getattr(kernel, "prior", None), EmpiricalPrior)
