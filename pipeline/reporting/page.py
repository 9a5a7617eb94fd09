"""What a report shows, put into words, numbers and drawings: how good, compared with what; where wrong; what next.

Pages come from the templates beside this module; what comes from data is escaped, nothing outside the page is loaded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from gramline.pipeline.reporting import sections
from gramline.pipeline.reporting.content import Report
from gramline.pipeline.reporting.heatmap import heatmap
from gramline.pipeline.reporting.markup import soft_breaks, with_code

SECTIONS = {  # headings in the order a reader asks for them
    "good": "How good, compared with what",
    "wrong": "Where it is wrong",
    "next": "What next",
    "settings": "All settings",
    "nested": "Nested selection",
    "curves": "Learning curves",
    "calibration": "Calibration",
    "gram": "Gram matrix",
    "tiles": "Tiles",
    "repeat": "To repeat this",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gramline.pipeline.reporting"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"soft_breaks": soft_breaks, "with_code": with_code}
    return environment


def render(template: str, **content: Any) -> str:
    """A whole page; every page of HTML has a `title`, a `subtitle` and `sections`, headings by the names of links."""
    return _environment().get_template(template).render(**content)


def page(report: Report) -> str:
    """The whole page; opens from a file, loads nothing."""
    content = {
        "good": sections.comparison(report),
        "wrong": sections.errors(report),
        "next": report.advice or report.commands,
        "settings": sections.settings(report) if len(report.settings) > 1 or report.failed else None,
        "nested": sections.nested(report),
        "curves": sections.learning_curves(report),
        "calibration": sections.calibration_table(report),
        "gram": None if report.gram is None else heatmap(report.gram),
        "tiles": sections.tiles(report),
        "repeat": True,
    }
    return render(
        "report.html",
        title=report.title,
        subtitle=report.subtitle,
        sections={name: heading for name, heading in SECTIONS.items() if content[name]},
        report=report,
        best=report.settings[report.best].name,
        **content,
    )
