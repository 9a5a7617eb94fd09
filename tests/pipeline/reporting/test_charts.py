"""Drawings: ticks of axes, names beside lines."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gramline.pipeline.reporting.charts import COLOURS, Axis, Plane, curves, histogram, named_lines


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 800), (-3.2, 17), (0.71, 0.74), (1, 2)])
def test_ticks_are_few_round_numbers_inside(low: float, high: float) -> None:
    found = Axis("", low, high).ticks()
    assert 2 <= len(found) <= 8
    assert low <= min(found)
    assert max(found) <= high + 1e-9
    steps = np.diff(found)
    assert np.allclose(steps, steps[0])


def test_a_whole_axis_has_whole_ticks_and_a_point_has_an_interval() -> None:
    assert Axis("", 0, 2, is_whole=True).ticks() == [0, 1, 2]
    assert Axis("", 3, 3).ends == pytest.approx((2.85, 3.15))
    assert Axis("", 0, 0).ends == (-0.5, 0.5)


def test_names_beside_lines_have_their_colours_and_do_not_overlap() -> None:
    lines = {name: [(0.0, 0.0), (1.0, 1.0)] for name in ("one", "two", "<three>")}
    drawn = named_lines(lines, Plane(Axis("x", 0, 2), Axis("y", 0, 1)), "three lines")
    names = re.findall(r'<text x="[^"]+" y="([^"]+)" fill="([^"]+)">([^<]+)</text>', drawn)
    assert [name for _, _, name in names] == ["one", "two", "&lt;three&gt;"]
    assert [colour for _, colour, _ in names] == list(COLOURS[:3])
    assert (np.diff([float(height) for height, _, _ in names]) >= 12.9).all()


def test_values_that_are_not_finite_are_left_out() -> None:
    drawn = curves({"a": [3.0, 2.0], "b": [float("nan")]}, x_title="round", y_title="mistakes", marked="a")
    assert drawn.count("<polyline") == 1
    assert drawn.count("<circle") == 2


def test_every_value_is_in_a_bar() -> None:
    drawn = histogram([1.0, 1.0, 2.0, 5.0], x_title="x", y_title="n", bins=4)
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([^"]+)"', drawn)]
    assert heights == pytest.approx([168, 84, 0, 84])
