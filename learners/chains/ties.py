"""When scores tie: they differ by less than rounding can do, which is part of how large the numbers summed were."""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Floats

TIE = 1e-12  # scores that differ by less than this part of what was summed into them are equal


def magnitude_probe(sizes: Floats) -> Floats:
    """A column c, shape (n_rows,), for which |G^T c| has the order of the sums of |G| * sizes.

    `sizes` themselves would do for a Gram without negative entries. Where positive and negative entries cancel exactly,
    so would their sum; the same numbers, each times its own factor between 1/2 and 3/2, do not.
    """
    factors = np.random.default_rng(0).uniform(0.5, 1.5, size=len(sizes))
    column: Floats = sizes * factors
    return column
