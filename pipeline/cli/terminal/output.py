"""What commands say: one JSON object on stdout with --json, otherwise a few lines or a table within 80 columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 80


def json_option(command: F) -> F:
    """Adds `--json`, passed as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write the result to stdout as JSON, nothing else.")(
        command
    )


def say_json(result: Mapping[str, Any]) -> None:
    click.echo(json.dumps(result, indent=2, ensure_ascii=False))


def say(line: str = "") -> None:
    click.echo(line)


def say_notes(notes: Iterable[str]) -> None:
    """What a user should know, on stderr: results stay clean."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def say_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    *,
    n_left: int = 1,
    width: int = WIDTH,
) -> None:
    """A table: the first `n_left` columns to the left, numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number < n_left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def say_pairs(pairs: Mapping[str, str]) -> None:
    """Names and values, one pair a line, values aligned."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        click.echo(f"{name:<{width}}  {value}")


def size(count: float) -> str:
    """Bytes for people: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Seconds for people: 0.4 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, noun: str) -> str:
    """1 tile, 2 tiles, 12,345 tiles."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
