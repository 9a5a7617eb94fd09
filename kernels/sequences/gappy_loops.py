"""The two sweeps of the gappy sequence labeling kernel in single precision. Jitted functions only.

Columns stand side by side (`SideBySide`): the sums along a sequence go from a place to the one LANES further on, for
all sequences of a group at once, in vectors; only the finished row is put in order again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Offsets
from gramline.kernels.sequences.side_by_side import LANES, SideBySide

Line = NDArray[np.float32]


class GappyRows(NamedTuple):
    """Room for one row structure; the lines are for one chunk, with LANES zeros at either end of sums and runs."""

    upward: Line  # shape (n_rows, n_places): 1+U', then the finished values
    downward: Line  # 1+D' of a row
    sums: Line  # S
    runs: Line  # r
    decay: Line  # gap times 0 or 1


@jit
def accumulate_forward(values: Line, row: Line, factor: np.float32, gap: np.float32, rows: GappyRows) -> None:
    """r(t) = factor values(t) row(t) + gap r(t-1) and S(t) = r(t) + gap S(t), in place."""
    runs, sums, decay = rows.runs, rows.sums[LANES:], rows.decay
    for t in range(len(values)):
        runs[t + LANES] = factor * values[t] * row[t] + decay[t] * runs[t]
    finished = runs[LANES:]
    for t in range(len(values)):
        sums[t] = finished[t] + gap * sums[t]


@jit
def accumulate_backward(values: Line, row: Line, factor: np.float32, gap: np.float32, rows: GappyRows) -> None:
    """r(t) = factor values(t) row(t) + gap r(t+1) and S(t) = r(t) + gap S(t), in place."""
    runs, sums, decay = rows.runs, rows.sums[LANES:], rows.decay
    for t in range(len(values) - 1, -1, -1):
        runs[t] = factor * values[t] * row[t] + decay[t] * runs[t + LANES]
    for t in range(len(values)):
        sums[t] = runs[t] + gap * sums[t]


@jit
def sweep_up(weights: Line, factor: np.float32, gap: np.float32, follows: Line, begin: int, rows: GappyRows) -> None:
    """1+U' of all rows of a structure, for one chunk that begins there."""
    width, sums, decay = len(follows), rows.sums, rows.decay
    sums[: width + 2 * LANES] = 0.0
    rows.runs[:LANES] = 0.0
    for t in range(width):
        decay[t] = gap * follows[t]
    for i in range(len(weights)):
        above = rows.upward[i, begin : begin + width]
        for t in range(width):
            above[t] = 1.0 + follows[t] * sums[t]
        accumulate_forward(weights[i, begin : begin + width], above, factor, gap, rows)


@jit
def sweep_down(
    kx: Line, weights: Line, strip: Strip, gap: np.float32, precedes: Line, begin: int, rows: GappyRows
) -> int:
    """scale kx (1+U') (1+D') of the same in place of 1+U'; how many values are beyond +-limit."""
    factor, scale, limit = strip.factor, strip.scale, strip.limit
    width, behind, downward, decay = len(precedes), rows.sums[2 * LANES :], rows.downward, rows.decay
    rows.sums[: width + 2 * LANES] = 0.0
    rows.runs[width : width + LANES] = 0.0
    n_bad = 0
    for t in range(width):
        decay[t] = gap * precedes[t]
    for i in range(len(kx) - 1, -1, -1):
        above, observed = rows.upward[i, begin : begin + width], kx[i, begin : begin + width]
        for t in range(width):
            downward[t] = 1.0 + precedes[t] * behind[t]
        for t in range(width):
            value = scale * observed[t] * (above[t] * downward[t])
            n_bad += not (abs(value) <= limit)
            above[t] = value
        accumulate_backward(weights[i, begin : begin + width], downward, factor, gap, rows)
    return n_bad


@jit
def sweep_gappy(row_starts: Offsets, cols: SideBySide, strip: Strip, gap: np.float32, rows: GappyRows) -> bool:
    """out = scale * kx * (1+U') * (1+D') with kap = factor * weights; every skipped position counts `gap`.

    Returns whether all is within +-limit.
    """
    starts, places = row_starts[strip.first : strip.last + 1], cols.places
    n_bad = 0
    for structure in range(len(starts) - 1):
        first, last = starts[structure] - starts[0], starts[structure + 1] - starts[0]
        kx, weights = strip.kx[first:last], strip.weights[first:last]
        for chunk in range(len(cols.chunks) - 1):
            begin, end = cols.chunks[chunk], cols.chunks[chunk + 1]
            sweep_up(weights, strip.factor, gap, cols.follows[begin:end], begin, rows)
            n_bad += sweep_down(kx, weights, strip, gap, cols.precedes[begin:end], begin, rows)
        for i in range(last - first):
            finished, target = rows.upward[i], strip.out[first + i]
            for t in range(len(places)):
                target[t] = finished[places[t]]
    return n_bad == 0
