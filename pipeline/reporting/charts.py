"""Drawings as SVG: curves, bars, spreads and calibration. Plain geometry; what comes from data is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from markupsafe import Markup, escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 40
COLOURS = ("#1660a8", "#c4560c", "#2d7d46", "#7a3fa0", "#a3195b", "#5f6b00", "#00757a", "#8a5a2b")
GRID, INK = "#d8dfe6", "#5b6b7d"

Point = tuple[float, float]


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """<tag ...>children</tag>; `class_` is the class, an underscore in a name is a dash, None leaves it out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{''.join(map(escape, children))}</{tag}>")


class Plane:
    """Data coordinates to places in the picture, with axes."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], *, width: int = WIDTH, height: int = HEIGHT):
        self._x, self._y = _apart(x), _apart(y)
        self.width, self.height = width, height

    def place(self, x: float, y: float) -> Point:
        low_x, high_x = self._x
        low_y, high_y = self._y
        across = (x - low_x) / (high_x - low_x) * (self.width - LEFT - RIGHT)
        up = (y - low_y) / (high_y - low_y) * (self.height - TOP - BOTTOM)
        return LEFT + across, self.height - BOTTOM - up

    def axes(self, x_title: str, y_title: str, *, whole_x: bool = False, whole_y: bool = False) -> Markup:
        """Grid lines, tick marks and titles; on a whole axis only whole numbers have ticks."""
        parts = []
        for value in ticks(*self._y, is_whole=whole_y):
            _, y = self.place(self._x[0], value)
            parts.append(_line((LEFT, y), (self.width - RIGHT, y), GRID))
            parts.append(element("text", number(value), x=LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
        for value in ticks(*self._x, is_whole=whole_x):
            x, _ = self.place(value, self._y[0])
            bottom = self.height - BOTTOM
            parts.append(_line((x, bottom), (x, bottom + 4), INK))
            parts.append(element("text", number(value), x=f"{x:.1f}", y=bottom + 17, text_anchor="middle"))
        parts.append(_line((LEFT, self.height - BOTTOM), (self.width - RIGHT, self.height - BOTTOM), INK))
        middle = (LEFT + self.width - RIGHT) / 2
        parts.append(element("text", x_title, x=middle, y=self.height - 6, text_anchor="middle"))
        turned = f"translate(13 {(TOP + self.height - BOTTOM) / 2}) rotate(-90)"
        parts.append(element("text", y_title, transform=turned, text_anchor="middle"))
        return Markup().join(parts)

    def drawing(self, title: str, *parts: Markup) -> Markup:
        return picture(self.width, self.height, title, *parts)


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


def curves(lines: Mapping[str, Sequence[float]], *, x_title: str, y_title: str, marked: str | None = None) -> Markup:
    """One line per name over 1, 2, ...; the marked one is drawn thick and last. With its legend."""
    drawn = {name: [value for value in values if isfinite(value)] for name, values in lines.items()}
    drawn = {name: values for name, values in drawn.items() if values}
    longest = max(map(len, drawn.values()))
    lowest = min(0.0, *(min(values) for values in drawn.values()))
    highest = max(max(values) for values in drawn.values())
    plane = Plane((1, max(2, longest)), (lowest, highest))
    colour = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(drawn)}
    parts = [plane.axes(x_title, y_title, whole_x=True)]
    for name in sorted(drawn, key=lambda name: name == marked):
        thick = 3.0 if name == marked else 1.5
        points = [plane.place(step, value) for step, value in enumerate(drawn[name], start=1)]
        parts.append(_polyline(points, colour[name], thick))
        parts.extend(_dot(point, thick, colour[name]) for point in points)
    legend = element(
        "div",
        *(
            element("span", element("span", class_="swatch", style=f"background:{colour[name]}"), name)
            for name in drawn
        ),
        class_="legend",
    )
    return plane.drawing(f"{y_title} over {x_title}", *parts) + legend


def named_lines(lines: Mapping[str, Sequence[Point]], plane: Plane, axes: Markup, title: str) -> Markup:
    """One line per name, which is written beside its last point; the picture needs no page around it."""
    parts, heights = [axes], list[float]()
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [plane.place(*point) for point in line]
        parts.append(_polyline(points, colour, 1.5))
        parts.extend(_dot(point, 2.5, colour) for point in points)
        x, y = points[-1]
        while any(abs(y - other) < 13 for other in heights):  # names never lie over each other
            y += 1
        heights.append(y)
        parts.append(element("text", name, x=f"{x + 8:.1f}", y=f"{y + 4:.1f}", fill=colour))
    return plane.drawing(title, *parts)


def histogram(values: Sequence[float], *, x_title: str, y_title: str, bins: int = 24) -> Markup:
    """How often values fall into equal intervals."""
    low, high = _apart((min(values), max(values)))
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, floor((value - low) / (high - low) * bins))] += 1
    plane = Plane((low, high), (0, max(counts)), height=220)
    parts = [plane.axes(x_title, y_title, whole_y=True)]
    for k, count in enumerate(counts):
        left, top = plane.place(low + k * (high - low) / bins, count)
        right, bottom = plane.place(low + (k + 1) * (high - low) / bins, 0)
        parts.append(
            element(
                "rect",
                x=f"{left + 0.5:.1f}",
                y=f"{top:.1f}",
                width=f"{max(0.5, right - left - 1):.1f}",
                height=f"{bottom - top:.1f}",
                fill=COLOURS[0],
            )
        )
    return plane.drawing(f"{y_title} by {x_title}", *parts)


def spread(values: Sequence[float], low: float, high: float) -> Markup:
    """The values of the folds on a small common scale, their mean as a bar."""
    width, height = 130, 22
    low, high = _apart((low, high))

    def across(value: float) -> float:
        return 6 + (value - low) / (high - low) * (width - 12)

    mean = sum(values) / len(values)
    parts = [_line((6, height / 2), (width - 6, height / 2), GRID)]
    parts.append(_line((across(mean), 3), (across(mean), height - 3), "#1d2733", 2))
    parts.extend(_dot((across(value), height / 2), 3.2, COLOURS[0], opacity=0.55) for value in values)
    return picture(width, height, f"folds: {', '.join(f'{value:.4f}' for value in values)}", *parts)


def calibration(bins: Sequence[tuple[float, float, int]]) -> Markup:
    """(mean confidence, share that was right, count) per bin against the diagonal; circles grow with the count."""
    plane = Plane((0, 1), (0, 1), width=420, height=380)
    parts = [plane.axes("confidence", "share that was right")]
    start, end = plane.place(0, 0), plane.place(1, 1)
    parts.append(_line(start, end, INK, 1, dashes="5 4"))
    largest = max(count for _, _, count in bins)
    points = [plane.place(confidence, right) for confidence, right, _ in bins]
    parts.append(_polyline(points, COLOURS[0], 2))
    for point, (_, _, count) in zip(points, bins, strict=True):
        parts.append(_dot(point, 3 + 9 * (count / largest) ** 0.5, COLOURS[0], opacity=0.6))
    return plane.drawing("calibration: confidence against the share that was right", *parts)


def ticks(low: float, high: float, about: int = 5, *, is_whole: bool = False) -> list[float]:
    """Round numbers between low and high, only whole ones when asked for."""
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = -floor(-low / step)
    values = [round(k * step, 12) for k in range(first, floor(high / step + 1e-9) + 1)]
    return [value for value in values if not is_whole or value == round(value)]


def number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.3g}"


def _apart(interval: tuple[float, float]) -> tuple[float, float]:
    """The same interval, or a wider one when it is a single point."""
    low, high = interval
    if high > low:
        return low, high
    reach = abs(low) * 0.05 or 0.5
    return low - reach, high + reach


def _polyline(points: Sequence[Point], colour: str, width: float) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=path, fill="none", stroke=colour, stroke_width=width)


def _dot(center: Point, radius: float, colour: str, opacity: float | None = None) -> Markup:
    x, y = center
    return element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", fill=colour, fill_opacity=opacity)


def _line(start: Point, end: Point, colour: str, width: float = 1, dashes: str | None = None) -> Markup:
    return element(
        "line",
        x1=f"{start[0]:.1f}",
        y1=f"{start[1]:.1f}",
        x2=f"{end[0]:.1f}",
        y2=f"{end[1]:.1f}",
        stroke=colour,
        stroke_width=width,
        stroke_dasharray=dashes,
    )
