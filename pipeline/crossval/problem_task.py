"""A problem as a task for any worker: it names its store (or corpus) and carries structure numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from gramline.learners.catalogue import make_learner
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import this_process
from gramline.pipeline.crossval.training import HeldOut, drop_unlabeled, fit_on_corpus, fit_one, hide
from gramline.pipeline.gram.cache import LeadingGram
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram


@dataclass(frozen=True)
class ProblemTask:
    """A problem to solve on a worker."""

    digest: str
    source: str  # a Gram store, or the corpus file of a learner that reads features
    labels: str  # the file with the labels of all structures
    learner: str
    params: Mapping[str, Any]
    held_out: tuple[int, ...]
    hidden: tuple[int, ...]
    factor_limit: int | None = None  # bytes of a factorisation in memory; larger ones go by tiles
    title: str = ""  # learner, setting and fold, for people


@dataclass(frozen=True)
class Solved:
    """What a problem gave, and how long it took the worker that solved it."""

    held: HeldOut
    seconds: float
    worker: str  # host:process


def solve_problem(task: ProblemTask) -> Solved:
    """Train on everything that is not hidden, predict what is held out."""
    begin = perf_counter()
    held = _held_out(task)
    return Solved(held, perf_counter() - begin, this_process())


def _held_out(task: ProblemTask) -> HeldOut:
    labels = _labels(task.labels)
    learner = make_learner(task.learner, task.params)
    held, hidden = np.array(task.held_out, np.int64), np.array(task.hidden, np.int64)
    with one_blas_thread():
        if learner.reads_corpus:
            training = np.setdiff1d(np.arange(len(labels)), hidden)
            return fit_on_corpus(learner, Corpus.load(task.source), labels, training, held)
        gram = stored(task.source, len(labels))
        if task.factor_limit is not None:
            gram.factor_limit = task.factor_limit
        return fit_one(drop_unlabeled(learner, gram, labels), gram, hide(labels, hidden), held)


def stored(path: str, n_structures: int) -> StoredGram:
    """The Gram of the first structures of a store; of all of them when it has no more."""
    store = TileStore(path)
    whole = store.layout.rows.n_structures == n_structures
    return StoredGram(store) if whole else LeadingGram(store, n_structures)


@lru_cache(maxsize=4)
def _labels(path: str) -> list[list[str | None]]:
    labels: list[Any] = pq.read_table(path, columns=["labels"]).column("labels").to_pylist()
    return labels
