"""HTML and SVG as text: everything that comes from data is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """A value as markup: escaped, unless it is markup already."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """<tag ...>children</tag>; `class_` is the class, an underscore in a name is a dash, None leaves it out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{''.join(text(child) for child in children)}</{tag}>")


def joined(parts: Iterable[Any]) -> Markup:
    return Markup("".join(text(part) for part in parts))


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]], *, marked: int | None = None, kind: str = "") -> Markup:
    """A table in a box that scrolls sideways on a narrow screen; row `marked` stands out."""
    head = element("thead", element("tr", *(element("th", cell, scope="col") for cell in header)))
    body = element(
        "tbody",
        *(
            element("tr", *(element("td", cell) for cell in row), class_="best" if number == marked else None)
            for number, row in enumerate(rows)
        ),
    )
    return element("div", element("table", head, body, class_=kind or None), class_="wide")


def section(name: str, title: str, *children: Any) -> Markup:
    return element("section", element("h2", title), *children, id=name)


def figure(picture: Any, caption: Any) -> Markup:
    return element("figure", picture, element("figcaption", caption))
