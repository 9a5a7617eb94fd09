"""`gramline gram plan`: what a build takes, and whether tiles are better stored or computed for a learner."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import click

from gramline.kernels.parameters import plain_value
from gramline.learners.estimator import Learner
from gramline.learners.kinds import GramLearner
from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.gram_build import planned_build, row_corpus, store_options
from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.job_file.kernel import kernel_options
from gramline.pipeline.cli.job_file.options import job_option, table_option
from gramline.pipeline.cli.terminal.notation import parse_record
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_folded,
    say_json,
    say_pairs,
    say_table,
    short_path,
    size,
)
from gramline.pipeline.cli.workplaces import workplace
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.files import available_cores
from gramline.pipeline.gram.alternatives import Alternative, Machines
from gramline.pipeline.gram.build import GramBuild
from gramline.pipeline.gram.forecast import Forecast
from gramline.pipeline.gram.plan import thread_limit
from gramline.pipeline.models.demand import Demand, measure_demand
from gramline.pipeline.models.training import learner_of
from gramline.pipeline.models.training_choice import training_alternatives
from gramline.pipeline.settings_file import Size


@click.command()
@click.argument("corpus", required=False)
@table_option("gram.path", "-o", "--output", metavar="GRAM", help="A store whose finished tiles are not counted again.")
@store_options
@click.option("--for", "wanted", metavar="LEARNER", help="Also the training of this learner, such as kernel-zscore.")
@click.option("--read-bandwidth", metavar="BYTES/S", help="Of the storage of a cluster that is not there yet: 200MB/s.")
@kernel_options
@cluster_options
@job_option
@json_option
def plan(
    corpus: str | None,
    other: str | None,
    wanted: str | None,
    read_bandwidth: str | None,
    given: OptionValues,
    job_path: str | None,
    as_json: bool,
) -> None:
    """Print tiles, bytes on disk, peak memory per worker and time of a build, before anything runs.

    A few sample tiles are computed and written beside GRAM (in the temporary folder where none is given) by the
    workers that would run, to tell the time; they are removed again. With --for, a sample of the corpus is trained on,
    and storing all tiles, some, or none is compared. More --workers than this machine has cores, or --read-bandwidth,
    ask for a cluster that is not there yet. Exit code 2 where the disk has no room.

    \b
    Example:
      gramline gram plan train.parquet -o train.gram.zarr \\
          --observation polynomial:degree=2 --for kernel-zscore
    """
    job = load_job(job_path, given)
    bandwidth = None if read_bandwidth is None else _bandwidth(read_bandwidth)
    learner = None if wanted is None else _labeler(wanted)
    if bandwidth is not None and learner is None:
        raise InputError("--read-bandwidth is about training", advice="name the learner with --for")
    is_imagined = bandwidth is not None or (job.cluster.workers or 0) > available_cores()
    with ExitStack() as stack:
        place = stack.enter_context(workplace(job))
        place.why_unused = "there was nothing to measure there"
        rows = row_corpus(job, corpus)
        todo = planned_build(job, rows, other)
        executor: Executor = InlineExecutor()
        if todo.plan.tasks and not is_imagined:
            executor = stack.enter_context(place.open())
            if (limit := thread_limit(None, executor)) is not None:
                todo.plan.check_memory(limit.n_bytes, limit.whose)
        forecast = todo.forecast(executor)
        n_threads = job.cluster.n_threads if is_imagined else executor.n_threads
        ways: list[Alternative] = []
        demand: Demand | None = None
        if learner is not None:
            demand = measure_demand(learner, todo.kernel, rows)
            machines = Machines(n_threads, 1 if learner.is_lazy else n_threads, bandwidth)
            ways = training_alternatives(todo, executor, demand, machines, forecast.room.free_bytes)
    result = forecast.to_dict(n_threads)
    if (loan := todo.loan) is not None:
        result |= {"lent": len(loan.tiles), "lender": loan.lender.url}
    if demand is not None:
        result |= {
            "learner": wanted,
            "passes": demand.passes,
            "values": demand.values,
            "alternatives": [way.to_dict() for way in ways],
        }
    if as_json:
        say_json(result)
    else:
        _say_forecast(forecast, result, job.cluster.threads)
        if learner is not None and demand is not None:
            _say_ways(learner, demand, ways, todo)
    if not ways:
        todo.require_room()


def _labeler(text: str) -> Learner:
    learner = learner_of(parse_record(text, "learner"))
    if learner.reads_corpus or not isinstance(learner, GramLearner):
        raise InputError(f"{learner.name} does not learn labels from a Gram matrix", advice="leave --for out")
    return learner


def _bandwidth(text: str) -> int:
    return int(plain_value("--read-bandwidth", Size(), text.strip().removesuffix("/s"), InputError))


def _say_forecast(forecast: Forecast, result: dict[str, Any], threads: int) -> None:
    height, width = forecast.shape
    disk = f"{size(result['stored_bytes'])} without compression, {size(result['new_bytes'])} to write"
    is_measured = forecast.seconds_per_cell or not result["to_compute"]
    time = f"about {duration(result['seconds'])} on {count(result['threads'], 'thread')}, reading and writing included"
    left_out = f"; {forecast.plan.n_left_out:,} are not stored" if forecast.plan.n_left_out else ""
    present = f"{result['present']:,} of them present"
    if "lender" in result:
        present = f"{result['lent']:,} of them lent by {short_path(result['lender'])}"
    tiles = f"{result['tiles']:,} of {forecast.block_rows:,} rows, {present}{left_out}"
    say_pairs(
        {
            "matrix": f"{height:,} x {width:,}",
            "tiles": tiles,
            "to compute": f"{count(result['to_compute'], 'tile')}, {result['cells']:,} kernel values",
            "on disk": f"{disk}; {forecast.room.said}",
            "memory": f"{size(forecast.plan.worker_bytes(threads))} per worker at worst",
            "time": time if is_measured else "not measured: there is no room for sample tiles",
        }
    )


def _say_ways(learner: Learner, demand: Demand, ways: Sequence[Alternative], todo: GramBuild) -> None:
    say("")
    say_folded(
        "",
        f"{learner.name} reads stored tiles {demand.passes:.1f} times, or computes {demand.values:.2g} N^2 kernel "
        "values without them:",
    )
    rows = [
        (
            way.keep if way.keep in ("all", "none") else size(way.stored_bytes),
            size(way.stored_bytes),
            duration(way.build_seconds),
            duration(way.training_seconds),
            "no room" if not way.fits else "recommended" if way.is_recommended else "",
        )
        for way in ways
    ]
    say_table(("--keep", "on disk", "build", "training", ""), rows)
    if not todo.is_new:
        say("the store that is there keeps its own tiles")
