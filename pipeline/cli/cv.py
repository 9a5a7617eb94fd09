"""`gramline cv`: cross-validation of kernels, learners and settings, from a job file, a Gram store or a corpus."""

from __future__ import annotations

from functools import partial

import click

from gramline.kernels.catalogue import describe
from gramline.pipeline.cli.cluster_options import cluster_options, executor_from
from gramline.pipeline.cli.cv_job import Prepared, prepare
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.cli.job_file.options import table_option
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_folded,
    say_json,
    say_notes,
    say_table,
    short_path,
    size,
)
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.crossval.plan import plan_job
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.summary import setting_names
from gramline.pipeline.gram.plan import kernel_notes
from gramline.pipeline.models.training import DEFAULT_LEARNER
from gramline.pipeline.reporting.page import METRIC_NAMES
from gramline.pipeline.reporting.run_report import write_run_report

HELP = """Cross-validate learners on every fold with every setting.

SOURCE is a job file (.toml), a Gram matrix that `gramline gram build` wrote, or a corpus. All folds and settings of a
learner are trained from the same stream of tiles. What is finished is kept in the run folder: when it was stopped, the
same command goes on.

\b
Example:
  gramline cv train.gram.zarr --set rounds=1,5,10 --set average=true,false \\
      --folds 5 --seed 1 -o cv.run
  gramline cv job.toml --plan
  gramline report cv.run"""


@click.command(help=HELP)
@click.argument("source")
@table_option(
    "output.path", "-o", "--output", metavar="RUN", help="Folder for the results [default: SOURCE's name with .run]."
)
@table_option("learner.name", "--learner", metavar="NAME", help=f"Which learner [default: {DEFAULT_LEARNER}].")
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
@table_option("folds.group", "--group", metavar="COLUMN", help="Structures with the same value stay together.")
@table_option("folds.file", "--folds-file", metavar="FILE", help="JSON: held-out structure numbers per fold.")
@table_option("folds.inner", "--inner", metavar="K", help="Nested selection with K inner folds.")
@table_option("output.metric", "--metric", help="What decides which setting is best [default: accuracy].")
@table_option("output.dummy", "--dummy", metavar="LABEL", help="Label of positions that carry nothing [default: O].")
@click.option("--no-dummy", is_flag=True, help="Every label counts.")
@table_option("cache.path", "--cache", metavar="FOLDER", help="Folder of Gram matrices [default: gramline-cache].")
@click.option("--corpus", metavar="CORPUS", help="The corpus of a Gram store, for its words and groups.")
@table_option("gram.block_rows", "--block-rows", help="Rows of a tile of new Gram matrices.")
@click.option("--plan", "plan_only", is_flag=True, help="Only show what would be built and trained.")
@cluster_options
@json_option
@when_stopped(KEPT)
def cv(
    source: str,
    extra: tuple[str, ...],
    no_dummy: bool,
    corpus: str | None,
    plan_only: bool,
    given: OptionValues,
    as_json: bool,
) -> None:
    ready = prepare(source, given, settings=extra, no_dummy=no_dummy, corpus_path=corpus)
    if ready.data.corpus is not None:
        used = [ready.job.kernels[number] for number in ready.job.used_kernels]
        say_notes(sorted({note for kernel in used for note in kernel_notes(kernel, ready.data.corpus)}))
    if plan_only:
        say_plan(ready, as_json)
        return
    with show_progress(not as_json) as listener:
        result = run_job(
            ready.job,
            ready.data,
            RunFolder(ready.output),
            ready.settings,
            executor=partial(executor_from, ready.file),
            progress=listener,
        )
    if ready.file.output.report:
        write_run_report(ready.output)
    total = result.summary["problems"]["total"]
    say_notes(f"in {n:,} of {count(total, 'problem')}: {note}" for note, n in result.summary["notes"].items())
    if as_json:
        say_json(result.summary | {"run": ready.output})
    else:
        say_results(ready, result)


def say_plan(ready: Prepared, as_json: bool) -> None:
    """Print (or write as JSON) what the job will take."""
    threads = ready.file.cluster.n_threads
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
    say(f"{total} on {count(threads, 'thread')} like this one")
    say_folded("results go to ", ready.output)


def say_results(ready: Prepared, result: JobResult) -> None:
    """The settings with their scores, the best marked; the tiles read; where everything is."""
    summary, metric = result.summary, ready.job.metric
    names = setting_names(summary["settings"])
    columns = ("accuracy", "f1" if metric == "accuracy" else metric)
    rows = []
    for number, setting in enumerate(summary["settings"]):
        scores, behind = setting["scores"], setting["behind_best"]
        mark = "* " if number == summary["best"] else "  "
        rows.append(
            (
                mark + names[number],
                *(f"{scores[name]['mean']:.4f} ± {scores[name]['deviation']:.4f}" for name in columns),
                "" if behind["p"] is None or number == summary["best"] else f"{behind['p']:.3f}",
            )
        )
    titles = [METRIC_NAMES.get(name, name.replace("_", " ")) for name in columns]
    say_table((f"setting (* best {metric})", *titles, "p"), rows)
    if any(row[-1] for row in rows):
        say(f"p: paired t-test of {metric} against the best over the folds, two-sided")
    if result.nested is not None:
        say(
            f"nested selection: {metric} {result.nested.mean(metric):.4f} ± {result.nested.deviation(metric):.4f} "
            f"over {count(len(result.nested.chosen), 'outer fold')}"
        )
    if summary["folds"]["file"] is not None and summary["folds"]["held_out_again"]:
        again = count(summary["folds"]["held_out_again"], "structure")
        say_folded(
            "", f"{again} held out by more than one fold of {summary['folds']['file']}: counted once in each of them"
        )
    for unit in summary["units"]:
        if unit.get("tile_reads"):
            say(
                f"{unit['learner']}: {count(unit['problems'], 'problem')} solved with "
                f"{count(unit['tile_reads'], 'tile read')} of {count(unit['stored_tiles'], 'stored tile')}, "
                f"{duration(unit['seconds'])}"
            )
    for store in summary["stores"]:
        computed = f"{store['computed']:,} computed" if store["computed"] else "all reused"
        sizes = f"{count(store['tiles'], 'tile')}, {computed}, {size(store['stored_bytes'])}"
        say_folded("matrix  ", f"{short_path(store['path'])} ({sizes})")
    say_folded("results ", f"{ready.output}; look at them: gramline report {ready.output}")
