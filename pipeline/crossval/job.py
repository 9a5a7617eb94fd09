"""A cross-validation job as plain data: kernels, settings of learners (lists of values multiplied out), folds, and
what its problems are.

A problem is one setting on one fold. Its digest says everything that decides its outcome, so that a finished problem
is known again: after an interruption, and in a job that has more settings than the last one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import EVERYTHING, find
from gramline.kernels.parameters import Record, parameters_of
from gramline.kernels.value_kinds import Kind
from gramline.learners.catalogue import find_learner, make_learner
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.duplicates import duplicate_groups
from gramline.pipeline.crossval.fold_settings import DUPLICATES
from gramline.pipeline.crossval.folds import Folds, FoldSpec
from gramline.pipeline.crossval.validate import METRICS
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.kernel_choice import KernelChoice, choose_kernels
from gramline.pipeline.gram.stored import StoredGram

MOST = 100_000  # settings of one job: nobody waits for more


@dataclass(frozen=True)
class Variant:
    """One setting: a learner with its parameters, on a kernel unless it reads features itself."""

    kernel: int | None  # its number in the job
    learner: str
    params: Mapping[str, Any]

    def make(self) -> Learner:
        return make_learner(self.learner, self.params)


def kernel_kinds() -> dict[str, Kind]:
    """What every parameter of a kernel and of its parts takes, by name."""
    return {
        name: parameter.kind for record in EVERYTHING for name, parameter in parameters_of(find(record, Record)).items()
    }


def learner_kinds(name: str) -> dict[str, Kind]:
    """What every parameter of a learner takes, by name."""
    return {key: parameter.kind for key, parameter in parameters_of(find_learner(name)).items()}


def expand(description: Mapping[str, Any], kinds: Mapping[str, Kind]) -> list[dict[str, Any]]:
    """Every combination of the values in lists, in the order of the names; inner tables are multiplied out as well.

    `kinds` know which lists are one value.
    """
    names = list(description)
    for name in names:
        if description[name] == []:
            raise InputError(f"{name} is an empty list", advice="give a value", key=name)
    choices = [_choices(name, description[name], kinds) for name in names]
    if math.prod(map(len, choices)) > MOST:
        count, largest = max(zip(map(len, choices), names, strict=True))
        problem = f"the lists make more than {MOST:,} settings, {count:,} of {largest!r} alone"
        raise InputError(problem, advice="give fewer", key=largest)
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _choices(name: str, value: Any, kinds: Mapping[str, Kind]) -> list[Any]:
    if isinstance(value, Mapping):
        return list(expand(value, kinds))
    if isinstance(value, list) and kinds.get(name, Kind()).are_several(value):
        return [choice for item in value for choice in _choices(name, item, kinds)]
    return [value]


def expand_variants(
    learner: str, params: Mapping[str, Any], n_kernels: int, *, has_corpus: bool = True
) -> Iterator[Variant]:
    """Every setting of a learner, on every kernel unless it reads features itself; all are checked."""
    for choice in expand(params, learner_kinds(learner)):
        made = make_learner(learner, choice)
        made.check_parameters()
        if made.reads_corpus and not has_corpus:
            raise InputError(f"{learner} reads features; give it a corpus instead of a Gram matrix")
        for kernel in [None] if made.reads_corpus else range(n_kernels):
            yield Variant(kernel, learner, choice)


def expand_kernels(description: Mapping[str, Any], corpus: Corpus) -> Iterator[KernelChoice]:
    """Every kernel of a description, for a corpus; the default of its kind where the description has no name."""
    for choice in expand(description, kernel_kinds()):
        yield from choose_kernels(choice, corpus)


def distinct_variants(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Each of them once."""
    return tuple({repr((v.kernel, v.learner, sorted(v.params.items()))): v for v in variants}.values())


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
        if len({issubclass(find_learner(variant.learner), RankingLearner) for variant in self.variants}) > 1:
            raise InputError("rankers choose candidates and labelers label positions", advice="give each their own job")
        if self.is_ranking and self.inner_folds is not None:
            raise InputError("rankers have no nested selection", advice="leave the inner folds out")
        for variant in self.variants:
            if variant.kernel is None or self.kernels[variant.kernel].per_position != self.is_ranking:
                continue
            name = self.kernels[variant.kernel].name
            if self.is_ranking:
                problem, advice = f"the kernel {name!r} compares positions", "rankers need one of whole structures"
                raise InputError(problem, advice=advice)
            raise InputError(
                f"the kernel {name!r} compares whole structures, but labelers are trained on positions; use a labeling "
                "kernel"
            )

    @property
    def is_ranking(self) -> bool:
        """Whether its learners choose among candidates instead of labeling positions."""
        return issubclass(find_learner(self.variants[0].learner), RankingLearner)

    @property
    def used_kernels(self) -> list[int]:
        """The numbers of the kernels that a variant needs."""
        return sorted({variant.kernel for variant in self.variants if variant.kernel is not None})

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

    @classmethod
    def of_corpus(cls, corpus: Corpus, source: str) -> JobData:
        """All structures of a corpus."""
        return cls(corpus.fingerprint, corpus.ids, corpus.tokens, corpus.labels, source, corpus)

    def grouped_by(self, column: str | None) -> JobData:
        """The same structures; those with the same value in a column of their corpus belong together, or equal ones."""
        if column is None:
            return self
        if self.corpus is None:
            raise InputError("a Gram store has no columns to group by; give its corpus with --corpus")
        if column == DUPLICATES:
            return replace(self, groups=duplicate_groups(self.corpus).tolist())
        return replace(self, groups=self.corpus.column(column))

    @classmethod
    def of_gram(cls, gram: StoredGram, source: str) -> JobData:
        """The structures of a Gram matrix, with the words that its vocabulary knows."""
        packed, names = gram.row_corpus, gram.row_corpus.vocabulary.symbols
        words = [names[code] if 0 <= code < len(names) else None for code in packed.symbols.tolist()]
        tokens = [words[first:last] for first, last in pairwise(packed.starts.tolist())]
        ids = [str(number) for number in range(len(tokens))]
        return cls("+".join(gram.store.spec.rows), ids, tokens, gram.labels, source)

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
