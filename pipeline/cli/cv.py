"""`gramline cv`: cross-validation of kernels, learners and settings, from a job file, a Gram store or a corpus."""

from __future__ import annotations

from dataclasses import replace

import click

from gramline.pipeline.cli.checkpoint_options import CheckpointOptions, checkpoint_options
from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.cv_job import prepare
from gramline.pipeline.cli.cv_output import say_plan, say_results
from gramline.pipeline.cli.cv_ranking import say_rankers
from gramline.pipeline.cli.job_file.corpus import reading_options
from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.job_file.kernel import kernel_options
from gramline.pipeline.cli.job_file.options import table_option
from gramline.pipeline.cli.terminal.bill import Bill, cost_option
from gramline.pipeline.cli.terminal.event_log import Telling, telling_options
from gramline.pipeline.cli.terminal.failures import FAILED
from gramline.pipeline.cli.terminal.output import count, json_option, say_json, say_notes
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.cli.workplaces import workplace
from gramline.pipeline.crossval.plan import plan_job
from gramline.pipeline.crossval.ranking_run import run_rankers
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.solve import spread_rows
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.plan import thread_limit
from gramline.pipeline.models.training import DEFAULT_LEARNER
from gramline.pipeline.reporting.run_report import write_run_report

HELP = """Cross-validate learners on every fold with every setting.

SOURCE is a job file (.toml), a Gram matrix that `gramline gram build` wrote, a corpus, or a file with labels. A corpus
or file gets the recommended kernel and learner where none is named, as in `gramline fit`. All folds and settings of a
learner are trained from the same stream of tiles. Rankers are compared on a corpus of candidates with the columns group
and score: all candidates of a group stay in one fold, and the first ones stand beside. What is finished is kept in the
run folder, and the state of what is not: when it was stopped, by Ctrl-C, a signal, a crash or --stop-after, the same
command goes on. A setting whose kernel overflows or whose learner does not converge is a failed row (exit code 1); the
others go on.

\b
Example:
  gramline cv train.conll --set rounds=5,20
  gramline cv train.gram.zarr --set rounds=1,5,10 --set average=true,false \\
      --folds 5 --seed 1 -o cv.run
  gramline cv parses.parquet --learner ranking-svm --set C=1,10 \\
      --set log_probability=0,auto
  gramline cv job.toml --plan
  gramline report cv.run"""


@click.command(help=HELP)
@click.argument("source")
@table_option(
    "output.path", "-o", "--output", metavar="RUN", help="Folder for the results [default: SOURCE's name with .run]."
)
@reading_options
@kernel_options
@table_option(
    "learner.name",
    "--learner",
    metavar="NAME",
    help=f"Which learner [default: {DEFAULT_LEARNER}; of a file or a corpus the recommended one].",
)
@click.option("--set", "extra", metavar="KEY=V,...", multiple=True, help="Parameter of the learner; several: each.")
@table_option(
    *("learner.missing", "--missing"),
    metavar="FRACTION,...",
    help="Of gaussian-process: forget these fractions of the training labels, one after another.",
)
@table_option("folds.count", "--folds", help="How many folds [default: 5].")
@table_option("folds.seed", "--seed", help="Shuffle structures with this seed [default: in order].")
@table_option("folds.repeats", "--repeats", help="Repeat the folds with other shuffles.")
@table_option("folds.stratified", "--stratified/--not-stratified", help="Spread every label over the folds.")
@table_option(
    *("folds.group", "--group"),
    metavar="COLUMN|duplicates",
    help="Structures with the same value stay together; duplicates: equal structures do.",
)
@table_option("folds.file", "--folds-file", metavar="FILE", help="JSON: held-out structure numbers per fold.")
@table_option("folds.inner", "--inner", metavar="K", help="Nested selection with K inner folds.")
@table_option("output.metric", "--metric", help="What decides which setting is best [default: accuracy].")
@table_option("output.dummy", "--dummy", metavar="LABEL", help="Label of positions that carry nothing [default: O].")
@click.option("--no-dummy", is_flag=True, help="Every label counts.")
@table_option(
    *("output.baselines", "--baselines/--no-baselines"),
    help="Compare with simple models on the same features and folds [default: yes, where that is quick].",
)
@table_option("cache.path", "--cache", metavar="FOLDER", help="Folder of Gram matrices [default: gramline-cache].")
@click.option("--corpus", metavar="CORPUS", help="The corpus of a Gram store, for its words and groups.")
@table_option("gram.block_rows", "--block-rows", help="Rows of a tile of new Gram matrices.")
@table_option("gram.keep", "--keep", help="Tiles of new Gram matrices to store: all, none, or a size.")
@click.option("--plan", "plan_only", is_flag=True, help="Only show what would be built and trained.")
@cluster_options
@telling_options
@checkpoint_options
@cost_option
@json_option
@when_stopped(KEPT)
def cv(
    source: str,
    extra: tuple[str, ...],
    no_dummy: bool,
    corpus: str | None,
    plan_only: bool,
    given: OptionValues,
    telling: Telling,
    bill: Bill,
    stops: CheckpointOptions,
    as_json: bool,
) -> None:
    file = load_job(source if source.endswith(".toml") else None, given)
    with telling.show(as_json) as listener, workplace(file, listener) as place:
        ready = prepare(source, given, settings=extra, no_dummy=no_dummy, corpus_path=corpus)
        say_notes(ready.notes)
        folder = RunFolder(ready.output)
        if ready.job.is_ranking:
            stops.require_none("with rankers, each of whose problems is kept when it is solved")
            if plan_only:
                raise InputError("nobody knows how long rankers train", advice="leave --plan out")
            summary = run_rankers(ready.job, ready.data, folder, ready.settings, executor=place.open, progress=listener)
        elif plan_only:
            stops.require_none("with --plan, which trains nothing")
            place.why_unused = "a plan asks only for its threads and memory"
            limit = thread_limit(ready.settings.limit_bytes, place.named)
            n_threads = place.n_threads(file.cluster.n_threads)
            plan = plan_job(ready.job, ready.data, folder, ready.settings, n_threads, limit)
        else:
            survival = stops.survival([variant.make() for variant in ready.job.variants])
            settings = replace(ready.settings, has_workers=place.named is not None)
            result = run_job(
                *(ready.job, ready.data, folder, settings),
                executor=place.open,
                progress=listener,
                survival=survival,
            )
            place.why_unused = _why_unused(result, ready.data.n_positions, spread_rows(settings))
    if ready.job.is_ranking:
        say_rankers(ready, summary, bill, as_json)
        return
    if plan_only:
        if as_json:
            say_json(plan)
        else:
            say_plan(ready, plan)
        return
    if ready.file.output.report:
        write_run_report(ready.output)
    total = result.summary["problems"]["total"]
    say_notes(f"in {n:,} of {count(total, 'problem')}: {note}" for note, n in result.summary["notes"].items())
    if as_json:
        say_json(result.summary | {"run": ready.output} | bill.result())
    else:
        say_results(ready, result)
        bill.say()
    if result.summary["failed"]:
        raise click.exceptions.Exit(FAILED)


def _why_unused(result: JobResult, n_rows: int, spread_rows: int) -> str:
    """Why a job that ran sent no task to a cluster."""
    if not result.new_units:
        return "all problems were solved before"
    learners = ", ".join(dict.fromkeys(unit["learner"] for unit in result.new_units))
    small = f"; {count(n_rows, 'row')} of {spread_rows:,} from which on workers help" if n_rows < spread_rows else ""
    return (
        f"all tiles were there already, and the problems of {learners} share one pass over them, in this process{small}"
    )
