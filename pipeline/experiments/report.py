"""Experiments as one HTML page: every table and picture, what was skipped and why, how to run it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gramline.pipeline.experiments.base import ResultTable, shown
from gramline.pipeline.experiments.record import Record
from gramline.pipeline.files import write_whole
from gramline.pipeline.reporting.markup import Markup, element, figure, joined, section, table
from gramline.pipeline.reporting.style import STYLE

TITLE = "The papers' experiments, paper and measured side by side"
SUBTITLE = "Every number is computed in the run; differences of protocol stand below each table."


def write_experiment_report(records: Sequence[Record], target: Path) -> None:
    """One self-contained page of all of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, experiment_page(records))


def experiment_page(records: Sequence[Record]) -> str:
    """The whole page; opens from a file, loads nothing."""
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            element("title", TITLE),
            Markup(f"<style>{STYLE}</style>"),
        ]
    )
    body = element(
        "body",
        element("h1", TITLE),
        element(
            "p", "Every number is computed in the run; differences of protocol stand below each table.", class_="soft"
        ),
        element("nav", *(element("a", record.name, href=f"#{record.name}") for record in records)),
        *(section(record.name, record.title, _content(record)) for record in records),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}{body}</html>\n'


def _content(record: Record) -> Markup:
    parts = [element("pre", record.command)]
    if record.skipped is not None:
        parts.append(element("p", record.skipped))
    parts += [_table(one) for one in record.tables]
    if record.tables:
        machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
        parts.append(element("p", f"Took {record.seconds:,.1f} s; {machine}.", class_="soft"))
    return joined(parts)


def _table(result: ResultTable) -> Markup:
    parts = [element("h3", result.title), table(result.columns, [[shown(cell) for cell in row] for row in result.rows])]
    if result.picture is not None:
        parts.append(figure(Markup(result.picture), result.title))
    parts.append(element("ul", *(element("li", note) for note in result.notes), class_="soft"))
    return joined(parts)
