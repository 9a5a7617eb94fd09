"""Before a training: the learner, whether a Gram matrix suits it, what it leaves out, what a Gaussian process takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import lapack

from gramline.learners.catalogue import find_learner, make_learner
from gramline.learners.chains.labeler import ChainLabeler
from gramline.learners.estimator import Learner
from gramline.learners.gaussian_process.expectation import powers_bytes
from gramline.learners.gaussian_process.low_rank import usual_passes
from gramline.learners.kinds import GramLearner, RankingLearner
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.cholesky import FactorPlan, plan_factor
from gramline.pipeline.gram.stored import StoredGram

DEFAULT_LEARNER = "labeling-perceptron"
USUAL_SWEEPS = 8  # one factorisation and one inverse diagonal per label and sweep
PRODUCTS_PER_SWEEP = 150  # with K, of all labels at once
SAMPLE_ROWS = 768
VECTORS = 40  # numbers per row and label that training keeps
LOW_RANK_COPIES = 5  # n x rank matrices: the basis, and four while a label is factored


@dataclass(frozen=True)
class TrainingPlan:
    """Factorisations of one training, and all of it at the usual number of sweeps."""

    n_rows: int
    n_labels: int
    is_tiled: bool
    peak_bytes: int  # of this process, or of one worker thread when tiled
    scratch_bytes: int
    factor_seconds: float
    seconds: float
    passes: int | None = None  # over the tiles, to choose the pivots of a low rank

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def plan_training(gram: StoredGram, n_rows: int, n_labels: int, rank: int | None = None) -> TrainingPlan:
    """For so many labeled rows, with the limit and the executor of `gram`; a `rank` needs no factor of that size."""
    rate, n_threads = lapack_rate(), gram.executor.n_threads
    if rank is not None:
        rank = min(rank, n_rows)
        plan = FactorPlan(False, low_rank_bytes(n_rows, rank, n_labels), 0, 0, float(n_rows) * rank**2 * 2)
    else:
        plan = plan_factor(gram.store, n_rows, gram.factor_limit)
    factor = plan.seconds(rate, n_threads)
    products = PRODUCTS_PER_SWEEP * 2.0 * (rank or n_rows) * n_rows * n_labels / rate
    return TrainingPlan(
        n_rows,
        n_labels,
        plan.is_tiled,
        plan.peak_bytes + vector_bytes(n_rows, n_labels),
        plan.scratch_bytes,
        factor,
        USUAL_SWEEPS * (2 * n_labels * factor + products),
        None if rank is None else usual_passes(rank),
    )


def plan_learner(gram: StoredGram, learner: Learner) -> TrainingPlan:
    """The plan of a Gaussian-process labeler on the labels of `gram`."""
    known = [label for structure in gram.labels for label in structure if label is not None]
    n_labels = len(gram.label_names or set(known))
    return plan_training(gram, len(known), n_labels, chosen_rank(learner))


def chosen_rank(learner: Learner) -> int | None:
    """The rank of the approximation that a learner was told to use; None: it has none."""
    params = learner.get_params()
    return params["rank"] if params.get("approximation") else None


def low_rank_bytes(n_rows: int, rank: int, n_labels: int) -> int:
    """The basis of the approximation, what a factor of one label is made of, and the small factor of every label."""
    rank = min(rank, n_rows)
    return 8 * (LOW_RANK_COPIES * n_rows * rank + n_labels * rank**2)


def vector_bytes(n_rows: int, n_labels: int) -> int:
    """What a Gaussian-process labeler keeps beside its factors, by the bound that keeps more."""
    return 8 * n_rows * VECTORS * n_labels + powers_bytes(n_rows, n_labels)


def lapack_rate() -> float:
    """Floating-point operations per second of one core, from a small factorisation."""
    matrix = np.asfortranarray(np.eye(SAMPLE_ROWS) + 0.1)
    seconds = []
    with one_blas_thread():
        for _ in range(3):
            copy = matrix.copy(order="F")
            begin = perf_counter()
            lapack.dpotrf(copy, lower=1, overwrite_a=1, clean=0)
            seconds.append(perf_counter() - begin)
    return SAMPLE_ROWS**3 / 3 / max(min(seconds), 1e-9)


def learner_of(description: Mapping[str, Any], rounds: int | None = None) -> Learner:
    """The learner that {"name": ..., parameter: value, ...} describes, checked; `rounds` are the passes of a ranker."""
    params = {"name": DEFAULT_LEARNER, **description}
    name = params.pop("name")
    if rounds is not None:
        params["passes" if issubclass(find_learner(name), RankingLearner) else "rounds"] = rounds
    learner = make_learner(name, params)
    learner.check_parameters()
    return learner


def open_training_gram(path: str, learner: Learner) -> StoredGram:
    """The complete Gram matrix at `path`, of the kind that `learner` trains on."""
    if Path(path).is_file():
        raise InputError(
            f"{learner.name} trains on a Gram matrix, but {path} is a file; build one with `gramline gram build`"
        )
    gram = StoredGram.open(path)
    gram.status().require_complete()
    if isinstance(learner, GramLearner) and not gram.kernel.per_position:
        raise InputError(
            f"{path} compares whole structures ({gram.kernel.name}), but {learner.name} learns from positions; build "
            "it with a labeling kernel, or rank candidates with --learner ranking-perceptron"
        )
    return gram


def dropped_notes(learner: Learner, labels: Sequence[Sequence[str | None]]) -> list[str]:
    """What to say of missing labels before it learns."""
    n_missing = np.array([sum(label is None for label in row) for row in labels])
    is_bare = (n_missing > 0) & (n_missing == [len(row) for row in labels])
    if learner.partial_labels:
        found = [
            (int(is_bare.sum()), "have no label and are left out"),
            (int(((n_missing > 0) & ~is_bare).sum()), f"lack some of their labels: {learner.partial_labels}"),
        ]
    elif isinstance(learner, ChainLabeler) and learner.unlabeled == "drop":
        found = [(int((n_missing > 0).sum()), "have an unlabeled position and are left out")]
    else:
        return []
    return [f"{n:,} of {len(labels):,} structures {what}" for n, what in found if n]
