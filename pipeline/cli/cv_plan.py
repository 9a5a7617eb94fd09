"""What a cross-validation job will take, told before anything runs: stores, bytes, time and passes over the tiles."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, say_table, size
from gramline.pipeline.gram.forecast import forecast

if TYPE_CHECKING:
    from gramline.pipeline.cli.cv_job import Prepared


def say_plan(ready: Prepared, options: dict[str, Any], as_json: bool) -> None:
    """Print (or write as JSON) the plan; nothing is written to disk."""
    from gramline.kernels.descriptions import describe
    from gramline.pipeline.crossval.fold_spec import joined
    from gramline.pipeline.crossval.job import problems_of
    from gramline.pipeline.crossval.run import job_folds
    from gramline.pipeline.crossval.run_folder import RunFolder

    outer, inner = job_folds(ready.job, ready.data)
    folds = outer if inner is None else joined(outer, inner)
    problems = problems_of(ready.job, ready.data, folds)
    done = RunFolder(ready.output).finished() & {problem.digest for problem in problems}
    threads = (ready.file.setting(options["threads"], "cluster", "threads") or 1) * (
        ready.file.setting(options["workers"], "cluster", "workers") or len(os.sched_getaffinity(0))
    )
    stores = _stores(ready, folds, threads)
    plan = {
        "structures": len(ready.data.labels),
        "positions": ready.data.n_positions,
        "folds": len(outer),
        "inner_folds": 0 if inner is None else len(inner),
        "settings": len(ready.job.variants),
        "problems": len(problems),
        "solved": len(done),
        "stores": stores,
        "bytes": sum(store["new_bytes"] for store in stores),
        "seconds": sum(store["seconds"] for store in stores),
        "training": _training(ready, len(folds)),
        "run": ready.output,
    }
    if as_json:
        say_json(plan)
        return
    say(
        f"{count(plan['structures'], 'structure')}, {count(plan['positions'], 'position')}; "
        f"{count(plan['settings'], 'setting')} x {count(len(folds), 'fold')} = {count(len(problems), 'problem')}, "
        f"{len(done):,} solved before"
    )
    if stores:
        say_table(
            ("Gram matrix", "copies", "tiles", "to compute", "new bytes", "time"),
            [
                (
                    f"kernel {store['kernel']}",
                    f"{store['copies']:,}",
                    f"{store['tiles']:,}",
                    f"{store['to_compute']:,}",
                    size(store["new_bytes"]),
                    duration(store["seconds"]),
                )
                for store in stores
            ],
        )
        for number, kernel in enumerate(ready.job.kernels):
            say(f"kernel {number}: {describe(kernel.to_dict())}")
    say_table(
        ("training", "problems", "passes over the tiles"),
        [(row["learner"], f"{row['problems']:,}", row["passes"]) for row in plan["training"]],
    )
    total = f"{size(plan['bytes'])} to write, about {duration(plan['seconds'])} of building"
    say(f"{total} on {count(threads, 'thread')} like this one; results go to {ready.output}")


def _stores(ready: Prepared, folds: Any, threads: int) -> list[dict[str, Any]]:
    from gramline.pipeline.crossval.job import counts_labels
    from gramline.pipeline.gram.spec import GramSpec

    found = []
    for number in sorted({variant.kernel for variant in ready.job.variants if variant.kernel is not None}):
        kernel, corpus = ready.job.kernels[number], ready.data.corpus
        path = ready.settings.stores.get(number)
        if path is None and corpus is not None and ready.settings.cache is not None:
            entry = ready.settings.cache.find(GramSpec.of(kernel, corpus.packed(), None, ready.job.dtype))
            path = None if entry is None else entry.store
        copies = 1
        if path is not None or corpus is None:
            from gramline.pipeline.crossval.tasks import stored

            status = stored(path or "", len(ready.data.labels)).status()
            missing = status.n_tiles - status.n_present
            tile_bytes = status.block_rows**2 * (4 if status.dtype == "float32" else 8)
            row = {"tiles": status.n_tiles, "to_compute": missing, "new_bytes": missing * tile_bytes, "seconds": 0.0}
        if path is None or row["to_compute"]:
            assert corpus is not None
            told = forecast(
                kernel, corpus, None, path=None, dtype=ready.job.dtype, block_rows=ready.settings.block_rows
            ).to_dict(threads)
            copies = len(folds) if counts_labels(kernel) else 1
            share = 1.0 if path is None else row["to_compute"] / told["tiles"]
            row = {
                "tiles": copies * told["tiles"],
                "to_compute": copies * told["tiles"] if path is None else row["to_compute"],
                "new_bytes": copies * told["stored_bytes"] if path is None else row["new_bytes"],
                "seconds": copies * told["seconds"] * share,
            }
        found.append({"kernel": number, "path": path, "copies": copies} | row)
    return found


def _training(ready: Prepared, n_folds: int) -> list[dict[str, Any]]:
    """How often every learner reads the tiles."""
    from gramline.learners.kinds import SharedPassLearner

    rows: dict[tuple[str, bool], dict[str, Any]] = {}
    for variant in ready.job.variants:
        learner = variant.make()
        together = isinstance(learner, SharedPassLearner)
        key = (variant.learner, together)
        row = rows.setdefault(key, {"learner": variant.learner, "problems": 0, "rounds": 0})
        row["problems"] += n_folds
        row["rounds"] = max(row["rounds"], learner.round_limit)
        if learner.reads_corpus:
            row["passes"] = "none: it reads features"
        elif together:
            row["passes"] = f"at most {row['rounds']:,} and 1 to predict, for all problems of a kernel together"
        else:
            row["passes"] = "1 per problem"
    return list(rows.values())
