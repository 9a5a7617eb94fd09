"""`gramline report`: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from gramline.pipeline.cli.terminal.output import json_option, say, say_json, say_next, short_path, size
from gramline.pipeline.crossval.ranking_run import RANKING
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_new_file
from gramline.pipeline.reporting.run_report import write_run_report

HELP = """Write the run RUN as one HTML page that needs no network.

It says how good the best setting is beside simple models, where it is wrong and what to try next; then all settings,
curves, the Gram matrix, tiles, and everything to repeat the run.

\b
Example:
  gramline report cv.run
  gramline report cv.run -o cv.html"""


@click.command(help=HELP)
@click.argument("run")
@click.option("-o", "--output", metavar="FILE", help="Where to write it [default: RUN/report.html].")
@json_option
def report(run: str, output: str | None, as_json: bool) -> None:
    if output is not None:
        require_new_file(output)
    if RunFolder.existing(run).read_json("results.json").get("kind") == RANKING:
        advice = "the same `gramline cv` shows its table again"
        raise InputError(f"{run} is a run of rankers, which has no page", advice=advice)
    written = write_run_report(run, output)
    n_bytes = Path(written).stat().st_size
    if as_json:
        say_json({"run": run, "report": str(written), "bytes": n_bytes})
    else:
        say(f"report written to {short_path(str(written))} ({size(n_bytes)})")
        say_next(f"open {short_path(str(written))} in a browser", f"gramline fit --from-run {short_path(run)}")
