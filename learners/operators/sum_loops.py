"""Sums of lines of a tile, in double precision. Jitted functions only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit, jit_apart
from gramline.learners.arrays import Floats, Indices, Tile

Bits = NDArray[Any]  # the same memory as unsigned integers: the highest bit of a negative number is set


@jit_apart
def add_four(a: Tile, b: Tile, c: Tile, d: Tile, total: Floats) -> None:
    """total += a + b + c + d."""
    for t in range(len(total)):
        total[t] += (np.float64(a[t]) + np.float64(b[t])) + (np.float64(c[t]) + np.float64(d[t]))


@jit_apart
def add_one(line: Tile, total: Floats) -> None:
    """total += line."""
    for t in range(len(total)):
        total[t] += np.float64(line[t])


@jit_apart
def add_magnitudes(line: Tile, total: Floats) -> None:
    """total += |line|."""
    for t in range(len(total)):
        total[t] += abs(np.float64(line[t]))


@jit_apart
def all_bits(a: Bits, b: Bits, c: Bits, d: Bits) -> np.uint64:
    """Every bit that is set somewhere."""
    none = a.dtype.type(0)
    seen = none
    for t in range(len(a)):
        seen = a.dtype.type(seen | (a[t] | b[t]) | (c[t] | d[t]))
    return np.uint64(seen)


@jit
def sum_lines(tile: Tile, bits: Bits, lines: Indices, starts: Indices, totals: Floats) -> bool:
    """totals[u] = sum of tile[lines[k]] for k in starts[u]..starts[u + 1]-1; whether any of these values is negative.

    `bits` are those of the tile.
    """
    seen = np.uint64(0)
    for u in range(len(totals)):
        total, k, end = totals[u], starts[u], starts[u + 1]
        total[:] = 0.0
        while k + 3 < end:
            add_four(tile[lines[k]], tile[lines[k + 1]], tile[lines[k + 2]], tile[lines[k + 3]], total)
            seen |= all_bits(bits[lines[k]], bits[lines[k + 1]], bits[lines[k + 2]], bits[lines[k + 3]])
            k += 4
        while k < end:
            line = bits[lines[k]]
            add_one(tile[lines[k]], total)
            seen |= all_bits(line, line, line, line)
            k += 1
    return bool((seen >> np.uint64(8 * tile.itemsize - 1)) != np.uint64(0))


@jit
def sum_magnitudes(tile: Tile, lines: Indices, starts: Indices, totals: Floats) -> None:
    """totals[u] = sum of |tile[lines[k]]| for k in starts[u]..starts[u + 1]-1."""
    for u in range(len(totals)):
        totals[u] = 0.0
        for k in range(starts[u], starts[u + 1]):
            add_magnitudes(tile[lines[k]], totals[u])


@jit
def clear_received(tile: Tile, starts: Indices, stamps: Indices, received: Indices) -> None:
    """tile[r, t] = 0 where column t has received what rows starts[k]..starts[k + 1]-1, of stamps[k], bring."""
    latest = received.max()
    for k in range(len(stamps)):
        if stamps[k] <= latest:
            for r in range(starts[k], starts[k + 1]):
                line = tile[r]
                for t in range(len(line)):
                    line[t] = line[t] if received[t] < stamps[k] else 0.0
