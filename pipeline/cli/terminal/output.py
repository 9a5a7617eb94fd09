"""What commands say: one JSON object on stdout with --json, otherwise a few lines or a table within 80 columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import TextWrapper
from typing import Any, TypeVar

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 80
UNIT = re.compile(r"(?<=\d) (?=[A-Za-z]{1,3}\b)")  # between a number and what it counts
NO_BREAK, GLUE = "\u00a0", "\ue000"  # rich breaks lines at the first; the second is in no font and no text
GAP = 3  # between two columns of a table


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
    texts: Collection[int] = (),
) -> None:
    """A table: the first `n_left` columns and those of `texts` to the left, numbers to the right.

    Cells are broken at spaces, not at no-break spaces or between a number and its unit. A table that is wider than 80
    columns goes on below, with the first `n_left` columns again.
    """
    listed = [[UNIT.sub(GLUE, cell.replace(NO_BREAK, GLUE)) for cell in row] for row in rows]
    for number, part in enumerate(_parts(header, listed, n_left)):
        table = Table(box=box.SIMPLE_HEAD, title=None if number else title, title_justify="left", pad_edge=False)
        for column, width in zip(part, _widths(part, header, listed), strict=True):
            is_left = column < n_left or column in texts
            table.add_column(header[column], justify="left" if is_left else "right", overflow="fold", width=width)
        for row in listed:
            table.add_row(*(row[column] for column in part))
        console = Console(width=WIDTH, highlight=False, markup=False, emoji=False)
        with console.capture() as drawn:
            console.print(table)
        say("\n".join(line.replace(GLUE, " ").rstrip() for line in drawn.get().rstrip("\n").split("\n")))


def _parts(header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int) -> list[list[int]]:
    """Columns that fit beside each other without breaking a word; the first ones are in every part."""
    left = list(range(min(n_left, len(header))))
    needs = [GAP + _longest(header, rows, column, " ") for column in range(len(header))]
    room = WIDTH - min(sum(needs[column] for column in left), WIDTH // 2)
    parts: list[list[int]] = [[]]
    for column in range(len(left), len(header)):
        if parts[-1] and sum(needs[k] for k in parts[-1]) + needs[column] > room:
            parts.append([])
        parts[-1].append(column)
    return [left + part for part in parts]


def _widths(part: Sequence[int], header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Every column as wide as its longest word, then the one that lacks most a letter more, as far as there is room."""
    widths = [_longest(header, rows, column, " ") for column in part]
    wanted = [_longest(header, rows, column, "\n") for column in part]
    room = WIDTH - GAP * len(part) + 1
    while sum(widths) > room:  # a word that is wider than a line must be broken
        widths[max(range(len(part)), key=lambda k: widths[k])] -= 1
    while sum(widths) < room and widths != wanted:
        widths[max(range(len(part)), key=lambda k: wanted[k] - widths[k])] += 1
    return widths


def _longest(header: Sequence[str], rows: Sequence[Sequence[str]], column: int, separator: str) -> int:
    """Letters of the longest piece of a column."""
    texts = (header[column], *(row[column] for row in rows))
    return max(1, *(cell_len(piece) for text in texts for piece in text.split(separator)))


def say_pairs(pairs: Mapping[str, str]) -> None:
    """Names and values, one pair a line, values aligned."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        say_folded(f"{name:<{width}}  ", value)


def say_folded(head: str, text: str) -> None:
    """A line that goes on below `text` where it would pass 80 columns: a long path is broken, --json has it whole."""
    click.echo(folded(text, head, " " * len(head)))


def say_next(*commands: str) -> None:
    """What to type next, at the end of a command; never broken, because people copy it."""
    for number, command in enumerate(commands):
        say(("next    " if number == 0 else "        ") + command)


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
