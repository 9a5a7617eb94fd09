"""Values computed once between distinct observations, and gathered for every pair of positions."""

from __future__ import annotations

from gramline.kernels.observations.code_loops import fill_gathered
from gramline.kernels.packing import Floats, Ints


class GatheredStrips:
    """k_x(i, t) = values[rows[i], cols[t]]."""

    def __init__(self, values: Floats, rows: Ints, cols: Ints) -> None:
        self.values, self.rows, self.cols = values, rows, cols

    def fill(self, first: int, last: int, out: Floats) -> None:
        fill_gathered(self.values, self.rows[first:last], self.cols, out)
