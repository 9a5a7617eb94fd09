"""Growth from size to size, drawn on logarithmic axes: one line per measure, each 1 at the smallest size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from gramline.pipeline.reporting.charts import Plane, named_lines


def growth_picture(sizes: Sequence[int], lines: Mapping[str, Sequence[float]]) -> str:
    """An SVG of log2 of every measure over log2 of the positions, both against the first size."""
    across = [log2(size / sizes[0]) for size in sizes]
    up = {name: [log2(value) for value in values] for name, values in lines.items()}
    highest = max(2 * across[-1], *(max(values) for values in up.values()))
    plane = Plane((0.0, across[-1] * 1.6), (min(0.0, *(min(values) for values in up.values())), highest))
    axes = plane.axes("doublings of the positions", "doublings of the measure", whole_x=True)
    points = {name: list(zip(across, values, strict=True)) for name, values in up.items()}
    return str(named_lines(points, plane, axes, "growth of time and memory with the number of positions"))
