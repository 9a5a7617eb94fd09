"""Runs a job of rankers from its folds to its results; the same call after an interruption goes on where it was.

Folds are made of whole groups of candidates. What the first and what the best candidates score stands beside what the
rankers choose.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.errors import KernelOverflowError
from gramline.pipeline.candidates.columns import Groups, candidate_worth, group_weights, log_probabilities
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.job import Job, JobData, Problem, problems_of
from gramline.pipeline.crossval.ranking import RankingTask, held_groups, held_score, require_whole_groups, solve_ranking
from gramline.pipeline.crossval.run_folder import FORMAT, RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.setting_names import setting_names
from gramline.pipeline.crossval.solve import NUMERICAL
from gramline.pipeline.crossval.summary import versions
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import compare_values
from gramline.pipeline.errors import InputError, RunError, first_line, named_line
from gramline.pipeline.events import JobStarted, Listener, Message, ProblemsSolved, TrainingStarted, silent
from gramline.pipeline.executors.base import FINAL, Executor
from gramline.pipeline.gram.build import StoreChoices, remove_on_overflow
from gramline.pipeline.gram.cache import building
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.stored import StoredGram

RANKING = "ranking"  # what results.json says it holds
METRICS = ("score", "best_chosen")


@dataclass
class RankingRun:
    """What all steps of a running job share."""

    job: Job
    data: JobData
    corpus: Corpus
    folder: RunFolder
    settings: JobSettings
    executor: Callable[[], Executor]
    progress: Listener
    stores: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)  # why a variant came to no end, by its number


def ranking_data(data: JobData) -> JobData:
    """The same candidates; what decides their training and their scores is part of what they are known by."""
    if data.corpus is None:
        raise InputError(
            "rankers learn from candidates, whose groups and scores are in their corpus; give it (--corpus)"
        )
    corpus = data.corpus
    members = json.dumps(Groups.of(corpus).members).encode()
    numbers = [candidate_worth(corpus), group_weights(corpus)]
    if "probability" in corpus.table.column_names:
        numbers.append(log_probabilities(corpus))
    known = hashlib.blake2b(members + b"".join(array.tobytes() for array in numbers), digest_size=16).hexdigest()
    return replace(data, fingerprint=f"{data.fingerprint}+{known}")


def run_rankers(
    job: Job,
    data: JobData,
    folder: RunFolder,
    settings: JobSettings,
    *,
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener = silent,
) -> dict[str, Any]:
    """The summary of the finished job, which results.json holds. `executor` is entered when a task needs it."""
    begin = time.perf_counter()
    if data.corpus is None:
        raise InputError("rankers need the corpus of their candidates")
    folds = job.folds.make(data.labels, data.groups)
    require_whole_groups(data.corpus, folds)
    problems = problems_of(job, data, folds)
    description = {**job.to_dict(), "kind": RANKING, "source": data.source, **settings.description}
    with folder.begun(data, description), folder.spending(), ExitStack() as stack:
        entered: list[Executor] = []

        def opened() -> Executor:
            if not entered:
                entered.append(stack.enter_context(executor()))
            return entered[0]

        done = folder.finished()
        todo = [problem for problem in problems if problem.digest not in done]
        progress(JobStarted(len(problems), len(problems) - len(todo)))
        run = RankingRun(job, data, data.corpus, folder, settings, opened, progress)
        for kernel in job.used_kernels:
            mine = [problem for problem in todo if job.variants[problem.variant].kernel == kernel]
            if mine:
                _solve_kernel(run, kernel, mine, folds)
        if len(run.failed) == len(job.variants):
            raise next(iter(run.failed.values()))
        summary = _summary(run, folds, problems) | {
            "problems": {"total": len(problems), "solved_before": len(problems) - len(todo)},
            "seconds": time.perf_counter() - begin,
        }
        folder.write_json("results.json", {"format": FORMAT, **summary})
    return summary


def _solve_kernel(run: RankingRun, kernel: int, problems: Sequence[Problem], folds: Folds) -> None:
    try:
        with _gram(run, kernel) as gram:
            _solve(run, gram, problems, folds)
    except KernelOverflowError as error:
        for number in dict.fromkeys(problem.variant for problem in problems):
            _fail(run, number, error)


@contextmanager
def _gram(run: RankingRun, number: int) -> Iterator[StoredGram]:
    """The complete Gram matrix of a kernel: the one that is there, or one in the cache."""
    settings, n_before = run.settings, len(run.stores)
    with ExitStack() as stack:
        if number in settings.stores:
            gram = StoredGram.open(settings.stores[number])
        elif settings.cache is None:
            raise RunError("this job has neither a stored Gram matrix nor a cache to build one")
        else:
            choices = StoreChoices(run.job.dtype, settings.block_rows, settings.compression, settings.keep)
            using = settings.cache.using(
                run.job.kernels[number], run.corpus.packed(), choices, made_from=run.data.source
            )
            gram = stack.enter_context(using)
            with building(Path(gram.path).parent):
                plan = plan_store(gram.store)
                if plan.tasks:
                    with ExitStack() as inner:
                        if not gram.status().n_present:
                            inner.enter_context(remove_on_overflow(gram.path))
                        limit = settings.limit_bytes
                        n = compute_missing(
                            gram.store, run.executor(), plan=plan, limit_bytes=limit, progress=run.progress
                        )
                        run.stores.append(_described(gram, n))
        if len(run.stores) == n_before:
            run.stores.append(_described(gram, 0))
        yield gram


def _described(gram: StoredGram, computed: int) -> dict[str, Any]:
    status = gram.status()
    return {
        "path": gram.path,
        "kernel": status.kernel,
        "shape": list(status.shape),
        "tiles": status.n_tiles,
        "computed": computed,
        "stored_bytes": status.stored_bytes,
        "block_rows": status.block_rows,
    }


def _solve(run: RankingRun, gram: StoredGram, problems: Sequence[Problem], folds: Folds) -> None:
    """Each problem a task of the executor, kept as soon as it is solved."""
    names = setting_names(run.job.settings(), run.settings.files)
    tasks = [
        RankingTask(
            digest=problem.digest,
            source=gram.path,
            corpus=str(run.folder.corpus_path.absolute()),
            learner=run.job.variants[problem.variant].learner,
            params=dict(run.job.variants[problem.variant].params),
            held_out=tuple(folds.held_out[problem.fold].tolist()),
            hidden=tuple(folds.hidden(problem.fold).tolist()),
            title=f"{names[problem.variant]}, fold {problem.fold}",
        )
        for problem in problems
    ]
    run.progress(TrainingStarted(tasks[0].learner, len(tasks)))
    variant_of = {problem.digest: problem.variant for problem in problems}
    failed: list[BaseException | None] = []
    with closing(run.executor().run(solve_ranking, tasks)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, NUMERICAL):
                _fail(run, variant_of[outcome.task.digest], outcome.error)
            elif isinstance(outcome.error, FINAL):
                raise outcome.error
            elif (solved := outcome.result) is None or (held := solved.held) is None:
                failed.append(outcome.error)
            else:
                about = {"learner": outcome.task.learner, "problems": 1, "store": gram.path}
                about |= {"seconds": solved.seconds, "worker": solved.worker}
                run.folder.write_unit({outcome.task.digest: held}, about)
                run.progress(ProblemsSolved(1, outcome.task.title, solved.seconds, solved.worker))
    if failed:
        raise RunError(
            f"{len(failed)} of {len(tasks)} problems failed, the first with {named_line(failed[0])}; "
            "the others are kept, run it again to go on"
        ) from failed[0]


def _fail(run: RankingRun, variant: int, error: Exception) -> None:
    """Give a variant up; the others go on."""
    if variant not in run.failed and len(run.job.variants) > 1:
        name = setting_names(run.job.settings(), run.settings.files)[variant]
        run.progress(Message(f"{name} failed; the others go on"))
    run.failed.setdefault(variant, error)


def _summary(run: RankingRun, folds: Folds, problems: Sequence[Problem]) -> dict[str, Any]:
    """Settings with their scores, the first and the best candidates beside them; writes the two tables."""
    outcomes, settings_of = run.folder.outcomes(), run.job.settings()
    solved = [k for k in range(len(run.job.variants)) if k not in run.failed]
    rows = [[outcomes[p.digest] for p in problems if p.variant == k] for k in solved]
    scores = [
        [held_score(run.corpus, folds.held_out[fold].tolist(), held) for fold, held in enumerate(row)] for row in rows
    ]
    _write_tables(run, folds, rows, scores)
    tables = [{metric: [getattr(s, name) for s in row] for metric, name in _FIELDS.items()} for row in scores]
    best = int(np.argmax([np.mean(table["score"]) for table in tables]))
    return {
        "kind": RANKING,
        "metric": "score",
        "best": best,
        "settings": [
            settings_of[k] | {"scores": _spread(table), "behind_best": _behind(tables[best]["score"], table["score"])}
            for k, table in zip(solved, tables, strict=True)
        ],
        "first": _spread({"score": [s.first for s in scores[0]]}),
        "oracle": _spread({"score": [s.oracle for s in scores[0]]}),
        "failed": [settings_of[k] | {"reason": first_line(error)} for k, error in sorted(run.failed.items())],
        "files": run.settings.files,
        "folds": run.job.folds.to_dict() | {"held_out": [s.n_groups for s in scores[0]]},
        "dtype": run.job.dtype,
        "source": run.data.source,
        "structures": len(run.corpus),
        "groups": len(Groups.of(run.corpus)),
        "fingerprint": run.data.fingerprint,
        "stores": run.stores or run.folder.results_before().get("stores", []),
        "notes": dict(Counter(note for row in rows for held in row for note in held.notes)),
        "versions": versions(),
    }


_FIELDS = {"score": "chosen", "best_chosen": "best_chosen"}


def _spread(table: Mapping[str, list[float]]) -> dict[str, Any]:
    """Mean, deviation and values per fold."""
    return {
        metric: {
            "mean": float(np.mean(values)),
            "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            "folds": values,
        }
        for metric, values in table.items()
    }


def _behind(best: list[float], values: list[float]) -> dict[str, Any]:
    against = compare_values(best, values)
    return {
        name: value if np.isfinite(value := getattr(against, name)) else None
        for name in ("difference", "deviation", "t", "p")
    }


def _write_tables(
    run: RankingRun, folds: Folds, rows: Sequence[Sequence[HeldOut]], scores: Sequence[Sequence[Any]]
) -> None:
    """results.parquet (setting x fold x metric) and predictions.parquet (one row per held-out group)."""
    values = [
        {"setting": setting, "fold": fold, "metric": metric, "value": getattr(score, name)}
        for setting, row in enumerate(scores)
        for fold, score in enumerate(row)
        for metric, name in _FIELDS.items()
    ]
    run.folder.write_parquet(run.folder.path / "results.parquet", pa.Table.from_pylist(values))
    names = dict(zip(map(tuple, Groups.of(run.corpus).members), Groups.of(run.corpus).names, strict=True))
    good = run.corpus.column("score")
    chosen = [
        {"setting": setting, "fold": fold, "group": str(names[tuple(members)]), "candidate": int(number)}
        | {"structure": members[int(number)], "score": good[members[int(number)]], "first": good[members[0]]}
        for setting, row in enumerate(rows)
        for fold, held in enumerate(row)
        for members, (number,) in zip(
            held_groups(run.corpus, folds.held_out[fold].tolist()), held.predicted, strict=True
        )
    ]
    run.folder.write_parquet(run.folder.path / "predictions.parquet", pa.Table.from_pylist(chosen))
