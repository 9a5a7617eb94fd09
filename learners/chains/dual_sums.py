"""Sums G^T W of dual weights for any number of learners in one product, and how large the numbers are that they sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.chains.viterbi import magnitude_probe
from gramline.learners.operators.operator import GramOperator


class DualSums(NamedTuple):
    """Of one learner."""

    sums: Matrix  # G^T W, shape (n_columns, n_labels)
    sizes: Matrix  # of the numbers summed into each row, shape (n_columns,)


def dual_sums(gram: GramOperator, every: Sequence[Matrix]) -> list[DualSums]:
    """One for each of the weights W, shape (n_rows, n_labels); learners may differ in their number of labels."""
    columns = [np.column_stack([weights, magnitude_probe(np.abs(weights).max(axis=1))]) for weights in every]
    ends = np.cumsum([own.shape[1] for own in columns])
    products = np.split(gram.matmul(np.hstack(columns), transpose=True), ends[:-1], axis=1)
    return [DualSums(own[:, :-1], np.abs(own).max(axis=1)) for own in products]
