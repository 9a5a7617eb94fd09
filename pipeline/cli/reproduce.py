"""`gramline reproduce`: the papers' experiments, listed or run."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gramline.pipeline.cli.terminal.input_paths import folder as writable
from gramline.pipeline.cli.terminal.output import duration, json_option, say, say_folded, say_json, say_next, say_table
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import EXPERIMENTS, find_experiment
from gramline.pipeline.experiments.record import ExperimentRecord, load_records, record_experiment, save_record
from gramline.pipeline.experiments.results_page import update_page, write_experiment_report

REPORT = "report.html"
HELP = """Run experiments of the papers and print paper and measured numbers side by side.

With --data and no NAME it runs all of them, but for the scale run, which is run by its name alone; without both it
lists them. DATA is the folder that holds the data sets; nothing of it is copied. An experiment whose files are not
there is skipped, and says which files it wants; those on built-in data always run.

\b
Example:
  gramline reproduce
  gramline reproduce --data data -o results
  gramline reproduce tree-reranking --data data -o results"""


@click.command(help=HELP)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--data", "folder", metavar="FOLDER", help="The folder with the data sets.")
@click.option(
    "-o", "--output", metavar="FOLDER", callback=writable, help="Write Parquet, JSON, SVG and one HTML report there."
)
@click.option("--all", "everything", is_flag=True, help="Run every experiment, also without data sets.")
@click.option("--quick", is_flag=True, help="A small version of each, for a first look.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything that is drawn.")
@click.option("--scratch", metavar="FOLDER", default=".", help="Where large files may lie meanwhile  [default: .]")
@click.option("--page", "pages", multiple=True, metavar="FILE", help="Write what -o holds into a Markdown page.")
@json_option
def reproduce(
    names: tuple[str, ...],
    folder: str | None,
    output: str | None,
    everything: bool,
    quick: bool,
    seed: int,
    scratch: str,
    pages: tuple[str, ...],
    as_json: bool,
) -> None:
    if pages and output is None:
        raise InputError("--page writes what the folder of -o holds; name it with -o")
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"--data {folder} is not a folder; name the one that holds the data sets")
    chosen = [find_experiment(name) for name in names]
    if not names and (everything or folder is not None):
        chosen = [experiment for experiment in EXPERIMENTS.values() if not experiment.by_name_only]
    if not chosen and not pages:
        _list(as_json)
        return
    run = Run(
        Path(folder or "."), quick=quick, seed=seed, say=lambda line: click.echo(line, err=True), scratch=Path(scratch)
    )
    records = []
    for experiment in chosen:
        left = f"{experiment.name} was not finished and is not saved; the same command begins it again"
        with when_stopped(left):
            records.append(
                record_experiment(experiment, run, None if folder is None else Path(folder), strict=bool(names))
            )
        _tell(records[-1], output, as_json)
    if output is not None:
        _write(Path(output), pages, as_json)
    elif not as_json:
        say_next("the same with -o RESULTS keeps tables, pictures and a page")
    if as_json:
        say_json({record.name: record.to_dict() for record in records})


def _tell(record: ExperimentRecord, output: str | None, as_json: bool) -> None:
    """Save and print one."""
    # A run that was skipped leaves what an earlier one has saved.
    written = save_record(record, Path(output)) if output is not None and record.skipped is None else []
    if as_json:
        return
    for table in record.tables:
        texts = table.text_columns()
        n_left = next((k for k in range(len(table.columns)) if k not in texts), len(table.columns))
        say_table(table.columns, table.texts(), table.title, n_left=max(1, min(2, n_left)), texts=texts)
        for note in table.notes:
            say_folded("  ", note)
    outcome = record.skipped or duration(record.seconds)
    say(f"{record.name}: {outcome}" + "".join(f"\n  {path}" for path in written))


def _write(folder: Path, pages: tuple[str, ...], as_json: bool) -> None:
    """The report and the pages, of everything that the folder holds."""
    records = load_records(folder, list(EXPERIMENTS))
    if not pages:
        write_experiment_report(records, folder / REPORT)
    for page in pages:
        update_page(Path(page), records, os.path.relpath(folder, Path(page).parent))
    if not as_json:
        if pages:
            say("\n".join(pages))
        else:
            say_folded("report  ", str(folder / REPORT))
            say_next(f"open {folder / REPORT} in a browser")


def _list(as_json: bool) -> None:
    if as_json:
        say_json({"experiments": {name: experiment.title for name, experiment in EXPERIMENTS.items()}})
    else:
        say_table(["experiment", "what"], [[name, one.title] for name, one in EXPERIMENTS.items()], n_left=2)
        say_next("gramline reproduce NAME --data FOLDER -o RESULTS")
