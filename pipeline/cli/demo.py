"""`gramline demo`: the main job on built-in data, with a short summary at the end."""

from __future__ import annotations

from pathlib import Path

import click

from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.terminal.input_paths import folder
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_json,
    say_table,
    short_path,
    size,
)
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.stopping import KEPT, when_stopped
from gramline.pipeline.cli.workplaces import workplace
from gramline.pipeline.experiments.demo import DemoResult, run_demo

SENTENCES = 300

HELP = """Generate sentences, build their Gram matrices, train labelers from them and test them.

The sentences are labeled as dependency trees and as sequences; the labels hang on verbs that are far away in the
sentence, but near in its tree.

Everything is written to one folder; a second run reuses the tiles that are there.

\b
Example:
  gramline demo --folder demo-out"""


@click.command(help=HELP)
@click.option(
    *("--folder", "place"),
    metavar="FOLDER",
    default="demo-out",
    show_default=True,
    callback=folder,
    help="Where everything is written.",
)
@click.option("--sentences", type=click.IntRange(10), default=SENTENCES, show_default=True, help="To train on.")
@cluster_options
@json_option
@when_stopped(KEPT)
def demo(place: str, sentences: int, given: OptionValues, as_json: bool) -> None:
    with show_progress(not as_json) as listener, workplace(load_job(None, given), listener) as workers:
        result = run_demo(
            Path(place),
            n_sentences=sentences,
            n_held_out=max(5, sentences // 4),
            executor=workers.open,
            progress=listener,
        )
    if as_json:
        say_json(result.to_dict())
    else:
        say_summary(result)


def say_summary(result: DemoResult) -> None:
    """Sizes, times, tiles, scores and places, within a screen."""
    status, scores, other = result.trees.status, result.trees.evaluation, result.sequences
    mistakes = result.trees.learner.mistakes_
    numbers = result.to_dict()
    tiles = (
        f"{count(numbers['computed'], 'tile')} computed, {numbers['reused']:,} reused"
        if numbers["computed"]
        else f"all {count(numbers['tiles'], 'tile')} reused"
    )
    sizes = f"{len(result.train):,} to train, {len(result.test):,} to test, {len(result.train.label_names)} labels"
    matrices = f"2 of {status.shape[0]:,} rows, {size(numbers['stored_bytes'])}; {tiles}"
    rounds = f"{count(len(mistakes), 'round')}, mistakes {mistakes[0]:,} to {mistakes[-1]:,}"
    steps = (
        ("sentences", "generate", sizes),
        ("Gram matrices", "build", matrices),
        ("perceptron", "train", rounds),
        ("held out", "evaluate", f"token accuracy {scores.accuracy:.4f}, Hamming loss {scores.hamming_loss:.4f}"),
        ("sequences", "sequences", f"token accuracy {other.evaluation.accuracy:.4f} without the trees"),
    )
    say_table(
        ("step", "result", "time"),
        [(step, text, duration(result.seconds[part])) for step, part, text in steps],
        n_left=2,
    )
    rows = [
        (name, f"{score.precision:.4f}", f"{score.recall:.4f}", f"{score.f1:.4f}", f"{score.gold:,}")
        for kernel, evaluation in (("tree", scores), ("sequence", other.evaluation))
        for name, score in (
            (f"{kernel} kernel, tokens but {evaluation.dummy}", evaluation.tokens),
            (f"{kernel} kernel, spans", evaluation.spans),
        )
    ]
    say_table(("held out", "precision", "recall", "F1", "gold"), rows)
    say(f"matrix  {short_path(status.path)}")
    say(f"model   {result.folder / 'model.zarr'}")
    say(f"corpora {result.folder / 'train.parquet'} and test.parquet")
    say(f"report  {result.report}")
    say(f"look closer: gramline evaluate {result.folder / 'model.zarr'} {result.folder / 'test.parquet'}")
