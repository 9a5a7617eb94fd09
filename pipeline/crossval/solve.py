"""Solves the problems of a job: one schedule of builds, streams and tasks, and every outcome on disk as it is there.

A setting whose numbers overflow or do not converge is given up, the others go on. What was finished, and the state of
what was not, is there for the same command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramline.kernels.errors import KernelOverflowError
from gramline.learners.catalogue import find_learner
from gramline.learners.checkpoints import State
from gramline.learners.errors import ConvergenceError, NotPositiveDefiniteError
from gramline.learners.kinds import SharedPassLearner
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.crossval.job import Problem
from gramline.pipeline.crossval.matrices import Matrices
from gramline.pipeline.crossval.problem_memory import ProblemSize, factor_limit
from gramline.pipeline.crossval.problem_task import LEFT, ProblemTask, Solved, solve_problem
from gramline.pipeline.crossval.ranking import RankingTask, solve_ranking
from gramline.pipeline.crossval.running import Abandoned, JobSettings, Running
from gramline.pipeline.crossval.schedule import (
    Build,
    Sharing,
    Step,
    Stream,
    Tasks,
    run_in_order,
    run_side_by_side,
    schedule,
)
from gramline.pipeline.crossval.training import fit_on_gram
from gramline.pipeline.errors import RunError, StoreDamagedError, named_line
from gramline.pipeline.events import Event, Message, ProblemsSolved, RoundDone, TrainingStarted
from gramline.pipeline.executors.base import FINAL, Outcome
from gramline.pipeline.gram.plan import thread_limit
from gramline.pipeline.gram.read_progress import report_reads
from gramline.pipeline.gram.spec import counts_labels
from gramline.pipeline.gram.stored import SPREAD_ROWS, StoredGram
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, TrainingPaused, identity_of_problems, problems_in

# What one setting's numbers do, whatever is right with the others.
NUMERICAL = (KernelOverflowError, ConvergenceError, NotPositiveDefiniteError)
STARTING_ROWS = 20_000  # of a matrix whose problems are solved sooner with workers, also where these must be started
# What the problems of one pass may hold, unless a lower limit is given: two passes side by side stay below 1 GB.
TOGETHER_BYTES = 512 << 20


def solve(running: Running, todo: Sequence[Problem]) -> None:
    """Solve all of them: one pass over the tiles for learners that share it, a task per problem for the others.

    A variant whose numbers come to no end is given up, see `Running.failed`. TrainingPaused where the time of the job
    has come before all are solved.
    """
    job = running.job
    sharing = Sharing(
        counts_labels={number for number in job.used_kernels if counts_labels(job.kernels[number])},
        streams=lambda learner: issubclass(find_learner(learner), SharedPassLearner),
        fit_together=lambda problems: _fit_together(running, problems),
    )
    steps = schedule(todo, job.variants, sharing)
    spare = _drop_foreign_states(running, steps, todo)
    matrices = Matrices(running, steps)
    solving = _Solving(running, matrices)
    try:
        if running.settings.is_side_by_side:
            with one_blas_thread():  # entered here, it holds for all threads until the last one ends
                run_side_by_side(steps, solving.perform, running.stopped)
        else:
            run_in_order(steps, solving.perform)
    finally:
        matrices.close()
    for path in spare:
        if path.exists():
            running.survival.warn(f"{path} was not used: its settings were trained together with others")


def spread_rows(settings: JobSettings) -> int:
    """Rows of a matrix from which on problems that share a pass are solved with workers."""
    return SPREAD_ROWS if settings.has_workers else STARTING_ROWS


def _fit_together(running: Running, problems: Sequence[Problem]) -> int:
    """How many of these problems one pass has memory for."""
    trained: list[Any] = [running.job.variants[number].make() for number in {one.variant for one in problems}]
    width = max(int(learner.pass_columns(running.n_labels)) for learner in trained)
    each = 8 * running.data.n_positions * 6 * width  # scores and weights, or the blocks of a solver
    return max(1, min(running.settings.limit_bytes or TOGETHER_BYTES, TOGETHER_BYTES) // each)


def _drop_foreign_states(running: Running, steps: Sequence[Step], todo: Sequence[Problem]) -> list[Path]:
    """States of trainings that this job does not have, after it was edited, are of no use: they go, with a word.

    Those that may be of use: of a variant that is trained alone where the others come to no end.
    """
    streams = [[one.digest for one in step.problems] for step in steps if isinstance(step, Stream)]
    wanted = {running.folder.state_path(problems) for problems in [*streams, *([one.digest] for one in todo)]}
    variant_of = {one.digest: one.variant for one in todo}
    spare = []
    for path in running.folder.states():
        if path.with_suffix("") in wanted:
            continue
        try:
            variants = {variant_of.get(problem) for problem in problems_in(str(path))}
            reason = "of other settings, folds or structures"
        except StoreDamagedError as error:
            variants, reason = set(), f"damaged, {error.problem}"
        if len(variants) == 1 and None not in variants:
            spare.append(path)
            continue
        running.survival.warn(f"{path} is not used and was removed: it is {reason}")
        path.unlink(missing_ok=True)
    return spare


class _StepCheckpoint(TrainingCheckpoint):
    """One that also ends a stream when the job is stopped, with its state."""

    def __init__(self, running: Running, problems: Sequence[str]) -> None:
        survival = running.survival
        path, left = running.folder.state_path(problems), survival.seconds_left
        super().__init__(path, every=survival.every, stop_after=left, warn=survival.warn, left=LEFT)
        self._is_stopped = running.stopped.is_set

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        if self._is_stopped():
            self.hold(after, state)
            raise Abandoned
        super().offer(after, state, is_last=is_last)


@dataclass
class _Solving:
    """The steps of one job."""

    running: Running
    matrices: Matrices

    def perform(self, step: Step, pass_on: Callable[[], None]) -> None:
        """A step of the schedule. A kernel that overflows takes its variants along, and no other."""
        self.running.go_on()
        if isinstance(step, Build):
            self._build(step, pass_on)
            return
        try:
            if step.matrix is None:
                self._spread(step, str(self.running.folder.corpus_path.absolute()), {})
            elif (gram := self.matrices.gram(step.matrix)) is None:
                self._give_up(step.matrix.kernel)
            elif isinstance(step, Stream):
                self._in_one_pass(step, gram)
            else:
                limits = {} if self.running.job.is_ranking else _factor_limits(self.running, gram, step.problems)
                self._spread(step, gram.path, limits)
        except KernelOverflowError as error:
            if step.matrix is None:
                raise
            self._give_up(step.matrix.kernel, error)
        finally:
            if step.matrix is not None:
                self.matrices.done(step.matrix)

    def _build(self, step: Build, pass_on: Callable[[], None]) -> None:
        try:
            self.matrices.build(step.matrix, pass_on)
        except KernelOverflowError as error:
            self._give_up(step.matrix.kernel, error)

    def _give_up(self, kernel: int, error: KernelOverflowError | None = None) -> None:
        """All variants of a kernel."""
        found = self.matrices.overflowed.setdefault(kernel, error) if error else self.matrices.overflowed[kernel]
        for number, variant in enumerate(self.running.job.variants):
            if variant.kernel == kernel:
                self.running.fail(number, found)

    # ---- streams

    def _in_one_pass(self, step: Stream, gram: StoredGram) -> None:
        running = self.running
        if gram.shape[0] >= spread_rows(running.settings):
            gram.executor = running.executor()  # its workers bring scores up to date and multiply
        batches = [step.problems]
        while batches:
            batch = [problem for problem in batches.pop(0) if problem.variant not in running.failed]
            if not batch:
                continue
            try:
                self._train_together(batch, gram)
            except NUMERICAL as error:
                # Nobody knows whose numbers these were: each variant once more, alone.
                batches[:0] = _alone(running, batch, error)

    def _train_together(self, batch: Sequence[Problem], gram: StoredGram) -> None:
        running, digests = self.running, [problem.digest for problem in batch]
        learners = [running.job.variants[problem.variant].make() for problem in batch]
        begin, reads = time.perf_counter(), gram.tile_reads
        name, what = learners[0].name, f"{learners[0].name}, {len(batch):,} problems"

        def round_done(number: int, mistakes: int) -> None:
            running.tell(RoundDone(number, mistakes, what=learners[0].round_measure))
            if running.stopped.is_set():
                raise Abandoned

        def tell(event: Event) -> None:
            running.tell(Message(f"{what}: {event.text}") if isinstance(event, Message) else event)

        running.tell(TrainingStarted(name, len(batch)))
        checkpoint = _StepCheckpoint(running, digests)
        checkpoint.begin(identity_of_problems(name, gram, digests), tell)
        with checkpoint.kept():
            with report_reads(gram, running.tell):
                folds_of = [problem.fold for problem in batch]
                outcomes = fit_on_gram(
                    learners, gram, running.data.labels, running.folds, folds_of, round_done, checkpoint
                )
            details = {
                "learner": name,
                "problems": len(batch),
                "store": gram.path,
                "tile_reads": gram.tile_reads - reads,
                "stored_tiles": gram.layout.n_tiles,
                "rounds": max((len(curve) for held in outcomes for curve in held.traces.values()), default=None),
                "seconds": time.perf_counter() - begin,
            }
            running.folder.write_unit(dict(zip(digests, outcomes, strict=True)), details)
        running.tell(ProblemsSolved(len(batch)))

    # ---- tasks

    def _spread(self, step: Tasks | Stream, source: str, factor_limits: Mapping[int, int]) -> None:
        """Problems as tasks of the executor; `factor_limits` are by variant."""
        running = self.running
        problems = [problem for problem in step.problems if problem.variant not in running.failed]
        if not problems:
            return
        running.tell(TrainingStarted(step.learner, len(problems)))
        variant_of = {problem.digest: problem.variant for problem in problems}
        failed: list[BaseException | None] = []
        n_left = len(problems)
        outcomes: Iterator[Outcome[Any, Solved]]
        if running.job.is_ranking:
            outcomes = running.executor().run(solve_ranking, self._ranking_tasks(problems, source))
        else:
            outcomes = running.executor().run(solve_problem, self._tasks(problems, source, factor_limits))
        with closing(outcomes):
            for outcome in outcomes:
                n_left -= outcome.result is None or not outcome.result.is_paused
                if isinstance(outcome.error, NUMERICAL):
                    running.fail(variant_of[outcome.task.digest], outcome.error)
                elif isinstance(outcome.error, FINAL):
                    raise outcome.error
                elif outcome.result is None:
                    failed.append(outcome.error)
                elif outcome.result.is_paused:
                    running.has_progressed = True
                else:
                    self._note(outcome, outcome.result)
                if running.stopped.is_set():
                    raise Abandoned
        if failed:
            raise RunError(
                f"{len(failed)} of {len(problems)} problems failed, the first with {named_line(failed[0])}; "
                "the others are kept, run it again to go on"
            ) from failed[0]
        if n_left:
            raise TrainingPaused("all that is finished", str(running.folder.path))

    def _tasks(
        self, problems: Sequence[Problem], source: str, factor_limits: Mapping[int, int]
    ) -> Iterator[ProblemTask]:
        """Drawn as workers become free; none once the time of the job has come."""
        running = self.running
        for number, problem in enumerate(problems):
            if running.is_late:
                return
            variant = running.job.variants[problem.variant]
            yield ProblemTask(
                digest=problem.digest,
                run=str(running.folder.path.absolute()),
                source=source,
                learner=variant.learner,
                params=dict(variant.params),
                held_out=tuple(running.folds.held_out[problem.fold].tolist()),
                hidden=tuple(running.folds.hidden(problem.fold).tolist()),
                factor_limit=factor_limits.get(problem.variant),
                title=running.title(problem),
                every=running.survival.every,
                stop_at=running.survival.stop_at,
                must_begin=not number and not running.has_progressed,
            )

    def _ranking_tasks(self, problems: Sequence[Problem], source: str) -> Iterator[RankingTask]:
        running = self.running
        for problem in problems:
            variant = running.job.variants[problem.variant]
            yield RankingTask(
                digest=problem.digest,
                source=source,
                corpus=str(running.folder.corpus_path.absolute()),
                learner=variant.learner,
                params=dict(variant.params),
                held_out=tuple(running.folds.held_out[problem.fold].tolist()),
                hidden=tuple(running.folds.hidden(problem.fold).tolist()),
                title=running.title(problem),
            )

    def _note(self, outcome: Outcome[Any, Solved], solved: Solved) -> None:
        """What a worker has to tell, and what it could not write down itself."""
        running, task = self.running, outcome.task
        for text in solved.warned:
            running.survival.warn(text)
        for text in solved.said:
            running.tell(Message(f"{task.title}: {text}"))
        if solved.held is not None:
            details = {"learner": task.learner, "problems": 1, "store": task.source}
            details |= {"seconds": solved.seconds, "worker": solved.worker}
            running.folder.write_unit({task.digest: solved.held}, details)
        running.tell(ProblemsSolved(1, task.title, solved.seconds, solved.worker))


def _alone(running: Running, batch: Sequence[Problem], error: Exception) -> list[tuple[Problem, ...]]:
    """The problems of a batch that failed, by variant; a variant that was alone already is given up."""
    by_variant: dict[int, list[Problem]] = {}
    for problem in batch:
        by_variant.setdefault(problem.variant, []).append(problem)
    if len(by_variant) > 1:
        return [tuple(own) for own in by_variant.values()]
    running.fail(batch[0].variant, error)
    return []


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
