"""Hypotheses that vote on candidates: each is the one before plus a change, and votes for its best candidate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Counts, Matrix
from gramline.learners.chains.viterbi import TIE

HYPOTHESES = 256  # hypotheses whose scores are in memory at once


def best_candidates(scores: Matrix, magnitudes: Matrix) -> Counts:
    """Lowest candidate among those tied with the largest score, per hypothesis; scores (n_hypotheses, n_candidates)."""
    tolerance = TIE * magnitudes.max(axis=1, keepdims=True)
    tied = scores >= scores.max(axis=1, keepdims=True) - tolerance
    return np.asarray(tied.argmax(axis=1), np.int64)


class Ballot:
    """Votes on groups of candidates side by side; hypotheses come in order, some at a time."""

    def __init__(self, sizes: Sequence[int]) -> None:
        starts = offsets_from_lengths(sizes)
        self._groups = [slice(first, last) for first, last in pairwise(starts.tolist())]
        self._score, self._magnitude = np.zeros((2, int(starts[-1])))
        self.votes = [np.zeros(size, np.int64) for size in sizes]  # summed counts, one array per group

    def add(self, changes: Matrix, magnitudes: Matrix, counts: Counts) -> None:
        """Let some hypotheses vote: what each adds to the score of every candidate, and its count.

        `changes` and `magnitudes`, the size of the numbers a change was summed from: (n_hypotheses, n_candidates).
        """
        for first in range(0, len(counts), HYPOTHESES):
            part = slice(first, first + HYPOTHESES)
            scores = self._score + np.cumsum(changes[part], axis=0)
            sizes = self._magnitude + np.cumsum(magnitudes[part], axis=0)
            for votes, own in zip(self.votes, self._groups, strict=True):
                np.add.at(votes, best_candidates(scores[:, own], sizes[:, own]), counts[part])
            self._score, self._magnitude = scores[-1], sizes[-1]
