"""Whether a kernel can have made a Gram matrix: signs that it is not positive semidefinite, found where it is read.

A margin or a likelihood is a convex problem only for a positive semidefinite Gram. Two rows suffice to see that most
others are none: |G(s, t)| is at most sqrt(G(s, s) G(t, t)) for a kernel.
"""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Indices, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.packets import Rows

ROUNDING = 1e-5  # of the largest value: what rounding in single precision cannot explain
ADVICE = "use a kernel, or add its most negative eigenvalue to the diagonal"


def require_semidefinite(tile: Tile, local: Indices, positions: Rows, layout: BlockLayout) -> None:
    """Refuse a diagonal tile that has a 2 x 2 minor below 0.

    `local` (n,) says which row of the tile each of the Gram's rows `positions` is.
    """
    diagonal = np.diagonal(tile).astype(np.float64)
    limit = ROUNDING * float(np.abs(diagonal).max(initial=0.0))
    if len(diagonal) and diagonal.min() < -limit:
        row = int(diagonal.argmin())
        raise not_semidefinite(f"k(x, x) is {diagonal[row]:g}", _gram_row(row, local, positions), layout)
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    for first in range(0, len(tile), 512):  # strips: a whole difference would be another tile
        excess = np.abs(tile[first : first + 512]) - roots[first : first + 512, None] * roots
        if excess.max(initial=-np.inf) > limit:
            row, col = (int(index) for index in np.unravel_index(int(excess.argmax()), excess.shape))
            row += first
            problem = f"k(x, x') is {tile[row, col]:g} where k(x, x) k(x', x') is {diagonal[row] * diagonal[col]:g}"
            raise not_semidefinite(problem, _gram_row(row, local, positions), layout)


def not_semidefinite(problem: str, row: int | None, layout: BlockLayout) -> LearnerError:
    """The error that names the structure of a row of the Gram, where it is known."""
    error = LearnerError(f"the Gram matrix is not positive semidefinite: {problem}", advice=ADVICE)
    if row is None:
        return error
    structure = int(np.searchsorted(layout.structure_starts, row, side="right")) - 1
    return error.at(structure=structure, position=row - int(layout.structure_starts[structure]))


def _gram_row(row: int, local: Indices, positions: Rows) -> int | None:
    """A row of the Gram that is this row of the tile."""
    places = np.flatnonzero(local == row)
    if not len(places):
        return None
    return int(places[0]) + positions.start if isinstance(positions, slice) else int(positions[places[0]])
