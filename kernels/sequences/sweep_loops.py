"""The two sweeps of the sequence labeling kernel over a strip of row structures. Jitted functions only.

A strip is a group of whole row structures against all columns of the tile, chunk by chunk to stay in the cache. Column
t has a predecessor in its own structure unless a mask is 0 there, so the inner loops run over whole chunks. Slices
instead of t - 1, and one written array per inner loop, keep them vectorized: the compiler gives up on more than a few
alias checks. Arrays are assigned in loops, not as whole expressions, which take three times as long to compile.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.marginalized import Strip
from gramline.kernels.packing import Offsets

Line = NDArray[Any]  # float64 or float32, all of one precision


@jit
def sweep_contiguous(row_starts: Offsets, chunks: Offsets, strip: Strip, link: Line, upward: Line) -> bool:
    """out = scale * kx * (1+U') * (1+D'); returns whether all of it is within +-limit.

    kap into column t from column t - 1 is link[t] weights[.., t - 1]; link is 0 where a structure starts, shape
    (n_cols,). Chunk k has the columns chunks[k]:chunks[k + 1]. `upward` is room for 1+U' of the longest structure
    and the widest chunk.
    """
    kx, weights, scale, limit, out = strip.kx, strip.weights, strip.scale, strip.limit, strip.out
    starts = row_starts[strip.first : strip.last + 1]
    origin = starts[0]
    downward = np.empty(upward.shape[1], upward.dtype)
    n_bad = 0
    for structure in range(len(starts) - 1):
        first, last = starts[structure] - origin, starts[structure + 1] - origin
        for chunk in range(len(chunks) - 1):
            begin, end = chunks[chunk], chunks[chunk + 1]
            width = end - begin
            into = link[begin + 1 : end]
            upward[0, :width] = 1.0
            for i in range(1, last - first):
                values, above = weights[first + i - 1, begin : end - 1], upward[i - 1, : width - 1]
                row = upward[i, 1:width]
                upward[i, 0] = 1.0
                for t in range(width - 1):
                    row[t] = 1.0 + (into[t] * values[t]) * above[t]
            downward[:width] = 1.0
            for i in range(last - 1, first - 1, -1):
                if i < last - 1:
                    values = weights[i + 1, begin + 1 : end]
                    for t in range(width - 1):
                        downward[t] = 1.0 + (into[t] * values[t]) * downward[t + 1]
                observed, above, target = kx[i, begin:end], upward[i - first], out[i, begin:end]
                for t in range(width):
                    value = scale * observed[t] * (above[t] * downward[t])
                    n_bad += not (abs(value) <= limit)
                    target[t] = value
    return n_bad == 0
