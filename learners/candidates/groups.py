"""Candidates of one sentence: their rows in a Gram matrix, which to handle at once, and how hypotheses vote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Counts, Indices, Matrix
from gramline.learners.chains.viterbi import TIE
from gramline.learners.errors import GroupError
from gramline.learners.estimator import is_listed
from gramline.learners.kinds import Groups
from gramline.learners.operators.layout import BlockLayout

BATCH_BLOCKS = 2  # two, because a group may lie across the border of two blocks
HYPOTHESES = 256  # hypotheses whose scores are in memory at once


def candidate_groups(groups: Groups, n_rows: int) -> list[Indices]:
    """Rows of each group, shape (n_candidates,) each; sizes mean consecutive rows, all of them."""
    if not is_listed(groups):
        raise GroupError(f"groups must list the candidates of every sentence, got {groups!r}")
    given: list[Any] = list(groups)
    if all(isinstance(group, int | np.integer) for group in given):
        for number, size in enumerate(given):
            if size < 1:
                raise GroupError("there is no candidate", group=number)
        if sum(given) != n_rows:
            raise GroupError(f"the groups hold {sum(given)} candidates, but the Gram matrix has {n_rows}")
        return [np.arange(first, last) for first, last in pairwise(offsets_from_lengths(given))]
    return [_candidates(group, n_rows, number) for number, group in enumerate(given)]


def _candidates(group: Any, n_rows: int, number: int) -> Indices:
    rows = np.asarray(group)
    if rows.ndim != 1 or not len(rows):
        raise GroupError("there is no candidate", group=number)
    if not np.issubdtype(rows.dtype, np.integer):
        raise GroupError(f"candidates are row numbers, got {group!r}", group=number)
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise GroupError(f"there is no row {outside[0]}; the Gram matrix has {n_rows} of them", group=number)
    return rows.astype(np.int64)


def blocks_of(rows: Indices, layout: BlockLayout) -> Indices:
    """Block of each row."""
    return np.searchsorted(layout.block_starts, rows, side="right") - 1


def training_batches(groups: Sequence[Indices], layout: BlockLayout) -> list[list[int]]:
    """Groups (their numbers) that a training handles at once, in order; lone candidates teach nothing."""
    batches = batches_within_blocks(groups, layout, BATCH_BLOCKS)
    compared = [[number for number in batch if len(groups[number]) > 1] for batch in batches]
    return [batch for batch in compared if batch]


def batches_within_blocks(groups: Sequence[Indices], layout: BlockLayout, limit: int) -> Iterator[list[int]]:
    """Consecutive groups (their numbers) whose rows lie in at most `limit` blocks; at least one group each."""
    batch: list[int] = []
    touched: set[int] = set()
    for number, rows in enumerate(groups):
        own = set(blocks_of(rows, layout).tolist())
        if batch and len(touched | own) > limit:
            yield batch
            batch, touched = [], set()
        batch.append(number)
        touched |= own
    if batch:
        yield batch


def batches_within_size(groups: Sequence[Indices], limit: int) -> Iterator[list[int]]:
    """Consecutive groups (their numbers) of at most `limit` candidates together; at least one group each."""
    batch: list[int] = []
    size = 0
    for number, rows in enumerate(groups):
        if batch and size + len(rows) > limit:
            yield batch
            batch, size = [], 0
        batch.append(number)
        size += len(rows)
    if batch:
        yield batch


def best_candidates(scores: Matrix, magnitudes: Matrix) -> Counts:
    """Lowest candidate among those tied with the largest score, per hypothesis; scores (n_hypotheses, n_candidates)."""
    tolerance = TIE * magnitudes.max(axis=1, keepdims=True)
    tied = scores >= scores.max(axis=1, keepdims=True) - tolerance
    return np.asarray(tied.argmax(axis=1), np.int64)


class Ballot:
    """Votes on groups of candidates side by side; hypotheses come in order, some at a time."""

    def __init__(self, sizes: Sequence[int], offsets: Matrix) -> None:
        """`offsets`, shape (n_candidates,), are what every hypothesis adds its own sum to."""
        starts = offsets_from_lengths(sizes)
        self._groups = [slice(first, last) for first, last in pairwise(starts.tolist())]
        self._score, self._magnitude = offsets, np.abs(offsets)
        self._votes = [np.zeros(size, np.int64) for size in sizes]
        self._is_empty = True

    def add(self, changes: Matrix, magnitudes: Matrix, counts: Counts) -> None:
        """Let some hypotheses vote: what each adds to the score of every candidate, and its count.

        `changes` and `magnitudes`, the size of the numbers a change was summed from: (n_hypotheses, n_candidates).
        """
        for first in range(0, len(counts), HYPOTHESES):
            part = slice(first, first + HYPOTHESES)
            scores = self._score + np.cumsum(changes[part], axis=0)
            sizes = self._magnitude + np.cumsum(magnitudes[part], axis=0)
            self._count(scores, sizes, counts[part])
            self._score, self._magnitude = scores[-1], sizes[-1]

    def votes(self) -> list[Counts]:
        """Summed counts, one array per group; where there was no hypothesis, one vote by the offsets alone."""
        if self._is_empty:
            self._count(self._score[None], self._magnitude[None], np.ones(1, np.int64))
        return self._votes

    def _count(self, scores: Matrix, sizes: Matrix, counts: Counts) -> None:
        self._is_empty = False
        for votes, own in zip(self._votes, self._groups, strict=True):
            np.add.at(votes, best_candidates(scores[:, own], sizes[:, own]), counts)
