"""What a cross-validation will take, before anything runs: stores, bytes, passes over the tiles, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gramline.kernels.errors import KernelOverflowError
from gramline.learners.kinds import SharedPassLearner
from gramline.pipeline.crossval.baselines import planned_baselines
from gramline.pipeline.crossval.folds import joined
from gramline.pipeline.crossval.job import Job, JobData, Problem, Variant, problems_of
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.run import job_folds
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.training_time import training_seconds
from gramline.pipeline.errors import first_line
from gramline.pipeline.gram.build import GramBuild, StoreChoices
from gramline.pipeline.gram.learned_prior import as_if_learned
from gramline.pipeline.gram.plan import ThreadLimit
from gramline.pipeline.gram.spec import GramSpec, counts_labels


def plan_job(
    job: Job,
    data: JobData,
    folder: RunFolder,
    settings: JobSettings,
    n_threads: int,
    limit: ThreadLimit | None = None,
) -> dict[str, Any]:
    """The plan as a JSON-able dictionary; nothing is written to disk. Tiles beyond the memory `limit` are refused."""
    _check_tiles(job, data, settings, limit)
    outer, inner = job_folds(job, data)
    folds = outer if inner is None else joined(outer, inner)
    problems = problems_of(job, data, folds)
    solved = folder.finished() & {problem.digest for problem in problems}
    stores = [_store(job, data, settings, number, len(folds), n_threads) for number in job.used_kernels]
    overflowing = {store["kernel"] for store in stores if "failed" in store}
    todo = [p for p in problems if p.digest not in solved and job.variants[p.variant].kernel not in overflowing]
    return {
        "structures": len(data.labels),
        "positions": data.n_positions,
        "folds": len(outer),
        "inner_folds": 0 if inner is None else len(inner),
        "settings": len(job.variants),
        "problems": len(problems),
        "solved": len(solved),
        "stores": stores,
        "bytes": sum(store["new_bytes"] for store in stores),
        "seconds": sum(store["seconds"] for store in stores),
        "training": _training(job, data, settings, todo, n_threads, len(folds)),
        "baselines": planned_baselines(data, outer) if todo and settings.has_baselines else [],
        "run": str(folder.path),
    }


def _check_tiles(job: Job, data: JobData, settings: JobSettings, limit: ThreadLimit | None) -> None:
    """Refuse what the job itself would refuse once its Gram matrices are built."""
    if limit is None or data.corpus is None:  # a stored Gram matrix is complete
        return
    for number in job.used_kernels:
        if _known_store(job, data, settings, number) is None:
            _build(job, data, settings, number).plan.check_memory(limit.n_bytes, limit.whose)


def _store(job: Job, data: JobData, settings: JobSettings, number: int, n_folds: int, n_threads: int) -> dict[str, Any]:
    """The Gram matrix of one kernel: found in a store or in the cache, in part or whole, or still to be computed."""
    kernel, corpus = job.kernels[number], data.corpus
    path = _known_store(job, data, settings, number)
    if path is not None or corpus is None:
        status = stored(path or "", len(data.labels)).status()
        n_missing = status.n_tiles - status.n_present
        tile_bytes = status.block_rows**2 * (4 if status.dtype == "float32" else 8)
        row = {"tiles": status.n_tiles, "to_compute": n_missing, "new_bytes": n_missing * tile_bytes, "seconds": 0.0}
        if corpus is not None and n_missing:
            whole = _build(job, data, settings, number).forecast().to_dict(n_threads)
            row["seconds"] = whole["seconds"] * n_missing / whole["tiles"]
        return {"kernel": number, "path": path, "copies": 1} | row
    copies = n_folds if counts_labels(kernel) else 1
    build = _build(job, data, settings, number)
    try:
        whole = build.forecast().to_dict(n_threads)
    except KernelOverflowError as error:  # a failed row of the run: its settings take no time
        nothing = {"tiles": 0, "to_compute": 0, "new_bytes": 0, "seconds": 0.0}
        return {"kernel": number, "path": None, "copies": copies, **nothing, "failed": first_line(error)}
    n_shared = 0 if settings.cache is None else settings.cache.n_shared(build)  # a corpus that grew has some of them
    share = copies * (1 - n_shared / max(1, whole["tiles"]))
    return {
        "kernel": number,
        "path": None,
        "copies": copies,
        "tiles": copies * whole["tiles"],
        "to_compute": copies * whole["tiles"] - n_shared,
        "new_bytes": round(share * whole["stored_bytes"]),
        "seconds": share * whole["seconds"],
    }


def _known_store(job: Job, data: JobData, settings: JobSettings, number: int) -> str | None:
    """Where the Gram matrix of a kernel is, in part or whole; None: nowhere yet."""
    path = settings.stores.get(number)
    if path is None and data.corpus is not None and settings.cache is not None:
        entry = settings.cache.find(GramSpec.of(job.kernels[number], data.corpus.packed(), None, job.dtype))
        path = None if entry is None else entry.store
    return path


def _build(job: Job, data: JobData, settings: JobSettings, number: int) -> GramBuild:
    assert data.corpus is not None
    choices = StoreChoices(job.dtype, settings.block_rows, settings.compression, settings.keep)
    return GramBuild(*as_if_learned(job.kernels[number], data.corpus), None, choices)


def _training(
    job: Job, data: JobData, settings: JobSettings, todo: Sequence[Problem], n_threads: int, n_folds: int
) -> list[dict[str, Any]]:
    """How often every learner reads the tiles, and how long its unsolved problems take at most."""
    rows: dict[tuple[str, bool], dict[str, Any]] = {}
    unsolved: dict[tuple[str, bool], list[Variant]] = {}
    per_variant = Counter(problem.variant for problem in todo)
    for number, variant in enumerate(job.variants):
        learner = variant.make()
        shares_a_pass = isinstance(learner, SharedPassLearner)
        key = (variant.learner, learner.reads_corpus)
        row = rows.setdefault(key, {"learner": variant.learner, "problems": 0, "rounds": 0})
        unsolved.setdefault(key, []).extend([variant] * per_variant[number])
        row["problems"] += n_folds
        row["rounds"] = max(row["rounds"], learner.round_limit)
        if learner.reads_corpus:
            row["passes"] = "none: it reads features"
        elif shares_a_pass:
            row["passes"] = f"at most {row['rounds']:,} and 1 to predict, for all problems of a kernel together"
        else:
            row["passes"] = "1 per problem"
    return [
        row | {"seconds": training_seconds(job, data, settings, unsolved[key], n_threads)} for key, row in rows.items()
    ]
