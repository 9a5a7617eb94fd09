"""Hamming loss over the fraction of missing labels, drawn: one line per set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gramline.pipeline.reporting.charts import Plane, named_lines


def missing_labels_picture(lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """An SVG of (fraction, loss) points per set."""
    points = [point for line in lines.values() for point in line]
    plane = Plane((0.0, 1.3 * max(x for x, _ in points)), (0.0, max(y for _, y in points)))  # room for the names
    axes = plane.axes("fraction of training labels missing", "Hamming loss, %")
    return str(named_lines(lines, plane, axes, "Hamming loss over the fraction of missing labels"))
