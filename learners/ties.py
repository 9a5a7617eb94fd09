"""How large the numbers are that a product with a Gram matrix sums up: what its rounding errors are part of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def size_column(sizes: Floats) -> Floats:
    """A column c, shape (n_rows,), for which |G^T c| has the order of the sums of |G| * sizes.

    `sizes` themselves would do for a Gram without negative entries. Where positive and negative entries cancel exactly,
    so would their sum; the same numbers, each times its own factor between 1/2 and 3/2, do not.
    """
    factors = np.random.default_rng(0).uniform(0.5, 1.5, size=len(sizes))
    column: Floats = sizes * factors
    return column
