"""Sums G^T W of dual weights for any number of learners in one product, and how large the numbers are that they sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.chains.viterbi import magnitude_probe
from gramline.learners.operators.operator import GramOperator

BLOCK_ROWS = 1 << 14  # of weights that are looked at together, so that nothing else is as large as they are


class DualSums(NamedTuple):
    """Of one learner."""

    sums: Matrix  # G^T W, shape (n_columns, n_labels)
    sizes: Matrix  # of the numbers summed into each row, shape (n_columns,)


def dual_sums(gram: GramOperator, every: Sequence[Matrix]) -> list[DualSums]:
    """One for each of the `sized` weights; learners may differ in their number of labels."""
    ends = np.cumsum([own.shape[1] for own in every])
    product = gram.matmul(every[0] if len(every) == 1 else np.hstack(every), transpose=True)
    return [DualSums(own[:, :-1], np.abs(own).max(axis=1)) for own in np.split(product, ends[:-1], axis=1)]


def sized(weights: Matrix) -> Matrix:
    """W, shape (n_rows, n_labels), and how large its rows are in one more column."""
    columns = np.empty((len(weights), weights.shape[1] + 1))
    columns[:, :-1] = weights
    return fill_sizes(columns)


def fill_sizes(columns: Matrix) -> Matrix:
    """The same where the weights stand in their place, and the last column is free."""
    for first in range(0, len(columns), BLOCK_ROWS):
        rows = columns[first : first + BLOCK_ROWS]
        rows[:, -1] = np.abs(rows[:, :-1]).max(axis=1)
    columns[:, -1] = magnitude_probe(columns[:, -1])
    return columns
