"""Structures of a training set hidden from a training, to choose a parameter by how their labels are predicted.

Tested in tests/learners/test_chosen_constants.py.
"""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Indices

N_FOLDS = 5
ENOUGH = 10_000  # hidden positions: a fold more would change the choice no more


def hidden_structures(lengths: Indices, n_folds: int = N_FOLDS, enough: int = ENOUGH) -> list[Indices]:
    """Every fifth structure with a position that counts, fold after fold, until enough positions are hidden.

    `lengths` are the positions that count. None for fewer structures than folds.
    """
    filled = np.flatnonzero(lengths)
    folds: list[Indices] = []
    n_hidden = 0
    while len(filled) >= n_folds and len(folds) < n_folds and n_hidden < enough:
        folds.append(filled[len(folds) :: n_folds])
        n_hidden += int(lengths[folds[-1]].sum())
    return folds
