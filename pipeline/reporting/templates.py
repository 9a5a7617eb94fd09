"""Templates of the pages: everything that comes from data is escaped, nothing outside of the package is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("gramline.pipeline.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, *, title: str, subtitle: str, sections: Mapping[str, str], **content: Any) -> str:
    """A whole page; `sections` are the headings by the names that the links at the top lead to."""
    environment = _environment()
    style = environment.loader.get_source(environment, "style.css")[0] if environment.loader else ""
    page = environment.get_template(template)
    return page.render(title=title, subtitle=subtitle, sections=sections, style=Markup(style), **content)
