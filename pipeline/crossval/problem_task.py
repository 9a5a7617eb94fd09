"""A problem as a task for any worker: it names its store (or corpus) and carries structure numbers only.

The worker that solves it writes the outcome into the run folder, and the state of a long training while it is at it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from gramline.learners.catalogue import make_learner
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import this_process
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.training import HeldOut, drop_unlabeled, fit_on_corpus, fit_one, hide
from gramline.pipeline.events import Event, Message
from gramline.pipeline.gram.cache import LeadingGram
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.checkpoint import EVERY, TrainingCheckpoint, TrainingPaused, identity_of_problems

LEFT = "finished problems are kept, and {after} of what was trained; the same command goes on where it was"


@dataclass(frozen=True)
class ProblemTask:
    """A problem to solve on a worker."""

    digest: str
    run: str  # the run folder
    source: str  # a Gram store, or the corpus file of a learner that reads features
    learner: str
    params: Mapping[str, Any]
    held_out: tuple[int, ...]
    hidden: tuple[int, ...]
    factor_limit: int | None = None  # bytes of a factorisation in memory; larger ones go by tiles
    title: str = ""  # learner, setting and fold, for people
    every: float = EVERY  # seconds between two states of a long training
    stop_at: float | None = None  # seconds since the epoch, when it shall keep its state and end
    must_begin: bool = False  # also when that is over: somebody has to get on


@dataclass(frozen=True)
class Solved:
    """What became of a problem, and how long it took the worker that solved it."""

    held: HeldOut | None  # only where the worker could not write it into the run folder
    seconds: float
    worker: str  # host:process
    is_paused: bool = False  # its time had come; it is not solved
    said: tuple[str, ...] = ()  # to people: where a training goes on
    warned: tuple[str, ...] = ()  # of a state that is not used


def solve_problem(task: ProblemTask) -> Solved:
    """Train on everything that is not hidden, predict what is held out, write it down."""
    begin, said, warned = perf_counter(), list[str](), list[str]()
    left = None if task.stop_at is None else max(0.0, task.stop_at - time.time())
    if left == 0 and not task.must_begin:
        return Solved(None, 0.0, this_process(), is_paused=True)
    folder = RunFolder(task.run)
    checkpoint = TrainingCheckpoint(
        folder.state_path([task.digest]), every=task.every, stop_after=left, warn=warned.append, left=LEFT
    )

    def tell(event: Event) -> None:
        if isinstance(event, Message):
            said.append(event.text)

    try:
        with checkpoint.kept():
            held: HeldOut | None = _held_out(task, checkpoint, tell)
            assert held is not None
            seconds = perf_counter() - begin
            details = {"learner": task.learner, "problems": 1, "store": task.source}
            try:
                folder.write_unit({task.digest: held}, details | {"seconds": seconds, "worker": this_process()})
                held = None
            except OSError:  # who started the job can write there
                pass
    except TrainingPaused:
        return Solved(None, perf_counter() - begin, this_process(), True, tuple(said), tuple(warned))
    return Solved(held, seconds, this_process(), False, tuple(said), tuple(warned))


def _held_out(task: ProblemTask, checkpoint: TrainingCheckpoint, tell: Any) -> HeldOut:
    labels = _labels(str(RunFolder(task.run).structures_path))
    learner = make_learner(task.learner, task.params)
    held, hidden = np.array(task.held_out, np.int64), np.array(task.hidden, np.int64)
    with one_blas_thread():
        if learner.reads_corpus:
            training = np.setdiff1d(np.arange(len(labels)), hidden)
            return fit_on_corpus(learner, Corpus.load(task.source), labels, training, held)
        gram = stored(task.source, len(labels))
        if task.factor_limit is not None:
            gram.factor_limit = task.factor_limit
        ready = drop_unlabeled(learner, gram, labels)
        used: Checkpoint = NOWHERE
        if ready.resumes:
            checkpoint.begin(identity_of_problems(task.learner, gram, [task.digest]), tell)
            used = checkpoint
        return fit_one(ready, gram, hide(labels, hidden), held, used)


def stored(path: str, n_structures: int) -> StoredGram:
    """The Gram of the first structures of a store; of all of them when it has no more."""
    store = TileStore(path)
    whole = store.layout.rows.n_structures == n_structures
    return StoredGram(store) if whole else LeadingGram(store, n_structures)


@lru_cache(maxsize=4)
def _labels(path: str) -> list[list[str | None]]:
    labels: list[Any] = pq.read_table(path, columns=["labels"]).column("labels").to_pylist()
    return labels
