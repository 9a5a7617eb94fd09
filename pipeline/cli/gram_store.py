"""`gramline gram status|verify|export`: what is done with a stored Gram matrix."""

from __future__ import annotations

import click

from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.terminal.output import json_option, say, say_json, say_pairs, short_path
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.result import say_verified, status_pairs
from gramline.pipeline.cli.workplaces import here_unless_asked, workplace
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
    gram_status = StoredGram.open(store).status()
    if as_json:
        say_json(gram_status.to_dict())
        return
    say_pairs(
        {"store": short_path(gram_status.path), **status_pairs(gram_status), "fingerprint": gram_status.fingerprint}
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
def verify(store: str, repair: bool, given: OptionValues, as_json: bool) -> None:
    """Read every tile of the store GRAM and compute a few of its values anew; exit code 1 if a tile is bad.

    \b
    Example:
      gramline gram verify train.gram.zarr --repair
    """
    StoredGram.open(store)
    job = load_job(None, given)
    with show_progress(not as_json) as listener, workplace(job, listener) as place, place.open() as executor:
        report = verify_gram(store, executor=executor, repair=repair, progress=listener)
    if as_json:
        say_json(report.to_dict() | {"path": store})
    else:
        say_verified(store, report)
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
@cluster_options
@json_option
def export(store: str, target: str, overwrite: bool, given: OptionValues, as_json: bool) -> None:
    """Write the full matrix of the store GRAM, mirrored and without padding, to TARGET: a .npy file or a .zarr array.

    In this process, unless --workers, --cluster or --scheduler asks for Dask, whose workers must see both.

    \b
    Example:
      gramline gram export train.gram.zarr train.npy
    """
    gram_status = StoredGram.open(store).status()
    gram_status.require_complete()
    check_target(store, target, overwrite=overwrite)
    job = here_unless_asked(load_job(None, given))
    with show_progress(not as_json) as listener, workplace(job, listener) as place, place.open() as executor:
        export_gram(store, target, overwrite=overwrite, executor=executor)
    if as_json:
        say_json({"store": store, "target": target, "shape": list(gram_status.shape), "dtype": gram_status.dtype})
    else:
        say(f"{gram_status.shape[0]:,} x {gram_status.shape[1]:,} {gram_status.dtype} matrix written to {target}")
