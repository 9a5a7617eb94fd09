"""Saved experiments as pages: one of HTML, one of Markdown, or single tables between two marks of another page.

A mark is a line `<!-- results: NAME NUMBER -->`; what stands between it and `<!-- end -->` belongs to the command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import TextWrapper

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import ResultTable
from gramline.pipeline.experiments.record import ExperimentRecord
from gramline.pipeline.files import write_whole
from gramline.pipeline.reporting.page import render

MARKED = re.compile(r"(<!-- results: ([a-z-]+) (\d+) -->\n).*?(<!-- end -->)", re.DOTALL)
WIDTH = 120
TITLE = "The papers' experiments, paper and measured side by side"
SUBTITLE = "Every number is computed in the run; differences of protocol stand below each table."


def write_experiment_report(records: Sequence[ExperimentRecord], target: Path) -> None:
    """One self-contained page of all of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, experiment_page(records))


def experiment_page(records: Sequence[ExperimentRecord]) -> str:
    """The whole page; opens from a file, loads nothing."""
    sections = {record.name: record.name for record in records}
    return render("experiments.html", title=TITLE, subtitle=SUBTITLE, sections=sections, records=records)


def update_page(path: Path, records: Sequence[ExperimentRecord], pictures: str) -> None:
    """Replace the marked tables of a page; a page without marks is written anew."""
    before = path.read_text("utf-8") if path.is_file() else ""
    path.write_text(page_text(before, records, pictures), "utf-8")


def page_text(before: str, records: Sequence[ExperimentRecord], pictures: str) -> str:
    """What `update_page` makes of a page; `pictures` is the folder of the saved runs as seen from there."""
    if not MARKED.search(before):
        return render("results.md", records=records, folder=pictures, markdown=markdown)
    by_name = {record.name: record for record in records}

    def replaced(match: re.Match[str]) -> str:
        begin, name, number, end = match.groups()
        if name not in by_name:
            return match.group()
        tables = by_name[name].published
        if int(number) not in tables:
            raise InputError(f"the page asks for table {number} of {name}, which has {len(tables)}")
        table = tables[int(number)]
        drawn = f"![{table.title}]({pictures}/{name}-{number}.svg)\n\n" if table.picture is not None else ""
        return f"{begin}\n**{table.title}**\n\n{drawn}{markdown(table)}\n{by_name[name].published_line}\n\n{end}"

    return MARKED.sub(replaced, before)


def markdown(table: ResultTable) -> str:
    """The table with its notes; columns of numbers to the right."""
    texts = table.text_columns()
    lines = [
        "| " + " | ".join(_escaped(column) for column in table.columns) + " |",
        "|" + "|".join("---" if k in texts else "---:" for k in range(len(table.columns))) + "|",
    ]
    lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table.texts()]
    if table.notes:
        wrapper = TextWrapper(WIDTH, "* ", "  ", break_long_words=False, break_on_hyphens=False)
        lines += ["", *map(wrapper.fill, table.notes)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
