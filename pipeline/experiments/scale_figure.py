"""Growth from size to size, drawn on logarithmic axes: one line per measure, each 1 at the smallest size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from gramline.pipeline.reporting.charts import COLOURS, Plane, element


def growth_picture(sizes: Sequence[int], lines: Mapping[str, Sequence[float]]) -> str:
    """An SVG of log2 of every measure over log2 of the positions, both against the first size."""
    across = [log2(size / sizes[0]) for size in sizes]
    up = {name: [log2(value) for value in values] for name, values in lines.items()}
    highest = max(2 * across[-1], *(max(values) for values in up.values()))
    plane = Plane((0.0, across[-1] * 1.6), (min(0.0, *(min(values) for values in up.values())), highest))
    parts = [plane.axes("doublings of the positions", "doublings of the measure", whole_x=True)]
    shown: list[float] = []
    for number, (name, values) in enumerate(up.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [plane.place(x, y) for x, y in zip(across, values, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("polyline", points=path, fill="none", stroke=colour, stroke_width=1.5))
        parts.extend(element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=2.5, fill=colour) for x, y in places)
        x, y = places[-1]
        while any(abs(y - other) < 13 for other in shown):  # names never lie over each other
            y += 1
        shown.append(y)
        parts.append(element("text", name, x=f"{x + 8:.1f}", y=f"{y + 4:.1f}", fill=colour))
    return str(plane.drawing("growth of time and memory with the number of positions", *parts))
