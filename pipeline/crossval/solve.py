"""Solves the problems of a job: completes the Gram matrices they need, trains, and writes down every outcome.

Every finished problem is on disk before the next one is waited for. A setting whose numbers overflow or do not converge
is given up, the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramline.kernels.errors import KernelOverflowError
from gramline.learners.catalogue import find_learner
from gramline.learners.errors import ConvergenceError, NotPositiveDefiniteError
from gramline.learners.kinds import SharedPassLearner
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.job import Job, JobData, Problem
from gramline.pipeline.crossval.problem_memory import ProblemSize, factor_limit
from gramline.pipeline.crossval.problem_task import ProblemTask, solve_problem, stored
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.setting_names import setting_names
from gramline.pipeline.crossval.training import fit_on_gram, hide
from gramline.pipeline.errors import RunError, named_line
from gramline.pipeline.events import (
    Event,
    Listener,
    Message,
    ProblemsSolved,
    RoundDone,
    TileDone,
    TileReport,
    TrainingStarted,
)
from gramline.pipeline.executors.base import FINAL, Executor
from gramline.pipeline.gram.build import StoreChoices, remove_on_overflow
from gramline.pipeline.gram.cache import GramCache, building
from gramline.pipeline.gram.keep import Keep
from gramline.pipeline.gram.learned_prior import with_learned_prior
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.plan import thread_limit
from gramline.pipeline.gram.read_progress import report_reads
from gramline.pipeline.gram.spec import counts_labels, has_learned_prior
from gramline.pipeline.gram.stored import StoredGram

# What one setting's numbers do, whatever is right with the others.
NUMERICAL = (KernelOverflowError, ConvergenceError, NotPositiveDefiniteError)
SPREAD_ROWS = 20_000  # of a matrix whose problems are solved sooner with workers, also where these must be started
TOGETHER_BYTES = 2 << 30  # what the problems of one pass may hold, unless a limit is given


@dataclass(frozen=True)
class JobSettings:
    """Where things are and how fast they come: nothing here changes a number."""

    cache: GramCache | None = None
    stores: dict[int, str] = field(default_factory=dict)  # Gram stores that are there already, by kernel number
    block_rows: int | None = None
    compression: str | None = None
    keep: Keep | None = None  # tiles of new Gram matrices to store
    limit_bytes: int | None = None  # memory of one worker thread
    files: dict[str, str] = field(default_factory=dict)  # where lists of kernels came from, see `setting_names`
    description: dict[str, Any] = field(default_factory=dict)  # what run.json says besides the job
    has_baselines: bool = False  # whether simple models are trained on the same folds, see `baselines`


@dataclass
class Running:
    """What all steps of a running job share; `stores` describes the Gram matrices that were used."""

    job: Job
    data: JobData
    folder: RunFolder
    settings: JobSettings
    folds: Folds  # outer folds, then inner ones
    executor: Callable[[], Executor]
    progress: Listener
    stores: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)  # why a variant came to no end, by its number

    def fail(self, variant: int, error: Exception) -> None:
        """Give a variant up; the others go on."""
        if variant not in self.failed and len(self.job.variants) > 1:
            name = setting_names(self.job.settings(), self.settings.files)[variant]
            self.progress(Message(f"{name} failed; the others go on"))
        self.failed.setdefault(variant, error)


def solve(running: Running, todo: Sequence[Problem]) -> None:
    """Solve all of them: one pass over the tiles for learners that share it, a task per problem for the others.

    A variant whose numbers come to no end is given up, see `Running.failed`.
    """
    job = running.job
    overflowed: dict[int, KernelOverflowError] = {}
    by_learner: dict[tuple[int | None, str], list[Problem]] = {}
    for problem in todo:
        variant = job.variants[problem.variant]
        by_learner.setdefault((variant.kernel, variant.learner), []).append(problem)
    for (kernel, learner), mine in sorted(by_learner.items(), key=lambda item: (item[0][0] is not None, item[0])):
        if kernel is None:
            _spread(running, str(running.folder.corpus_path.absolute()), mine)
            continue
        together = issubclass(find_learner(learner), SharedPassLearner)
        for folds_of in _grams_needed(running, kernel, mine):
            try:
                if kernel in overflowed:
                    raise overflowed[kernel]  # no tile is computed again to find out
                with _gram(running, kernel, folds_of) as gram:
                    if together:
                        _in_one_pass(running, gram, folds_of)
                    else:
                        _spread(running, gram.path, folds_of, _factor_limits(running, gram, folds_of))
            except KernelOverflowError as error:
                overflowed[kernel] = error
                for number in dict.fromkeys(problem.variant for problem in mine):
                    running.fail(number, error)


def _grams_needed(running: Running, kernel: int, problems: list[Problem]) -> list[list[Problem]]:
    """Problems by the Gram matrix they need: all share one, unless its values depend on labels."""
    if not counts_labels(running.job.kernels[kernel]):
        return [problems]
    by_fold: dict[int, list[Problem]] = {}
    for problem in problems:
        by_fold.setdefault(problem.fold, []).append(problem)
    return list(by_fold.values())


@contextmanager
def _gram(running: Running, number: int, problems: Sequence[Problem]) -> Iterator[StoredGram]:
    """The complete Gram matrix of a kernel; a kernel that counts labels never sees those its fold hides."""
    job, data, settings = running.job, running.data, running.settings
    if number in settings.stores:
        gram = stored(settings.stores[number], len(data.labels))
        _complete(running, gram, None)
        yield gram
        return
    if data.corpus is None or settings.cache is None:
        raise RunError("this job has neither a stored Gram matrix nor a corpus and a cache to build one")
    kernel, corpus = job.kernels[number], data.corpus
    if counts_labels(kernel):
        corpus = corpus.with_labels(hide(data.labels, running.folds.hidden(problems[0].fold)))
        if has_learned_prior(kernel):
            running.progress(Message(f"training the prior of fold {problems[0].fold}"))
        corpus, _ = with_learned_prior(kernel, corpus)
    choices = StoreChoices(job.dtype, settings.block_rows, settings.compression, settings.keep)
    with settings.cache.using(kernel, corpus.packed(), choices, made_from=data.source) as gram:
        _complete(running, gram, Path(gram.path).parent)
        yield gram


def _complete(running: Running, gram: StoredGram, lock: Path | None) -> None:
    """Compute the tiles that are missing; one job at a time."""
    before = gram.status()
    reports: list[TileReport] = []

    def heard(event: Event) -> None:
        if isinstance(event, TileDone):
            reports.append(event.report)
        running.progress(event)

    if not before.is_complete:
        with ExitStack() as stack:
            if lock is not None and not stack.enter_context(building(lock, wait=False)):
                running.progress(Message(f"{gram.path} is being built by another job; waiting for it"))
                stack.enter_context(building(lock))
            if lock is not None and not before.n_present:
                stack.enter_context(remove_on_overflow(gram.path))
            plan = plan_store(gram.store)  # the other job may have finished it
            if plan.tasks:
                try:
                    limit = running.settings.limit_bytes
                    compute_missing(gram.store, running.executor(), plan=plan, limit_bytes=limit, progress=heard)
                finally:
                    running.folder.write_tiles(gram.path, reports)
    status = gram.status()
    described = {
        "path": gram.path,
        "kernel": status.kernel,
        "shape": list(status.shape),
        "tiles": status.n_tiles,
        "computed": len(reports),
        "stored_bytes": status.stored_bytes,
        "block_rows": status.block_rows,
    }
    if not any(store["path"] == gram.path for store in running.stores):
        running.stores.append(described)


def _in_one_pass(running: Running, gram: StoredGram, problems: Sequence[Problem]) -> None:
    """As many problems at a time as memory allows: usually all of them."""

    def round_done(number: int, mistakes: int) -> None:
        running.progress(RoundDone(number, mistakes, what=trained[0].round_measure))

    if gram.shape[0] >= SPREAD_ROWS:
        gram.executor = running.executor()  # its workers bring scores up to date and multiply
    n_labels = max(1, len(gram.label_names or running.data.label_names))
    trained: list[Any] = [running.job.variants[problem.variant].make() for problem in problems]
    width = max(learner.pass_columns(n_labels) for learner in trained)
    each = 8 * gram.shape[0] * 6 * width  # scores and weights, or the blocks of a solver
    size = max(1, (running.settings.limit_bytes or TOGETHER_BYTES) // each)
    # Settings of one fold stay together: they share its training.
    ordered = sorted(problems, key=lambda problem: (problem.fold, problem.variant))
    batches = [ordered[first : first + size] for first in range(0, len(ordered), size)]
    while batches:
        batch = [problem for problem in batches.pop(0) if problem.variant not in running.failed]
        if not batch:
            continue
        learners = [running.job.variants[problem.variant].make() for problem in batch]
        begin, reads = time.perf_counter(), gram.tile_reads
        running.progress(TrainingStarted(learners[0].name, len(batch)))
        try:
            with report_reads(gram, running.progress):
                outcomes = fit_on_gram(
                    learners, gram, running.data.labels, running.folds, [p.fold for p in batch], round_done
                )
        except NUMERICAL as error:
            # Nobody knows whose numbers these were: each variant once more, alone.
            batches[:0] = _alone(running, batch, error)
            continue
        details = {
            "learner": learners[0].name,
            "problems": len(batch),
            "store": gram.path,
            "tile_reads": gram.tile_reads - reads,
            "stored_tiles": gram.layout.n_tiles,
            "rounds": max((len(curve) for held in outcomes for curve in held.traces.values()), default=None),
            "seconds": time.perf_counter() - begin,
        }
        running.folder.write_unit({p.digest: held for p, held in zip(batch, outcomes, strict=True)}, details)
        running.progress(ProblemsSolved(len(batch)))


def _alone(running: Running, batch: Sequence[Problem], error: Exception) -> list[list[Problem]]:
    """The problems of a batch that failed, by variant; a variant that was alone already is given up."""
    by_variant: dict[int, list[Problem]] = {}
    for problem in batch:
        by_variant.setdefault(problem.variant, []).append(problem)
    if len(by_variant) > 1:
        return list(by_variant.values())
    running.fail(batch[0].variant, error)
    return []


def _spread(
    running: Running, source: str, problems: Sequence[Problem], factor_limits: Mapping[int, int] | None = None
) -> None:
    """Problems as tasks of the executor, each kept as soon as it is there; `factor_limits` are by variant."""
    names = setting_names(running.job.settings(), running.settings.files)
    tasks = [
        ProblemTask(
            digest=problem.digest,
            source=source,
            labels=str(running.folder.structures_path.absolute()),
            learner=running.job.variants[problem.variant].learner,
            params=dict(running.job.variants[problem.variant].params),
            held_out=tuple(running.folds.held_out[problem.fold].tolist()),
            hidden=tuple(running.folds.hidden(problem.fold).tolist()),
            factor_limit=(factor_limits or {}).get(problem.variant),
            title=f"{names[problem.variant]}, fold {problem.fold}",
        )
        for problem in problems
    ]
    running.progress(TrainingStarted(tasks[0].learner, len(tasks)))
    variant_of = {problem.digest: problem.variant for problem in problems}
    failed: list[BaseException | None] = []
    with closing(running.executor().run(solve_problem, tasks)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, NUMERICAL):
                running.fail(variant_of[outcome.task.digest], outcome.error)
                continue
            if isinstance(outcome.error, FINAL):
                raise outcome.error
            if outcome.result is None:
                failed.append(outcome.error)
                continue
            solved = outcome.result
            details = {
                "learner": outcome.task.learner,
                "problems": 1,
                "store": source,
                "seconds": solved.seconds,
                "worker": solved.worker,
            }
            running.folder.write_unit({outcome.task.digest: solved.held}, details)
            running.progress(ProblemsSolved(1, outcome.task.title, solved.seconds, solved.worker))
    if failed:
        raise RunError(
            f"{len(failed)} of {len(tasks)} problems failed, the first with {named_line(failed[0])}; "
            "the others are kept, run it again to go on"
        ) from failed[0]


def _factor_limits(running: Running, gram: StoredGram, problems: Sequence[Problem]) -> dict[int, int]:
    """What factorisations of every variant may take in memory; none where nobody knows how much there is."""
    limit = thread_limit(running.settings.limit_bytes, running.executor())
    if limit is None:
        return {}
    lengths = gram.layout.rows.lengths
    held = max(int(lengths[structures].sum()) for structures in running.folds.held_out)
    n_labels = max(1, len(gram.label_names or running.data.label_names))
    size = ProblemSize(gram.store, gram.shape[0], n_labels, held)
    variants = {problem.variant: running.job.variants[problem.variant] for problem in problems}
    return {number: factor_limit(variant.make(), size, limit) for number, variant in variants.items()}
