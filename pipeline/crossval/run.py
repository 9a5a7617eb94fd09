"""Runs a job from its folds to its results; the same call after an interruption goes on where it was."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from gramline.pipeline.crossval.baselines import baseline_scores
from gramline.pipeline.crossval.folds import Folds, joined
from gramline.pipeline.crossval.job import Job, JobData, Problem, problems_of
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings, Running, Survival
from gramline.pipeline.crossval.solve import solve
from gramline.pipeline.crossval.summary import NestedSelection, select_nested, summarize
from gramline.pipeline.crossval.unit_files import StoredOutcomes, StoredRow
from gramline.pipeline.crossval.validate import CrossValidation, assembled, check_folds, check_leaks
from gramline.pipeline.errors import RunError, first_line
from gramline.pipeline.events import Listener, one_at_a_time, silent
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.spec import counts_labels
from gramline.pipeline.models.checkpoint import TrainingPaused

PER_PROBLEM = ("traces", "notes", "chosen")  # what units say of each of their problems


@dataclass(frozen=True, eq=False)
class JobResult:
    """What came of a job."""

    result: CrossValidation
    nested: NestedSelection | None
    summary: dict[str, Any]
    new_units: list[dict[str, Any]] = field(default_factory=list)  # what this session trained


def job_folds(job: Job, data: JobData) -> tuple[Folds, Folds | None]:
    """The outer folds, and the inner ones of a nested selection."""
    outer = job.folds.make(data.labels, data.groups)
    inner = job.folds.inner(outer, job.inner_folds, data.labels, data.groups) if job.inner_folds else None
    return outer, inner


def run_job(
    job: Job,
    data: JobData,
    folder: RunFolder,
    settings: JobSettings,
    *,
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener = silent,
    survival: Survival | None = None,
) -> JobResult:
    """Run it, or go on with it. `executor` is entered when the first task needs it.

    TrainingPaused where its time, see `Survival`, has come before all problems are solved.
    """
    begin, progress, survival = time.perf_counter(), one_at_a_time(progress), survival or Survival()
    outer, inner = job_folds(job, data)
    folds = outer if inner is None else joined(outer, inner)
    check_folds(len(data.ids), data.labels, folds)
    for path in settings.stores.values():
        check_leaks(stored(path, len(data.labels)), folds)
    problems = problems_of(job, data, folds)
    running = Running(job, data, folder, settings, folds, executor, progress, survival)
    with running.begun(problems) as todo:
        try:
            solve(running, todo)
        except TrainingPaused as pause:
            n_solved = len(folder.finished() & {problem.digest for problem in problems})
            raise TrainingPaused(f"{n_solved:,} of {len(problems):,} problems", str(folder.path)) from pause
        done_variants = [k for k in range(len(job.variants)) if k not in running.failed]
        if not done_variants:
            raise next(iter(running.failed.values()))
        folder.forget_states()
        outcomes, settings_of = _all_there(folder, problems, running), job.settings()
        solved = [[p for p in problems if p.variant == k] for k in done_variants]
        rows = [StoredRow(outcomes, [p.digest for p in row]) for row in solved]
        done_settings = [settings_of[k] for k in done_variants]
        result = assembled(done_settings, outer, data.labels, [row[: len(outer)] for row in rows], dummy=job.dummy)
        nested = None
        if inner is not None:
            inside = assembled(done_settings, inner, data.labels, [row[len(outer) :] for row in rows], dummy=job.dummy)
            nested = select_nested(result, inside, job.metric)
        units, is_new = _units(folder, problems), {problem.digest for problem in todo}
        summary = summarize(job, data, result, nested) | {
            "failed": [settings_of[k] | {"reason": first_line(error)} for k, error in sorted(running.failed.items())],
            "files": settings.files,
            "baselines": baseline_scores(
                data,
                outer,
                dummy=job.dummy,
                before=folder.results_before().get("baselines"),
                computes=settings.has_baselines,
                progress=progress,
            ),
            "stores": stores_of(running),
            "units": [_without_problems(unit) for unit in units],
            "digests": {str(k): [p.digest for p in row[: len(outer)]] for k, row in enumerate(solved)},
            "notes": _notes(units, {p.digest for row in solved for p in row}),
            "problems": {"total": len(problems), "solved_before": len(problems) - len(todo)},
            "seconds": time.perf_counter() - begin,
        }
        folder.write_results(result, data, summary)
    return JobResult(result, nested, summary, [_without_problems(unit) for unit in units if is_new & {*unit["traces"]}])


def _units(folder: RunFolder, problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """What was trained together, in the order of the problems; what an edited job no longer has is left out."""
    order = {problem.digest: number for number, problem in enumerate(problems)}
    units = [(order.keys() & unit["traces"].keys(), unit) for unit in folder.unit_details()]
    return [
        unit for mine, unit in sorted(units, key=lambda item: min(map(order.__getitem__, item[0]), default=0)) if mine
    ]


def _all_there(folder: RunFolder, problems: Sequence[Problem], running: Running) -> StoredOutcomes:
    """The outcomes; workers that write elsewhere look as if they had done their work."""
    outcomes = folder.outcomes()
    missing = [p for p in problems if p.variant not in running.failed and p.digest not in outcomes]
    if missing:
        raise RunError(
            f"{len(missing):,} of {len(problems):,} problems were solved but are not in {folder.path}",
            advice="do all workers see the same storage?",
        )
    return outcomes


def _notes(units: Sequence[dict[str, Any]], problems: set[str]) -> dict[str, int]:
    """What learners had to say, and of how many of these problems."""
    said = (
        note
        for unit in units
        for digest, notes in unit.get("notes", {}).items()
        if digest in problems
        for note in notes
    )
    return dict(Counter(said))


def _without_problems(unit: dict[str, Any]) -> dict[str, Any]:
    """What a unit says of all its problems together."""
    return {key: value for key, value in unit.items() if key not in PER_PROBLEM}


def stores_of(running: Running) -> list[dict[str, Any]]:
    """The stores of this session by their kernels, then those of earlier ones whose kernels the job still has."""
    job, known = running.job, {store["path"] for store in running.stores}
    used = [job.kernels[number] for number in job.used_kernels]
    order = [kernel.to_dict() for kernel in used]
    running.stores.sort(key=lambda store: order.index(store["kernel"]) if store["kernel"] in order else len(order))
    here = [store["kernel"] for store in running.stores]
    # A kernel that counts labels has a store for every fold; any other one that was built again is the new one.
    earlier = [kernel.to_dict() for kernel in used if counts_labels(kernel) or kernel.to_dict() not in here]
    before = [
        store | ({"computed": 0} if running.stores else {})
        for store in running.folder.results_before().get("stores", [])
        if store["path"] not in known and store["kernel"] in earlier
    ]
    return [*running.stores, *before]
