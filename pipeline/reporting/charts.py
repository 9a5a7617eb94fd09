"""Drawings as SVG: curves, bars, spreads and calibration. Plain geometry; what comes from data is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, isfinite, log10
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike

LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 40
COLOURS = ("#1660a8", "#c4560c", "#2d7d46", "#7a3fa0", "#a3195b", "#5f6b00", "#00757a", "#8a5a2b")
GRID, INK, DARK = "#d8dfe6", "#5b6b7d", "#1d2733"

Point = tuple[float, float]


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """<tag ...>children</tag>; `class_` is the class, an underscore in a name is a dash, None leaves it out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(f"{value:.4g}" if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{''.join(map(escape, children))}</{tag}>")


def picture(width: float, height: float, title: str, *parts: Markup) -> Markup:
    """An SVG that says in words what it shows."""
    return element(
        "svg",
        element("title", title),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        fill=INK,
        font_family="system-ui, DejaVu Sans, sans-serif",
        font_size=12,
    )


@dataclass(frozen=True)
class Axis:
    """An interval of values with its title; only whole numbers get ticks when it is whole."""

    title: str
    lowest: float
    highest: float
    is_whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or a wider one when it is a single point."""
        if self.highest > self.lowest:
            return self.lowest, self.highest
        reach = abs(self.lowest) * 0.05 or 0.5
        return self.lowest - reach, self.highest + reach

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the lower end, 1 at the upper one."""
        low, high = self.ends
        return (value - low) / (high - low)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers between the ends."""
        low, high = self.ends
        raw = (high - low) / about
        power = 10.0 ** floor(log10(raw))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
        values = [round(k * step, 12) for k in range(-floor(-low / step), floor(high / step + 1e-9) + 1)]
        return [value for value in values if not self.is_whole or value == round(value)]


@dataclass(frozen=True)
class Plane:
    """Two axes, and the places of their values in a picture."""

    across: Axis
    up: Axis
    width: int = 640
    height: int = 300

    def place(self, x: float, y: float) -> Point:
        return (
            LEFT + self.across.share(x) * (self.width - LEFT - RIGHT),
            self.height - BOTTOM - self.up.share(y) * (self.height - TOP - BOTTOM),
        )

    def drawing(self, title: str, *parts: Markup) -> Markup:
        """The picture: grid lines, tick marks and titles of the axes, then the parts."""
        right, bottom = self.width - RIGHT, self.height - BOTTOM
        axes = []
        for value in self.up.ticks():
            _, y = self.place(self.across.ends[0], value)
            axes += [line((LEFT, y), (right, y), GRID), text(_number(value), LEFT - 6, y + 4, "end")]
        for value in self.across.ticks():
            x, _ = self.place(value, self.up.ends[0])
            axes += [line((x, bottom), (x, bottom + 4), INK), text(_number(value), x, bottom + 17, "middle")]
        axes.append(line((LEFT, bottom), (right, bottom), INK))
        axes.append(text(self.across.title, (LEFT + right) / 2, self.height - 6, "middle"))
        turned = f"translate(13 {(TOP + bottom) / 2}) rotate(-90)"
        axes.append(element("text", self.up.title, transform=turned, text_anchor="middle"))
        return picture(self.width, self.height, title, *axes, *parts)


def curves(
    lines: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    y_title: str,
    marked: str | None = None,
    level: tuple[str, float] | None = None,
) -> Markup:
    """One line per name over 1, 2, ...; the marked one is drawn thick and last. With its legend.

    `level` is a name and a value, drawn as a dashed line across.
    """
    finite = {name: [value for value in values if isfinite(value)] for name, values in lines.items()}
    drawn = {name: values for name, values in finite.items() if values}
    every = [value for values in drawn.values() for value in values] + ([] if level is None else [level[1]])
    longest = max(map(len, drawn.values()))
    plane = Plane(Axis(x_title, 1, max(2, longest), is_whole=True), Axis(y_title, min(0.0, *every), max(every)))
    colour = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(drawn)}
    parts = []
    if level is not None:
        ends = plane.place(plane.across.ends[0], level[1]), plane.place(plane.across.ends[1], level[1])
        parts.append(line(*ends, DARK, 1.5, dashes="6 4"))
    for name in sorted(drawn, key=lambda name: name == marked):
        thick = 3.0 if name == marked else 1.5
        points = [plane.place(step, value) for step, value in enumerate(drawn[name], start=1)]
        parts += [_polyline(points, colour[name], thick), *(_dot(point, thick, colour[name]) for point in points)]
    names = [element("span", _swatch(colour[name]), name) for name in drawn]
    if level is not None:
        names.append(element("span", _swatch(DARK, dashes="6 4"), level[0]))
    return plane.drawing(f"{y_title} over {x_title}", *parts) + element("div", *names, class_="legend")


def _swatch(colour: str, dashes: str | None = None) -> Markup:
    """A short line in a legend, as it is drawn in the picture."""
    stroke = line((1, 6), (21, 6), colour, 3 if dashes is None else 1.5, dashes)
    return element("svg", stroke, class_="swatch", viewBox="0 0 22 12", width=22, height=12, aria_hidden="true")


def named_lines(lines: Mapping[str, Sequence[Point]], plane: Plane, title: str) -> Markup:
    """One line per name, which is written beside its last point; the picture needs no page around it."""
    parts, heights = [], list[float]()
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [plane.place(*point) for point in line]
        parts += [_polyline(points, colour, 1.5), *(_dot(point, 2.5, colour) for point in points)]
        x, y = points[-1]
        while any(abs(y - other) < 13 for other in heights):  # names never lie over each other
            y += 1
        heights.append(y)
        parts.append(text(name, x + 8, y + 4, colour=colour))
    return plane.drawing(title, *parts)


def histogram(values: ArrayLike, *, x_title: str, y_title: str, bins: int = 24) -> Markup:
    """How often values fall into equal intervals."""
    across = Axis(x_title, float(np.min(values)), float(np.max(values)))
    counts, edges = np.histogram(values, bins, across.ends)
    plane = Plane(across, Axis(y_title, 0, int(counts.max()), is_whole=True), height=220)
    bars = []
    for count, (first, last) in zip(counts.tolist(), pairwise(edges.tolist()), strict=True):
        (left, top), (right, bottom) = plane.place(first, count), plane.place(last, 0)
        size = {"width": max(0.5, right - left - 1), "height": bottom - top}
        bars.append(element("rect", x=left + 0.5, y=top, **size, fill=COLOURS[0]))
    return plane.drawing(f"{y_title} by {x_title}", *bars)


def spread(values: Sequence[float], low: float, high: float) -> Markup:
    """The values of the folds on a small common scale, their mean as a bar."""
    width, height = 130, 22
    axis = Axis("", low, high)
    mean, *places = (6 + axis.share(value) * (width - 12) for value in (sum(values) / len(values), *values))
    parts = [line((6, height / 2), (width - 6, height / 2), GRID), line((mean, 3), (mean, height - 3), DARK, 2)]
    parts += [_dot((place, height / 2), 3.2, COLOURS[0], opacity=0.55) for place in places]
    return picture(width, height, f"folds: {', '.join(f'{value:.4f}' for value in values)}", *parts)


def calibration(bins: Sequence[tuple[float, float, int]]) -> Markup:
    """(mean confidence, share that was right, count) per bin against the diagonal; circles grow with the count."""
    plane = Plane(Axis("confidence", 0, 1), Axis("share that was right", 0, 1), width=420, height=380)
    largest = max(count for _, _, count in bins)
    points = [plane.place(confidence, right) for confidence, right, _ in bins]
    parts = [line(plane.place(0, 0), plane.place(1, 1), INK, dashes="5 4"), _polyline(points, COLOURS[0], 2)]
    for point, (_, _, count) in zip(points, bins, strict=True):
        parts.append(_dot(point, 3 + 9 * (count / largest) ** 0.5, COLOURS[0], opacity=0.6))
    return plane.drawing("calibration: confidence against the share that was right", *parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.3g}"


def text(words: str, x: float, y: float, anchor: str | None = None, colour: str | None = None) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, fill=colour)


def _polyline(points: Sequence[Point], colour: str, width: float) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=path, fill="none", stroke=colour, stroke_width=width)


def _dot(center: Point, radius: float, colour: str, opacity: float | None = None) -> Markup:
    return element("circle", cx=center[0], cy=center[1], r=radius, fill=colour, fill_opacity=opacity)


def line(start: Point, end: Point, colour: str, width: float = 1, dashes: str | None = None) -> Markup:
    ends = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    return element("line", **ends, stroke=colour, stroke_width=width, stroke_dasharray=dashes)
