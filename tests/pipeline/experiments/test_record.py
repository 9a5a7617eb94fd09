"""Saved runs, the pages made of them, and the page of this repository."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import ResultTable, Run, cell_text
from gramline.pipeline.experiments.record import ExperimentRecord, command_line, load_record, load_records, save_record
from gramline.pipeline.experiments.results_page import (
    experiment_page,
    markdown,
    page_text,
    update_page,
    write_experiment_report,
)

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><title>p</title></svg>'
TABLE = ResultTable("T & U", ("name", "value"), (("a|b", 1.5), ("c", None)), ("a note",), PICTURE)
RECORD = ExperimentRecord("one", "The first", "gramline reproduce one", 1.26, {"cores": "2"}, (TABLE,))


def test_a_run_is_saved_and_read_again(tmp_path: Path) -> None:
    written = save_record(RECORD, tmp_path / "out")
    assert [path.name for path in written] == ["one-1.parquet", "one-1.svg", "one.json"]
    assert pq.read_table(written[0]).to_pylist() == [{"name": "a|b", "value": 1.5}, {"name": "c", "value": None}]
    assert load_record(tmp_path / "out", "one") == replace(RECORD, seconds=1.3)
    assert load_records(tmp_path / "out", ["none", "one"]) == [replace(RECORD, seconds=1.3)]
    save_record(replace(RECORD, tables=(replace(TABLE, picture=None),)), tmp_path / "out")
    assert not written[1].exists()


def test_a_number_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    path = save_record(RECORD, tmp_path)[-1]
    content = json.loads(path.read_text("utf-8"))
    content["tables"][0]["rows"][0][1] = 2.5
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match=r"one\.json was changed after it was written"):
        load_record(tmp_path, "one")
    save_record(RECORD, tmp_path)[1].write_text("<svg></svg>", "utf-8")
    with pytest.raises(InputError, match=r"one-1\.svg is not the picture that was written"):
        load_record(tmp_path, "one")


def test_columns_of_one_name_and_of_mixed_types_are_kept(tmp_path: Path) -> None:
    table = ResultTable("T", ("x", "dev.", "dev."), ((1, 2.0, "many"), ("no", 3.0, 4)))
    path = save_record(replace(RECORD, tables=(table,)), tmp_path)[0]
    read = pq.read_table(path)
    assert read.column_names == ["x", "dev.", "dev. 2"]
    assert read.column(0).to_pylist() == ["1", "no"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        ("word", "word"),
        (12345, "12,345"),
        (0.12345, "0.1235"),
        (-1.23456, "-1.235"),
        (88.4, "88.40"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
        (0.00001234, "1e-05"),
        (0.0, "0.0000"),
    ],
)
def test_cells_have_four_digits(cell: float | str | None, text: str) -> None:
    assert cell_text(cell) == text


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
    assert filled == marked.replace("old\n", f"\n**T & U**\n\n{markdown(TABLE)}\n")
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


def test_the_command_that_repeats_a_run() -> None:
    assert command_line("x", Run(Path("data"), seed=3)) == "gramline reproduce x --data data --seed 3"
    assert command_line("x", Run(Path(), quick=True)) == "gramline reproduce x --quick"
