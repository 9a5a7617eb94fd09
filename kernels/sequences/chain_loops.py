"""The two sweeps of the gappy sequence labeling kernel in double precision. Jitted functions only.

Sums along the columns are chains; four of them side by side hide each other's latency. In single precision vectors
over sixteen sequences (`gappy_loops`) take half as long; in double precision they do not.
"""

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Floats, Offsets


@jit
def sweep_chains(
    row_starts: Offsets, chunks: Offsets, strip: Strip, continues: Floats, gap: float, upward: Floats
) -> bool:
    """out = scale * kx * (1+U') * (1+D') with kap = factor * weights; every skipped position counts `gap`.

    continues[t] is 1 where column t has a predecessor in its structure, else 0; shape (n_cols,). The five numbers of a
    chunk split its columns into four parts of whole structures.
    """
    kx, weights, out = strip.kx, strip.weights, strip.out
    factor, scale, limit = strip.factor, strip.scale, strip.limit
    starts = row_starts[strip.first : strip.last + 1]
    origin = starts[0]
    widest = upward.shape[1]
    forward, backward = np.empty(widest), np.empty(widest)
    sums, matches, downward = np.empty(widest), np.empty(widest), np.empty(widest)
    bounds = np.empty(5, np.int64)
    n_bad = 0
    for chunk in range(len(chunks)):
        begin, end = chunks[chunk, 0], chunks[chunk, 4]
        width = end - begin
        for part in range(5):
            bounds[part] = chunks[chunk, part] - begin
        joined = continues[begin + 1 : end]
        for t in range(width):
            forward[t] = gap * continues[begin + t]
        for t in range(width - 1):
            backward[t] = gap * joined[t]
        backward[width - 1] = 0.0
        downward[width - 1] = 1.0
        for structure in range(len(starts) - 1):
            first, last = starts[structure] - origin, starts[structure + 1] - origin
            sums[:width] = 0.0
            for i in range(first, last):
                above, values, shifted = upward[i - first], weights[i, begin:end], upward[i - first, 1:width]
                above[0] = 1.0
                for t in range(width - 1):
                    shifted[t] = 1.0 + joined[t] * sums[t]
                for t in range(width):
                    matches[t] = factor * values[t] * above[t]
                accumulate_forward(matches, forward, gap, bounds, sums)
            sums[:width] = 0.0
            following = sums[1:]
            for i in range(last - 1, first - 1, -1):
                observed, values = kx[i, begin:end], weights[i, begin:end]
                above, target = upward[i - first], out[i, begin:end]
                for t in range(width - 1):
                    downward[t] = 1.0 + joined[t] * following[t]
                for t in range(width):
                    matches[t] = factor * values[t] * downward[t]
                for t in range(width):
                    value = scale * observed[t] * (above[t] * downward[t])
                    n_bad += not (abs(value) <= limit)
                    target[t] = value
                accumulate_backward(matches, backward, gap, bounds, sums)
    return n_bad == 0


@jit
def accumulate_forward(matches: Floats, decay: Floats, gap: float, bounds: Offsets, sums: Floats) -> None:
    """r(t) = matches(t) + decay(t) r(t-1) and sums(t) = r(t) + gap sums(t), in place.

    The four parts are independent chains; side by side they hide each other's latency.
    """
    a, b, c, d, end = bounds[0], bounds[1], bounds[2], bounds[3], bounds[4]
    together = min(b - a, c - b, d - c, end - d)
    matches_0, matches_1, matches_2, matches_3 = matches[a:b], matches[b:c], matches[c:d], matches[d:end]
    decay_0, decay_1, decay_2, decay_3 = decay[a:b], decay[b:c], decay[c:d], decay[d:end]
    sums_0, sums_1, sums_2, sums_3 = sums[a:b], sums[b:c], sums[c:d], sums[d:end]
    run_0 = run_1 = run_2 = run_3 = 0.0
    for t in range(together):
        run_0 = matches_0[t] + decay_0[t] * run_0
        run_1 = matches_1[t] + decay_1[t] * run_1
        run_2 = matches_2[t] + decay_2[t] * run_2
        run_3 = matches_3[t] + decay_3[t] * run_3
        sums_0[t] = run_0 + gap * sums_0[t]
        sums_1[t] = run_1 + gap * sums_1[t]
        sums_2[t] = run_2 + gap * sums_2[t]
        sums_3[t] = run_3 + gap * sums_3[t]
    runs = (run_0, run_1, run_2, run_3)
    for part in range(4):
        run = runs[part]
        for t in range(bounds[part] + together, bounds[part + 1]):
            run = matches[t] + decay[t] * run
            sums[t] = run + gap * sums[t]


@jit
def accumulate_backward(matches: Floats, decay: Floats, gap: float, bounds: Offsets, sums: Floats) -> None:
    """r(t) = matches(t) + decay(t) r(t+1) and sums(t) = r(t) + gap sums(t), in place; four chains as above."""
    a, b, c, d = bounds[1], bounds[2], bounds[3], bounds[4]
    together = min(a - bounds[0], b - a, c - b, d - c)
    first_0, first_1, first_2, first_3 = a - together, b - together, c - together, d - together
    matches_0, matches_1, matches_2, matches_3 = (
        matches[first_0:a],
        matches[first_1:b],
        matches[first_2:c],
        matches[first_3:d],
    )
    decay_0, decay_1, decay_2, decay_3 = decay[first_0:a], decay[first_1:b], decay[first_2:c], decay[first_3:d]
    sums_0, sums_1, sums_2, sums_3 = sums[first_0:a], sums[first_1:b], sums[first_2:c], sums[first_3:d]
    run_0 = run_1 = run_2 = run_3 = 0.0
    for t in range(together - 1, -1, -1):
        run_0 = matches_0[t] + decay_0[t] * run_0
        run_1 = matches_1[t] + decay_1[t] * run_1
        run_2 = matches_2[t] + decay_2[t] * run_2
        run_3 = matches_3[t] + decay_3[t] * run_3
        sums_0[t] = run_0 + gap * sums_0[t]
        sums_1[t] = run_1 + gap * sums_1[t]
        sums_2[t] = run_2 + gap * sums_2[t]
        sums_3[t] = run_3 + gap * sums_3[t]
    runs = (run_0, run_1, run_2, run_3)
    for part in range(4):
        run = runs[part]
        for t in range(bounds[part + 1] - together - 1, bounds[part] - 1, -1):
            run = matches[t] + decay[t] * run
            sums[t] = run + gap * sums[t]
