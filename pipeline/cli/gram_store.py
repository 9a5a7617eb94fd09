"""`gramline gram status|verify|export`: what is done with a stored Gram matrix."""

from __future__ import annotations

from typing import Any

import click

from gramline.kernels.descriptions import describe
from gramline.pipeline.cli.cluster_options import cluster_options, executor_from
from gramline.pipeline.cli.job_file.file import JobFile
from gramline.pipeline.cli.terminal.output import count, json_option, say, say_json, say_pairs, size
from gramline.pipeline.cli.terminal.result import progress_shown
from gramline.pipeline.errors import RunError
from gramline.pipeline.gram.export import check_target, export_gram
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.verify import verify_gram


@click.command()
@click.argument("store", metavar="GRAM")
@json_option
def status(store: str, as_json: bool) -> None:
    """Show what the store GRAM holds and how much of it is done; reads no tile.

    \b
    Example:
      gramline gram status train.gram.zarr --json
    """

    found = StoredGram.open(store).status()
    form = "symmetric" if found.is_symmetric else "between two corpora"
    if as_json:
        say_json(found.to_dict())
        return
    say_pairs(
        {
            "store": found.path,
            "matrix": f"{found.shape[0]:,} x {found.shape[1]:,}, {form}",
            "structures": " x ".join(f"{number:,}" for number in dict.fromkeys(found.n_structures)),
            "tiles": f"{found.n_present:,} of {found.n_tiles:,} done, {found.block_rows:,} rows each",
            "stored": f"{size(found.stored_bytes)}, {found.dtype}, compression {found.compression}",
            "kernel": describe(found.kernel),
            "fingerprint": found.fingerprint,
        }
    )


@click.command()
@click.argument("store", metavar="GRAM")
@click.option(
    "--repair",
    is_flag=True,
    help="Compute missing and damaged tiles again, and remove what killed writers left an hour ago or earlier.",
)
@cluster_options
@json_option
def verify(store: str, repair: bool, as_json: bool, **options: Any) -> None:
    """Read every tile of the store GRAM and compute a few of its values anew; exit code 1 if a tile is bad.

    \b
    Example:
      gramline gram verify train.gram.zarr --repair
    """

    StoredGram.open(store)
    with executor_from(JobFile(), **options) as executor, progress_shown(as_json) as listener:
        report = verify_gram(store, executor=executor, repair=repair, progress=listener)
    if as_json:
        say_json(report.to_dict() | {"path": store})
    elif report.is_good:
        repaired = f", {count(report.n_repaired, 'tile')} computed again" if report.n_repaired else ""
        good = "its only tile is" if report.n_tiles == 1 else f"all {report.n_tiles:,} tiles are"
        swept = f", {count(report.n_strays, 'leftover')} of killed writers removed" if report.n_strays else ""
        say(f"{store}: {good} good{repaired}{swept}")
    else:
        for check in report.bad:
            say(f"tile ({check.i}, {check.j}): {check.problem}")
    if not report.is_good:
        first = report.bad[0]
        raise RunError(
            f"{store}: {len(report.bad):,} of {report.n_tiles:,} tiles missing or damaged, the first is "
            f"({first.i}, {first.j}): {first.problem}",
            advice="give --repair to compute them again",
        )


@click.command()
@click.argument("store", metavar="GRAM")
@click.argument("target")
@click.option("--overwrite", is_flag=True, help="Replace an export that is there.")
@json_option
def export(store: str, target: str, overwrite: bool, as_json: bool) -> None:
    """Write the full matrix of the store GRAM, mirrored and without padding, to TARGET: a .npy file or a .zarr array.

    \b
    Example:
      gramline gram export train.gram.zarr train.npy
    """

    found = StoredGram.open(store).status()
    found.require_complete()
    check_target(store, target, overwrite=overwrite)
    export_gram(store, target, overwrite=overwrite)
    if as_json:
        say_json({"store": store, "target": target, "shape": list(found.shape), "dtype": found.dtype})
    else:
        say(f"{found.shape[0]:,} x {found.shape[1]:,} {found.dtype} matrix written to {target}")
