"""The plan of a cross-validation on a terminal or as JSON."""

from __future__ import annotations

import os
from typing import Any

from gramline.kernels.catalogue import describe
from gramline.pipeline.cli.cv_job import Prepared
from gramline.pipeline.cli.job_file.file import either
from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, say_table, size
from gramline.pipeline.crossval.plan import plan_job
from gramline.pipeline.crossval.run_folder import RunFolder


def say_plan(ready: Prepared, options: dict[str, Any], as_json: bool) -> None:
    """Print (or write as JSON) what the job will take."""
    cluster = ready.file.cluster
    workers = either(options["workers"], cluster.workers) or len(os.sched_getaffinity(0))
    threads = either(options["threads"], cluster.threads) * workers
    plan = plan_job(ready.job, ready.data, RunFolder(ready.output), ready.settings, threads)
    if as_json:
        say_json(plan)
        return
    say(
        f"{count(plan['structures'], 'structure')}, {count(plan['positions'], 'position')}; "
        f"{count(plan['settings'], 'setting')} x {count(plan['folds'] + plan['inner_folds'], 'fold')} = "
        f"{count(plan['problems'], 'problem')}, {plan['solved']:,} solved before"
    )
    if plan["stores"]:
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
                for store in plan["stores"]
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
