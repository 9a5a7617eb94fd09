"""Columns of a tile with sequences side by side, sixteen at a time: first positions, then second ones, and so on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Offsets
from gramline.kernels.ranges import offsets_from_lengths

LANES = 16  # a constant of the compiled loops, too: so many sequences at once fill the vectors and hide their latency


class SideBySide(NamedTuple):
    """The columns of a tile in places: the predecessor of a position is LANES places before it.

    Sequences are sorted by length, so that few places are left over; those repeat some column and lead nowhere.
    """

    columns: Offsets  # column of the tile in each place, shape (n_places,)
    follows: NDArray[Any]  # 1 where the position has a predecessor, else 0, shape (n_places,)
    precedes: NDArray[Any]  # 1 where it has a successor, else 0
    chunks: Offsets  # first place of each chunk of whole sequences, and the end
    places: NDArray[np.uint32]  # place of each column, shape (n_cols,); unsigned numbers are looked up faster

    @classmethod
    def of(cls, starts: Offsets, width: int, precision: type[np.floating[Any]]) -> SideBySide:
        """Of sequences that start there, in chunks of about `width` places."""
        lengths = np.diff(starts)
        order = np.argsort(-lengths, kind="stable")
        heights = lengths[order[::LANES]]  # of every group of LANES sequences: its longest one
        group_starts = offsets_from_lengths(LANES * heights)
        n_places, number = int(group_starts[-1]), np.empty(len(lengths), np.int64)
        number[order] = np.arange(len(lengths))
        ranks = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
        sorted_number = np.repeat(number, lengths)
        places = group_starts[sorted_number // LANES] + ranks * LANES + sorted_number % LANES
        columns, follows, precedes = np.zeros(n_places, np.int64), np.zeros(n_places), np.zeros(n_places)
        columns[places] = np.arange(len(places))
        follows[places] = ranks > 0
        precedes[places] = ranks + 1 < np.repeat(lengths, lengths)
        cuts = [0]
        for bound in group_starts[1:].tolist():
            if bound > cuts[-1] and (bound - cuts[-1] >= width or bound == n_places):
                cuts.append(bound)
        masks = follows.astype(precision), precedes.astype(precision)
        return cls(columns, *masks, np.array(cuts, np.int64), places.astype(np.uint32))
