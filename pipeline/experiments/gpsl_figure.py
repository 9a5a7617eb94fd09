"""Hamming loss over the fraction of missing labels, drawn: one line per set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gramline.pipeline.reporting.charts import COLOURS, Plane, element


def missing_labels_picture(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """An SVG of (fraction, loss) points per set."""
    points = [point for line in lines.values() for point in line]
    plane = Plane((0.0, max(x for x, _ in points)), (0.0, max(y for _, y in points)))
    parts = [plane.axes("fraction of training labels missing", "Hamming loss, %")]
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [plane.place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("polyline", points=path, fill="none", stroke=colour, stroke_width=1.5))
        parts.extend(element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=2.5, fill=colour) for x, y in places)
        x, y = places[-1]
        parts.append(element("text", name, x=f"{x - 4:.1f}", y=f"{y - 6:.1f}", text_anchor="end", fill=colour))
    return str(plane.drawing("Hamming loss over the fraction of missing labels", *parts))
