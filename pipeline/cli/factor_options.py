"""How a Gaussian-process labeler factors its matrices: in memory or by tiles, here or on Dask; and what that takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gramline.learners.estimator import Learner
from gramline.pipeline.cli.cluster_options import executor_from
from gramline.pipeline.cli.job_file.file import JobFile
from gramline.pipeline.cli.terminal.output import count, duration, say, size
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.training import TrainingPlan, plan_learner

LEARNER = "gaussian-process"


def refuse_others(learner: Learner, factor_memory: int | None, plan_only: bool) -> None:
    """Options that say something about factorisations belong to the learner that has them."""
    if learner.name == LEARNER:
        return
    for option, given in (("--factor-memory", factor_memory is not None), ("--plan", plan_only)):
        if given:
            raise InputError(f"{option} is about the factorisations of {LEARNER}; {learner.name} has none")


@contextmanager
def factoring(
    job: JobFile, gram: StoredGram, learner: Learner, factor_memory: int | None, cluster: dict[str, Any]
) -> Iterator[TrainingPlan | None]:
    """`gram` with the limit and the executor that were asked for; the plan of a Gaussian-process labeler."""
    if factor_memory is not None:
        gram.factor_limit = factor_memory
    options = dict(cluster)
    asked = [options["scheduler"], options["workers"], options["inline"] is False or None]
    listed = [job.cluster.scheduler, job.cluster.workers]
    if options["inline"] is None and not any(asked + listed):
        options["inline"] = True  # training alone is rarely worth a cluster
    with executor_from(job, **options) as executor:
        gram.executor = executor
        yield plan_learner(gram, learner) if learner.name == LEARNER else None


def say_plan(plan: TrainingPlan) -> None:
    where = "by tiles on disk" if plan.is_tiled else "in memory"
    scratch = f", {size(plan.scratch_bytes)} of scratch" if plan.is_tiled else ""
    say(
        f"each factorisation of up to {count(plan.n_rows, 'row')} {where}: peak {size(plan.peak_bytes)}{scratch}, "
        f"about {duration(plan.factor_seconds)}"
    )
    say(f"{count(plan.n_labels, 'label')}: usually about {duration(plan.seconds)} in all")
