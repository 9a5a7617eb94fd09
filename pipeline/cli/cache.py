"""`gramline cache ls|show|verify|rm|gc`: a folder of Gram matrices, looked at and cleared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramline.pipeline.cli.terminal.notation import in_bytes
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_json,
    say_pairs,
    say_table,
    short_path,
    size,
)
from gramline.pipeline.cli.terminal.result import say_verified, status_pairs
from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.gram.cache import Freed, GramCache

DEFAULT = "gramline-cache"
DAY = 86_400.0
cache_option = click.option(
    "--cache", "folder", metavar="FOLDER", default=DEFAULT, show_default=True, help="The cache folder."
)


@click.command()
@cache_option
@json_option
def ls(folder: str, as_json: bool) -> None:
    """List every Gram matrix with its size, its age and what made it.

    \b
    Example:
      gramline cache ls --cache gramline-cache
    """
    entries = [entry.to_dict() for entry in _open(folder).entries()]
    if as_json:
        say_json({"cache": folder, "entries": entries, "bytes": sum(entry["bytes"] for entry in entries)})
        return
    if not entries:
        say(f"{folder} holds no Gram matrix")
        return
    rows = [
        (
            entry["name"][:10],
            entry["kernel_text"] or "broken",
            _tiles(entry),
            size(entry["bytes"]),
            f"{duration(entry['unused_seconds'])} ago",
            "yes" if entry["in_use"] else "",
        )
        for entry in entries
    ]
    say_table(("name", "kernel", "tiles", "size", "last used", "in use"), rows, n_left=2)
    say(f"{count(len(entries), 'matrix').replace('matrixs', 'matrices')}, {size(sum(e['bytes'] for e in entries))}")


@click.command()
@click.argument("name")
@cache_option
@json_option
def show(name: str, folder: str, as_json: bool) -> None:
    """Show everything about the Gram matrix whose name begins with NAME.

    \b
    Example:
      gramline cache show 3241
    """
    entry = _open(folder).entry(name)
    described, status = entry.to_dict(), entry.status()
    if as_json:
        say_json(described)
        return
    broken = {"kernel": "the store is broken or was never finished"}
    made = described["made"]
    say_pairs(
        {
            "name": described["name"],
            "store": short_path(described["store"]),
            **(broken if status is None else status_pairs(status)),
            "made from": str(made.get("from", "unknown")),
            "made at": str(made.get("created", "unknown")),
            "size": size(described["bytes"]),
            "last used": f"{duration(described['unused_seconds'])} ago",
            "in use": "yes" if described["in_use"] else "no",
        }
    )


@click.command()
@click.argument("name", required=False)
@cache_option
@click.option("--repair", is_flag=True, help="Compute missing and damaged tiles again.")
@json_option
def verify(name: str | None, folder: str, repair: bool, as_json: bool) -> None:
    """Check all Gram matrices, or the one whose name begins with NAME.

    Exit code 1 if a tile is bad.

    \b
    Example:
      gramline cache verify 3241 --repair
    """
    cache = _open(folder)
    results: list[dict[str, Any]] = []
    for entry in [cache.entry(name)] if name else cache.entries():
        report = entry.verify(repair=repair)
        if report is not None:
            results.append({"name": entry.name} | report.to_dict())
        else:
            results.append({"name": entry.name, "is_good": False, "bad": ["the store cannot be opened"]})
        if not as_json:
            say_verified(entry.name[:10], report)
    bad = [result for result in results if not result["is_good"]]
    if as_json:
        say_json({"cache": folder, "entries": results})
    if bad:
        raise RunError(
            f"{bad[0]['name']} in {folder} is damaged ({len(bad)} of {len(results)} are)",
            advice="give --repair, or remove it with `gramline cache rm NAME`",
        )


@click.command()
@click.argument("name")
@cache_option
@json_option
def rm(name: str, folder: str, as_json: bool) -> None:
    """Delete the Gram matrix whose name begins with NAME, unless a job is using it.

    \b
    Example:
      gramline cache rm 3241
    """
    freed = _open(folder).remove(name)
    if freed.in_use:
        raise RunError(f"{freed.in_use[0]} in {folder} is in use", advice="wait for the job that uses it, or stop it")
    _say_freed(freed, as_json)


@click.command()
@cache_option
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="What nobody used for so many days.")
@click.option(
    *("--keep", "--keep-under", "keep"),
    callback=in_bytes,
    metavar="BYTES",
    help="Least recently used ones, until no more than this is left (500GB).",
)
@click.option("--incomplete", is_flag=True, help="Unfinished and broken ones.")
@click.option("--all", "everything", is_flag=True, help="Everything that is not in use.")
@click.option("--dry-run", is_flag=True, help="Only say what would be freed.")
@json_option
def gc(
    folder: str,
    older_than: float | None,
    keep: int | None,
    incomplete: bool,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete Gram matrices; one that a job is using is never touched.

    \b
    Example:
      gramline cache gc --older-than 30 --dry-run
      gramline cache gc --keep-under 500GB
    """
    if older_than is None and keep is None and not incomplete and not everything:
        raise InputError("say what may go: --older-than DAYS, --keep BYTES, --incomplete or --all")
    freed = _open(folder).collect(
        older_than=None if older_than is None else older_than * DAY,
        keep_bytes=keep,
        everything=everything,
        incomplete=incomplete,
        dry_run=dry_run,
    )
    _say_freed(freed, as_json, dry_run)


def _say_freed(freed: Freed, as_json: bool, dry_run: bool = False) -> None:
    if as_json:
        removed = [{"name": name, "bytes": n_bytes} for name, n_bytes in freed.removed]
        say_json({"removed": removed, "in_use": list(freed.in_use), "bytes": freed.bytes, "dry_run": dry_run})
        return
    for name, n_bytes in freed.removed:
        say(f"{'would delete' if dry_run else 'deleted'} {name} ({size(n_bytes)})")
    for name in freed.in_use:
        say(f"kept {name}: it is in use")
    say(f"{size(freed.bytes)} {'would be freed' if dry_run else 'freed'}")


def _open(folder: str) -> GramCache:
    if not Path(folder).is_dir():
        raise InputError(f"there is no cache folder {folder}; name it with --cache")
    return GramCache(folder)


def _tiles(entry: dict[str, Any]) -> str:
    return "-" if entry["tiles"] is None else f"{entry['present']:,} of {entry['tiles']:,}"
