"""Changes brought to the scores of rows: S += d^T G[c, rows], and how large that is.

Many rows change in the same way, such as one label more and another one less. Lines of G whose changes are the same
are added up first, which takes one addition for a value instead of one for every column of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramline.learners.arrays import Floats, Indices, Matrix, Tile
from gramline.learners.operators.packets import Kinds, Packet, Rows, Scores, Values
from gramline.learners.operators.sum_loops import sum_lines, sum_magnitudes

BITS = {4: np.uint32, 8: np.uint64}


def add_changes(packet: Packet, scores: Mapping[int, Scores], target: Rows, values: Values) -> None:
    """S[target] += d^T G[c, target] for the changed rows c of a packet; `values` are G[c, target].

    `target` counts in the rows of the visit. A problem that has come to its end takes no part.
    """
    sums, magnitudes = _products(packet, values)
    if values.columns is not None:
        sums, magnitudes = sums[:, values.columns], magnitudes[:, values.columns]
    end = 0
    for number, (problem, columns) in enumerate(packet.touched.items()):
        if (own := scores.get(problem)) is not None:
            for offset, column in enumerate(columns.tolist()):
                own.sums[column, target] += sums[end + offset]
            own.magnitudes[target] += magnitudes[number]
        end += len(columns)


def _products(packet: Packet, values: Values) -> tuple[Matrix, Matrix]:
    """Steps times values, shape (n_changed, n_columns), and sizes times their magnitudes, (n_problems, n_columns)."""
    kinds = packet.kinds if values.tile.flags.c_contiguous else None
    if kinds is not None:
        return _by_kind(kinds, values)
    wide = values.matrix()
    if wide.min(initial=0.0) >= 0.0:  # as most kernels are: one product for both
        both = np.concatenate([packet.steps, packet.sizes]) @ wide
        return both[: len(packet.steps)], both[len(packet.steps) :]
    return packet.steps @ wide, packet.sizes @ np.abs(wide)


def _by_kind(kinds: Kinds, values: Values) -> tuple[Matrix, Matrix]:
    tile, lines = values.tile, _lines(kinds, values)
    totals: Floats = np.empty((len(kinds.starts) - 1, tile.shape[1]))
    bits: Tile = tile.view(BITS[tile.itemsize])
    has_negative = sum_lines(tile, bits, lines, kinds.starts, totals)
    sums = kinds.steps @ totals
    if has_negative:
        sum_magnitudes(tile, lines, kinds.starts, totals)
    return sums, kinds.sizes @ totals


def _lines(kinds: Kinds, values: Values) -> Indices:
    return kinds.order if values.lines is None else values.lines[kinds.order]
