"""The pages of this repository are what the commands made of the saved runs, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.experiments.catalogue import EXPERIMENTS
from gramline.pipeline.experiments.record import load_records
from gramline.pipeline.experiments.results_page import MARKED, page_text

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "results"
RECORDS = load_records(FOLDER, list(EXPERIMENTS))


def test_every_saved_run_is_of_an_experiment_and_in_full() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {record.name for record in RECORDS}
    assert len(RECORDS) >= 3
    for record in RECORDS:
        assert record.tables
        assert "--quick" not in record.command


@pytest.mark.parametrize(("page", "folder"), [("docs/results.md", "results"), ("README.md", "docs/results")])
def test_pages_are_what_the_runs_say(page: str, folder: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert page_text(text, RECORDS, folder) == text


def test_the_readme_shows_the_scale_run() -> None:
    marked = [match.group(2) for match in MARKED.finditer((ROOT / "README.md").read_text("utf-8"))]
    assert marked == ["scale"]


def test_no_picture_is_left_over() -> None:
    drawn = {f"{record.name}-{k}.svg" for record in RECORDS for k, one in enumerate(record.tables, 1) if one.picture}
    assert drawn == {path.name for path in FOLDER.glob("*.svg")}
