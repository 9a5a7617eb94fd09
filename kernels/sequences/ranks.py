"""Columns of a tile by their place in their sequence: all first positions, then all second ones, and so on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels.packing import Ints, Offsets
from gramline.kernels.ranges import offsets_from_lengths


class RankedColumns(NamedTuple):
    """The columns of each chunk by rank, the place in their sequence; longer sequences first.

    So the predecessor of the i-th column of rank r is the i-th column of rank r - 1: a recursion along sequences runs
    over neighbouring memory, many sequences at once.
    """

    chunks: Offsets  # shape (n_chunks + 1,)
    rank_indptr: Offsets  # ranks of chunk k are rank_starts[rank_indptr[k]:rank_indptr[k + 1]], its width included
    rank_starts: Offsets  # first place of each rank, counted from the start of the chunk
    columns: Offsets  # column of the tile in each place, shape (n,)
    places: Ints  # place of each column, counted from the start of its chunk, shape (n,)

    @classmethod
    def of(cls, starts: Offsets, chunks: Offsets) -> RankedColumns:
        """Of sequences that start there, in chunks of whole sequences."""
        n = int(starts[-1])
        lengths, widths = np.diff(starts), np.diff(chunks)
        chunk = np.repeat(np.arange(len(widths)), widths)
        ranks = np.arange(n) - np.repeat(starts[:-1], lengths)
        columns = np.lexsort((np.repeat(-lengths, lengths), ranks, chunk))
        origins = np.repeat(chunks[:-1], widths)
        places = np.empty(n, np.int32)
        places[columns] = np.arange(n) - origins
        firsts = np.flatnonzero(np.diff(chunk * (n + 1) + ranks[columns], prepend=-1))
        rank_indptr = offsets_from_lengths(np.bincount(chunk[firsts], minlength=len(widths)) + 1)
        rank_starts = np.empty(rank_indptr[-1], np.int64)
        rank_starts[rank_indptr[1:] - 1] = widths
        rank_starts[np.arange(len(firsts)) + chunk[firsts]] = firsts - origins[firsts]
        return cls(chunks, rank_indptr, rank_starts, columns, places)
