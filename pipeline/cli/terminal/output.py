"""What commands say: one JSON object on stdout with --json, otherwise a few lines or a table within 80 columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import TextWrapper
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 80


class Folded(TextWrapper):
    """Breaks lines between words and, in long paths, after a slash."""

    wordsep_simple_re = re.compile(r"(\s+|(?<=[^/]/)(?=[^/]))")


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
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as drawn:
        console.print(table)
    say("\n".join(line.replace("\u00a0", " ").rstrip() for line in drawn.get().rstrip("\n").split("\n")))


def say_pairs(pairs: Mapping[str, str]) -> None:
    """Names and values, one pair a line, values aligned."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        say_folded(f"{name:<{width}}  ", value)


def say_folded(head: str, text: str) -> None:
    """A line that goes on below `text` where it would pass 80 columns: a long path is broken, --json has it whole."""
    click.echo(folded(text, head, " " * len(head)))


def short_path(path: str) -> str:
    """The path as seen from the current folder, if it is inside of that."""
    return path.removeprefix(f"{Path.cwd()}/")


def folded(text: str, head: str = "", margin: str = "  ") -> str:
    """A line within 80 columns that begins with `head`; what is left goes on below, behind a margin."""
    wrapper = Folded(WIDTH, initial_indent=head, subsequent_indent=margin, break_on_hyphens=False)
    return "\n".join(wrapper.wrap(text)) or head.rstrip()


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
