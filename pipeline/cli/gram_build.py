"""`gramline gram build|append`: what computes tiles."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict

import click

from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.job_file.corpus import corpus_of
from gramline.pipeline.cli.job_file.file import JobFile, OptionValues, load_job, required
from gramline.pipeline.cli.job_file.kernel import kernel_from, kernel_options
from gramline.pipeline.cli.job_file.options import job_option, table_option, together
from gramline.pipeline.cli.terminal.bill import Bill, cost_option
from gramline.pipeline.cli.terminal.event_log import Telling, telling_options
from gramline.pipeline.cli.terminal.output import (
    json_option,
    say_next,
    say_notes,
    short_path,
)
from gramline.pipeline.cli.terminal.result import Tally, say_built
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.cli.workplaces import workplace
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.gram.append import append_gram
from gramline.pipeline.gram.build import GramBuild, StoreChoices, remove_on_overflow
from gramline.pipeline.gram.keep import wanted_keep
from gramline.pipeline.gram.notes import kernel_notes
from gramline.pipeline.gram.reuse import stores_beside
from gramline.pipeline.gram.stored import StoredGram

store_options = together(
    click.option("--other", metavar="CORPUS", help="Columns from this corpus: a rectangular matrix."),
    table_option("gram.dtype", "--dtype", help="Of the tiles [default: float64]."),
    table_option("gram.block_rows", "--block-rows", help="Rows of a tile [default: 2048, or the longest]."),
    table_option("gram.keep", "--keep", help="Tiles to store: all, none, or a size such as 40GB [default: all]."),
    table_option("gram.tile_cache", "--tile-cache", help="Of tiles not stored, in each process, such as 500MB."),
)


@click.command()
@click.argument("corpus", required=False)
@table_option(
    *("gram.path", "-o", "--output", "--store"),
    metavar="GRAM",
    help="Where to store it: a path, or s3://... with gramline[s3].",
)
@store_options
@table_option("gram.compression", "--compression", help="Of the tiles [default: none].")
@kernel_options
@cluster_options
@job_option
@telling_options
@cost_option
@json_option
@when_stopped(KEPT)
def build(
    corpus: str | None,
    other: str | None,
    given: OptionValues,
    job_path: str | None,
    telling: Telling,
    bill: Bill,
    as_json: bool,
) -> None:
    """Compute the Gram matrix of CORPUS into the store GRAM; given again, it goes on where it was.

    \b
    Example:
      gramline gram build train.parquet -o train.gram.zarr --c 0.8 --gap 0.2 \\
          --observation polynomial:degree=2,normalized=true \\
          --workers 4 --memory-limit 2GiB
    """
    job = load_job(job_path, given)
    target = required(job.gram.path, "gram", "where to store the Gram matrix (-o GRAM)")
    tally = Tally()
    with ExitStack() as stack:
        listener = tally.and_then(stack.enter_context(telling.show(as_json)))
        place = stack.enter_context(workplace(job, listener))
        # What is refused is refused before a cluster starts and before anything is written.
        todo = planned_build(job, row_corpus(job, corpus), other)
        todo.require_room()
        if todo.is_new:
            stack.enter_context(remove_on_overflow(target))
        executor: Executor = InlineExecutor()
        if todo.plan.tasks:
            executor = stack.enter_context(place.open())
        built = todo.run(executor, progress=listener)
        place.why_unused = "all tiles were there already"
    say_built(asdict(built.status()) | tally.result() | bill.result(), as_json)
    if not as_json:
        say_next(*_next_commands(built))
        bill.say()


@click.command()
@click.argument("store", metavar="GRAM")
@click.argument("corpus")
@cluster_options
@telling_options
@cost_option
@json_option
@when_stopped(KEPT)
def append(store: str, corpus: str, given: OptionValues, telling: Telling, bill: Bill, as_json: bool) -> None:
    """Add the structures of CORPUS to the store GRAM; only the new rows and columns of tiles are computed.

    Given again after an interruption, it goes on where it was.

    \b
    Example:
      gramline gram append train.gram.zarr more.parquet --workers 4
    """
    tally = Tally()
    with ExitStack() as stack:
        listener = tally.and_then(stack.enter_context(telling.show(as_json)))
        place = stack.enter_context(workplace(load_job(None, given), listener))
        StoredGram.open(store)
        more = Corpus.load(corpus)
        grown = append_gram(store, more, executor=stack.enter_context(place.open()), progress=listener)
    say_built(asdict(grown.status()) | tally.result() | bill.result(), as_json)
    if not as_json:
        say_next(*_next_commands(grown))
        bill.say()


def _next_commands(built: StoredGram) -> list[str]:
    """What a matrix is made for: labelers and their comparison, rankers, or, between two corpora, other programs."""
    path = short_path(built.path)
    if not built.status().is_symmetric:
        return [f"gramline gram export {path} -o FILE"]
    if not built.kernel.per_position:
        return [f"gramline fit {path} -o MODEL --learner ranking-perceptron --candidates CORPUS"]
    return [f"gramline cv {path}", f"gramline fit {path} -o MODEL"]


def row_corpus(job: JobFile, corpus: str | None) -> Corpus:
    """The corpus of the rows: that of the command line, or of the job file."""
    return corpus_of(job, "path") if corpus is None else Corpus.load(corpus)


def planned_build(job: JobFile, rows: Corpus, other: str | None) -> GramBuild:
    """The matrix that options and job file describe, within the memory they allow; notes on its kernel are shown."""
    cols = None
    if other is not None:
        cols = Corpus.load(other)
    elif job.corpus.other is not None:
        cols = corpus_of(job, "other", like=rows)
    choice = kernel_from(job, rows)
    kernel = choice.kernel
    say_notes([*choice.notes, *kernel_notes(kernel, rows)])
    keep = wanted_keep(job.gram.keep, job.gram.tile_cache)
    choices = StoreChoices(job.gram.dtype, job.gram.block_rows, job.gram.compression, keep)
    lenders = () if job.gram.path is None else stores_beside(job.gram.path)
    todo = GramBuild(kernel, rows, job.gram.path, choices, other=cols, lenders=lenders)
    if job.cluster.limit_bytes is not None:
        todo.plan.check_memory(job.cluster.limit_bytes)
    return todo
