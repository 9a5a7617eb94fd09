"""Loops of the observation kernels that look at codes only. Jitted functions only."""

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints


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
