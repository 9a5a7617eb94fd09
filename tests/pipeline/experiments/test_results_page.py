"""Pages of saved runs; those of this repository are what the commands made of the runs, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import ResultTable
from gramline.pipeline.experiments.catalogue import EXPERIMENTS
from gramline.pipeline.experiments.record import ExperimentRecord, load_records
from gramline.pipeline.experiments.results_page import (
    MARKED,
    experiment_page,
    markdown,
    page_text,
    update_page,
    write_experiment_report,
)

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "results"
RECORDS = load_records(FOLDER, list(EXPERIMENTS))
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><title>p</title></svg>'
TABLE = ResultTable("T & U", ("name", "value"), (("a|b", 1.5), ("c", None)), ("a note",), PICTURE)
RECORD = ExperimentRecord("one", "The first", "gramline reproduce one", 1.26, {"cores": "2"}, (TABLE,))


def test_every_saved_run_is_of_an_experiment_and_in_full() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {record.name for record in RECORDS}
    assert len(RECORDS) >= 3
    for record in RECORDS:
        assert record.tables
        assert "--quick" not in record.command


@pytest.mark.parametrize(("page", "folder"), [("docs/results.md", "results"), ("docs/scale.md", "results")])
def test_pages_are_what_the_runs_say(page: str, folder: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert page_text(text, RECORDS, folder) == text


def test_the_page_on_scale_shows_both_scale_runs() -> None:
    marked = [match.group(2) for match in MARKED.finditer((ROOT / "docs" / "scale.md").read_text("utf-8"))]
    assert marked == ["scale-computed"] * 3 + ["scale"]


def test_no_picture_is_left_over() -> None:
    drawn = {f"{record.name}-{k}.svg" for record in RECORDS for k, one in enumerate(record.tables, 1) if one.picture}
    assert drawn == {path.name for path in FOLDER.glob("*.svg")}


def test_a_table_in_markdown() -> None:
    assert markdown(TABLE) == "| name | value |\n|---|---:|\n| a\\|b | 1.500 |\n| c |  |\n\n* a note\n"
    long = markdown(replace(TABLE, notes=("word " * 60,)))
    assert max(map(len, long.splitlines())) <= 120


def test_the_page_is_written_whole_or_between_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    update_page(page, [RECORD, replace(RECORD, name="two", tables=(), skipped="Skipped: put x into y.")], "results")
    text = page.read_text("utf-8")
    assert "![T & U](results/one-1.svg)" in text
    assert "Skipped: put x into y." in text
    marked = "before\n<!-- results: one 1 -->\nold\n<!-- end -->\nafter\n<!-- results: no 1 -->\nkept\n<!-- end -->\n"
    filled = page_text(marked, [RECORD], "results")
    drawn = "![T & U](results/one-1.svg)"
    shown = f"\n**T & U**\n\n{drawn}\n\n{markdown(TABLE)}\n{RECORD.published_line}\n\n"
    assert filled == marked.replace("old\n", shown)
    assert page_text(filled, [RECORD], "results") == filled
    with pytest.raises(InputError, match="asks for table 2 of one, which has 1"):
        page_text(marked.replace("one 1", "one 2"), [RECORD], "results")


class Balance(HTMLParser):
    """Open elements, and every address that a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loaded += [value or "" for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    skipped = replace(RECORD, name="two", tables=(), skipped="Skipped: put <x> into y.")
    write_experiment_report([RECORD, skipped], tmp_path / "new" / "report.html")
    text = (tmp_path / "new" / "report.html").read_text("utf-8")
    assert text == experiment_page([RECORD, skipped])
    reader = Balance()
    reader.feed(text)
    assert reader.open == []
    assert reader.loaded == ["#one", "#two"]
    assert "T &amp; U" in text
    assert "put &lt;x&gt; into y" in text
    assert PICTURE in text
