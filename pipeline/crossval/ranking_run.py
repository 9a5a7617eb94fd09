"""Runs a job of rankers from its folds to its results; the same call after an interruption goes on where it was.

Folds are made of whole groups of candidates. What the first and what the best candidates score stands beside what the
rankers choose.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.pipeline.candidates.columns import Groups, candidate_worth, group_weights, log_probabilities
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.job import Job, JobData, Problem, problems_of
from gramline.pipeline.crossval.ranking import held_groups, held_score, require_whole_groups
from gramline.pipeline.crossval.run import stores_of
from gramline.pipeline.crossval.run_folder import FORMAT, RunFolder
from gramline.pipeline.crossval.running import JobSettings, Running
from gramline.pipeline.crossval.solve import solve
from gramline.pipeline.crossval.summary import versions
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import compare_values
from gramline.pipeline.errors import InputError, first_line
from gramline.pipeline.events import Listener, one_at_a_time, silent
from gramline.pipeline.executors.base import Executor

RANKING = "ranking"  # what results.json says it holds
METRICS = ("score", "best_chosen")


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
    running = Running(job, data, folder, settings, folds, executor, one_at_a_time(progress))
    with running.begun(problems, kind=RANKING) as todo:
        solve(running, todo)
        if len(running.failed) == len(job.variants):
            raise next(iter(running.failed.values()))
        summary = _summary(running, data.corpus, problems) | {
            "problems": {"total": len(problems), "solved_before": len(problems) - len(todo)},
            "seconds": time.perf_counter() - begin,
        }
        folder.write_json("results.json", {"format": FORMAT, **summary})
    return summary


def _summary(run: Running, corpus: Corpus, problems: Sequence[Problem]) -> dict[str, Any]:
    """Settings with their scores, the first and the best candidates beside them; writes the two tables."""
    outcomes, settings_of, folds = run.folder.outcomes(), run.job.settings(), run.folds
    solved = [k for k in range(len(run.job.variants)) if k not in run.failed]
    rows = [[outcomes[p.digest] for p in problems if p.variant == k] for k in solved]
    scores = [
        [held_score(corpus, folds.held_out[fold].tolist(), held) for fold, held in enumerate(row)] for row in rows
    ]
    _write_tables(run, corpus, rows, scores)
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
        "structures": len(corpus),
        "groups": len(Groups.of(corpus)),
        "fingerprint": run.data.fingerprint,
        "stores": stores_of(run),
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
    run: Running, corpus: Corpus, rows: Sequence[Sequence[HeldOut]], scores: Sequence[Sequence[Any]]
) -> None:
    """results.parquet (setting x fold x metric) and predictions.parquet (one row per held-out group)."""
    values = [
        {"setting": setting, "fold": fold, "metric": metric, "value": getattr(score, name)}
        for setting, row in enumerate(scores)
        for fold, score in enumerate(row)
        for metric, name in _FIELDS.items()
    ]
    run.folder.write_parquet(run.folder.path / "results.parquet", pa.Table.from_pylist(values))
    names = dict(zip(map(tuple, Groups.of(corpus).members), Groups.of(corpus).names, strict=True))
    good = corpus.column("score")
    chosen = [
        {"setting": setting, "fold": fold, "group": str(names[tuple(members)]), "candidate": int(number)}
        | {"structure": members[int(number)], "score": good[members[int(number)]], "first": good[members[0]]}
        for setting, row in enumerate(rows)
        for fold, held in enumerate(row)
        for members, (number,) in zip(
            held_groups(corpus, run.folds.held_out[fold].tolist()), held.predicted, strict=True
        )
    ]
    run.folder.write_parquet(run.folder.path / "predictions.parquet", pa.Table.from_pylist(chosen))
