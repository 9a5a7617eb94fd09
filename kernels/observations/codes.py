"""Observations compared by their codes: equal or not, or by values computed once between distinct observations."""

from __future__ import annotations

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints


class EqualStrips:
    """1 where the codes of row and column are equal."""

    def __init__(self, rows: Ints, cols: Ints) -> None:
        self.rows, self.cols = rows, cols

    def fill(self, first: int, last: int, out: Floats) -> None:
        fill_equal(self.rows[first:last], self.cols, out)


class GatheredStrips:
    """k_x(i, t) = values[rows[i], cols[t]]."""

    def __init__(self, values: Floats, rows: Ints, cols: Ints) -> None:
        self.values, self.rows, self.cols = values, rows, cols

    def fill(self, first: int, last: int, out: Floats) -> None:
        fill_gathered(self.values, self.rows[first:last], self.cols, out)


@jit
def fill_equal(rows: Ints, cols: Ints, out: Floats) -> None:
    """out[i, t] = 1.0 if rows[i] == cols[t] else 0.0; int32 codes, float64 out."""
    for i in range(len(rows)):
        code = rows[i]
        for t in range(len(cols)):
            out[i, t] = 1.0 if cols[t] == code else 0.0


@jit
def fill_gathered(values: Floats, rows: Ints, cols: Ints, out: Floats) -> None:
    """out[i, t] = values[rows[i], cols[t]]; int32 codes, float64 values and out."""
    for i in range(len(rows)):
        line = values[rows[i]]
        for t in range(len(cols)):
            out[i, t] = line[cols[t]]
