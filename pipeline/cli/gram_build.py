"""`gramline gram plan|build|append`: what computes tiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, TypeVar, get_args

import click

from gramline.kernels.parameters import parameters_of
from gramline.pipeline.choices import Compression, Dtype
from gramline.pipeline.cli.cluster_options import cluster_options, executor_from
from gramline.pipeline.cli.job_file.corpus import corpus_of
from gramline.pipeline.cli.job_file.file import JobFile, either, load_job
from gramline.pipeline.cli.job_file.kernel import kernel_from, kernel_options
from gramline.pipeline.cli.job_file.tables import ClusterTable
from gramline.pipeline.cli.terminal.notation import in_bytes
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say_json, say_notes, say_pairs, size
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.result import Tally, say_built
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.gram.append import append_gram
from gramline.pipeline.gram.build import GramBuild, StoreChoices, remove_on_overflow
from gramline.pipeline.gram.plan import kernel_notes, tile_limit
from gramline.pipeline.gram.stored import StoredGram

F = TypeVar("F", bound=Callable[..., Any])

CLUSTER = (*parameters_of(ClusterTable), "insecure_plain_text")
KERNEL = ("kernel", "c", "gap", "observation", "prior", "label_kernel")
job_option = click.option("--job", "job_path", metavar="FILE", help="TOML job file; options win over it.")


def store_options(command: F) -> F:
    """Adds what decides the shape of a new store."""
    for option in reversed(
        [
            click.option("--other", metavar="CORPUS", help="Columns from this corpus: a rectangular matrix."),
            click.option("--dtype", type=click.Choice(get_args(Dtype)), help="Of the tiles [default: float64]."),
            click.option(
                "--block-rows", type=click.IntRange(1), help="Rows of a tile [default: 2048, or the longest]."
            ),
        ]
    ):
        command = option(command)
    return command


@click.command()
@click.argument("corpus", required=False)
@click.option("-o", "--output", metavar="GRAM", help="A store whose finished tiles are not counted again.")
@store_options
@kernel_options
@click.option("--workers", type=click.IntRange(1), help="Worker processes to reckon with [default: one per core].")
@click.option("--threads", type=click.IntRange(1), help="Threads per worker [default: 1].")
@click.option(
    "--memory-limit", callback=in_bytes, metavar="BYTES", help="Refuse a plan that needs more per worker, such as 2GiB."
)
@job_option
@json_option
def plan(corpus: str | None, output: str | None, job_path: str | None, as_json: bool, **options: Any) -> None:
    """Print tiles, bytes on disk, peak memory per worker and time of a build, before anything runs.

    A few sample tiles are computed here to tell the time.

    \b
    Example:
      gramline gram plan train.parquet --observation polynomial:degree=2
    """
    job = load_job(job_path)
    forecast = _planned_build(job, corpus, either(output, job.gram.path), options).forecast()
    threads = either(options["threads"], job.cluster.threads)
    workers = either(options["workers"], job.cluster.workers) or len(os.sched_getaffinity(0))
    limit = either(options["memory_limit"], job.cluster.memory_limit)
    if limit is not None:
        forecast.plan.check_memory(tile_limit(limit, threads))
    result = forecast.to_dict(workers * threads)
    if as_json:
        say_json(result)
        return
    height, width = forecast.shape
    say_pairs(
        {
            "matrix": f"{height:,} x {width:,}",
            "tiles": f"{result['tiles']:,} of {forecast.block_rows:,} rows, {result['present']:,} of them present",
            "to compute": f"{count(result['to_compute'], 'tile')}, {result['cells']:,} kernel values",
            "on disk": f"{size(result['stored_bytes'])} without compression",
            "memory": f"{size(forecast.plan.worker_bytes(threads))} per worker at worst",
            "time": f"about {duration(result['seconds'])} on {count(workers * threads, 'thread')} like this one",
        }
    )


@click.command()
@click.argument("corpus", required=False)
@click.option(
    *("-o", "--output", "--store"), metavar="GRAM", help="Where to store it: a path, or s3://... with gramline[s3]."
)
@store_options
@click.option("--compression", type=click.Choice(get_args(Compression)), help="Of the tiles [default: none].")
@kernel_options
@cluster_options
@job_option
@json_option
@when_stopped(KEPT)
def build(corpus: str | None, output: str | None, job_path: str | None, as_json: bool, **options: Any) -> None:
    """Compute the Gram matrix of CORPUS into the store GRAM; given again, it goes on where it was.

    \b
    Example:
      gramline gram build train.parquet -o train.gram.zarr --c 0.8 --gap 0.2 \\
          --observation polynomial:degree=2,normalized=true \\
          --workers 4 --memory-limit 2GiB
    """
    job = load_job(job_path)
    target = job.path(output, "gram", "path", "where to store the Gram matrix (-o GRAM)")
    # The plan comes first: what is refused is refused before a cluster starts and before anything is written.
    todo = _planned_build(job, corpus, target, options)
    limit = either(options["memory_limit"], job.cluster.memory_limit)
    threads = either(options["threads"], job.cluster.threads)
    tally = Tally()
    if limit is not None:
        todo.plan.check_memory(tile_limit(limit, threads))
    with ExitStack() as stack:
        if todo.is_new:
            stack.enter_context(remove_on_overflow(target))
        executor: Executor = InlineExecutor()
        if todo.plan.tasks:
            executor = stack.enter_context(executor_from(job, **{key: options[key] for key in CLUSTER}))
        built = todo.run(executor, progress=tally.and_then(stack.enter_context(show_progress(not as_json))))
    say_built(asdict(built.status()) | tally.result(), as_json)


@click.command()
@click.argument("store", metavar="GRAM")
@click.argument("corpus")
@cluster_options
@json_option
@when_stopped(KEPT)
def append(store: str, corpus: str, as_json: bool, **options: Any) -> None:
    """Add the structures of CORPUS to the store GRAM; only the new rows and columns of tiles are computed.

    Given again after an interruption, it goes on where it was.

    \b
    Example:
      gramline gram append train.gram.zarr more.parquet --workers 4
    """
    StoredGram.open(store)
    more = Corpus.load(corpus)
    tally = Tally()
    with executor_from(JobFile(), **options) as executor, show_progress(not as_json) as listener:
        grown = append_gram(store, more, executor=executor, progress=tally.and_then(listener))
    say_built(asdict(grown.status()) | tally.result(), as_json)


def _planned_build(job: JobFile, corpus: str | None, path: str | None, options: dict[str, Any]) -> GramBuild:
    """The matrix that options and job file describe; notes on its kernel are shown."""
    rows, cols = _corpora(job, corpus, options["other"])
    kernel = kernel_from(job, rows.kind, **{key: options[key] for key in KERNEL})
    say_notes(kernel_notes(kernel, rows))
    choices = StoreChoices(
        either(options["dtype"], job.gram.dtype),
        either(options["block_rows"], job.gram.block_rows),
        either(options.get("compression"), job.gram.compression),
    )
    return GramBuild(kernel, rows, path, choices, other=cols)


def _corpora(job: JobFile, corpus: str | None, other: str | None) -> tuple[Corpus, Corpus | None]:
    first = corpus_of(job, "path") if corpus is None else Corpus.load(corpus)
    if other is not None:
        return first, Corpus.load(other)
    return first, corpus_of(job, "other", like=first) if job.corpus.other else None
