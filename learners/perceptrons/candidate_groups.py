"""Candidates of one sentence: which rows or columns of a Gram matrix belong together, and which to handle at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Indices
from gramline.learners.errors import GroupError
from gramline.learners.estimator import is_listed
from gramline.learners.kinds import Groups
from gramline.learners.operators.layout import BlockLayout


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
