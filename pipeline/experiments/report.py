"""Experiments as one HTML page: every table and picture, what was skipped and why, how to run it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gramline.pipeline.experiments.record import ExperimentRecord
from gramline.pipeline.files import write_whole
from gramline.pipeline.reporting.templates import render

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
