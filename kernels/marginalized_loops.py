"""Loops of the labeling kernels that do not depend on the family. Jitted functions only."""

from typing import Any

from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats


@jit
def multiply_marginals(left: Floats, right: Floats, kx: Floats, weights: Floats) -> None:
    """weights[i, t] = kx[i, t] * sum_y left[i, y] right[y, t], float64; kx and weights may have more rows."""
    n_rows, n_labels = left.shape
    n_cols = right.shape[1]
    for i in range(n_rows):
        for t in range(n_cols):
            weights[i, t] = left[i, 0] * right[0, t]
        for y in range(1, n_labels):
            share = left[i, y]
            for t in range(n_cols):
                weights[i, t] += share * right[y, t]
        for t in range(n_cols):
            weights[i, t] *= kx[i, t]


@jit
def mirror(tile: NDArray[Any]) -> None:
    """Copy the upper triangle of a square tile onto its lower one, block by block to stay in the cache."""
    n = tile.shape[0]
    block = 32
    for i in range(0, n, block):
        for j in range(0, i + 1, block):
            for r in range(i, min(i + block, n)):
                for s in range(j, min(j + block, r)):
                    tile[r, s] = tile[s, r]
