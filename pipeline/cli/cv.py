"""`gramline cv`: cross-validation of kernels, learners and settings, from a job file, a Gram store or a corpus."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import click

from gramline.pipeline.choices import Metric
from gramline.pipeline.cli.cluster_options import cluster_options, executor_from
from gramline.pipeline.cli.cv_job import Prepared, prepare
from gramline.pipeline.cli.cv_plan import say_plan
from gramline.pipeline.cli.gram_build import CLUSTER
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_json,
    say_notes,
    say_table,
    size,
)
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.summary import setting_names
from gramline.pipeline.gram.plan import kernel_notes
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
@click.option("-o", "--output", metavar="RUN", help="Folder for the results [default: SOURCE's name with .run].")
@click.option("--learner", metavar="NAME", help="Which learner [default: labeling-perceptron].")
@click.option("--set", "extra", metavar="KEY=V,...", multiple=True, help="Parameter of the learner; several: each.")
@click.option(
    "--missing",
    metavar="FRACTION,...",
    help="Of gaussian-process: forget these fractions of the training labels, one after another.",
)
@click.option("--folds", type=click.IntRange(2), help="How many folds [default: 5].")
@click.option("--seed", type=click.IntRange(0), help="Shuffle structures with this seed [default: in order].")
@click.option("--repeats", type=click.IntRange(1), help="Repeat the folds with other shuffles.")
@click.option("--stratified/--not-stratified", default=None, help="Spread every label over the folds.")
@click.option("--group", metavar="COLUMN", help="Structures with the same value stay together.")
@click.option("--folds-file", metavar="FILE", help="JSON: held-out structure numbers per fold.")
@click.option("--inner", type=click.IntRange(2), metavar="K", help="Nested selection with K inner folds.")
@click.option(
    "--metric", type=click.Choice(get_args(Metric)), help="What decides which setting is best [default: accuracy]."
)
@click.option("--dummy", metavar="LABEL", help="Label of positions that carry nothing [default: O].")
@click.option("--no-dummy", is_flag=True, help="Every label counts.")
@click.option("--cache", metavar="FOLDER", help="Folder of Gram matrices [default: gramline-cache].")
@click.option("--corpus", metavar="CORPUS", help="The corpus of a Gram store, for its words and groups.")
@click.option("--block-rows", type=click.IntRange(1), help="Rows of a tile of new Gram matrices.")
@click.option("--plan", "plan_only", is_flag=True, help="Only show what would be built and trained.")
@cluster_options
@json_option
@when_stopped(KEPT)
def cv(source: str, plan_only: bool, as_json: bool, **options: Any) -> None:
    ready = prepare(source, options)
    if (corpus := ready.data.corpus) is not None:
        used = {ready.job.kernels[variant.kernel] for variant in ready.job.variants if variant.kernel is not None}
        say_notes(sorted({note for kernel in used for note in kernel_notes(kernel, corpus)}))
    if plan_only:
        say_plan(ready, options, as_json)
        return
    with show_progress(not as_json) as listener:
        result = run_job(
            ready.job,
            ready.data,
            RunFolder(ready.output),
            ready.settings,
            executor=partial(executor_from, ready.file, **{key: options[key] for key in CLUSTER}),
            progress=listener,
        )
    if ready.report:
        write_run_report(ready.output)
    total = result.summary["problems"]["total"]
    say_notes(f"in {n:,} of {count(total, 'problem')}: {note}" for note, n in result.summary["notes"].items())
    if as_json:
        say_json(result.summary | {"run": ready.output})
    else:
        say_results(ready, result)


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
        say(f"{again} held out by more than one fold of {summary['folds']['file']}: counted once in each of them")
    for unit in summary["units"]:
        if unit.get("tile_reads"):
            say(
                f"{unit['learner']}: {count(unit['problems'], 'problem')} solved with "
                f"{count(unit['tile_reads'], 'tile read')} of {count(unit['stored_tiles'], 'stored tile')}, "
                f"{duration(unit['seconds'])}"
            )
    for store in summary["stores"]:
        computed = f"{store['computed']:,} computed" if store["computed"] else "all reused"
        say(f"matrix  {store['path']} ({count(store['tiles'], 'tile')}, {computed}, {size(store['stored_bytes'])})")
    say(f"results {ready.output}; look at them: gramline report {ready.output}")
