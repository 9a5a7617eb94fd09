"""The BLOSUM62 substitution matrix: log-odds of amino acids taking each other's place, in half bits.

Values as published by S. Henikoff and J. G. Henikoff, Amino acid substitution matrices from protein blocks, PNAS 89
(1992), 10915-10919 (the matrix from blocks clustered at 62 %, as alignment programs ship it), without the columns for
ambiguous letters. Row k holds the scores of letter k with the letters up to itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.observations.substitution import Substitution

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
BLOSUM62 = (
    (4,),
    (-1, 5),
    (-2, 0, 6),
    (-2, -2, 1, 6),
    (0, -3, -3, -3, 9),
    (-1, 1, 0, 0, -3, 5),
    (-1, 0, 0, 2, -4, 2, 5),
    (0, -2, 0, -1, -3, -2, -2, 6),
    (-2, 0, 1, -1, -3, 0, 0, -2, 8),
    (-1, -3, -3, -3, -1, -3, -3, -4, -3, 4),
    (-1, -2, -3, -4, -1, -2, -3, -4, -3, 2, 4),
    (-1, 2, 0, -1, -3, 1, 1, -2, -1, -3, -2, 5),
    (-1, -1, -2, -3, -1, 0, -2, -3, -2, 1, 2, -1, 5),
    (-2, -3, -3, -3, -2, -3, -3, -3, -1, 0, 0, -3, 0, 6),
    (-1, -2, -2, -1, -3, -1, -1, -2, -2, -3, -3, -1, -2, -4, 7),
    (1, -1, 1, 0, -1, 0, 0, 0, -1, -2, -2, 0, -1, -2, -1, 4),
    (0, -1, 0, -1, -1, -1, -1, -2, -2, -1, -1, -1, -1, -2, -1, 1, 5),
    (-3, -3, -4, -4, -2, -2, -3, -2, -2, -3, -2, -3, -1, 1, -4, -3, -2, 11),
    (-2, -2, -2, -3, -2, -1, -2, -3, 2, -1, -1, -2, -1, 3, -3, -2, -2, 2, 7),
    (0, -3, -3, -3, -1, -2, -2, -3, -3, 3, 1, -2, 1, -1, -2, -2, 0, -3, -1, 4),
)


def blosum_scores() -> NDArray[np.float64]:
    """S, shape (20, 20). One of its eigenvalues is negative; on vectors that sum to 0 it is positive definite."""
    scores = np.zeros((len(AMINO_ACIDS), len(AMINO_ACIDS)))
    for row, values in enumerate(BLOSUM62):
        scores[row, : row + 1] = scores[: row + 1, row] = values
    return scores


def blosum_kernel(sharpness: float) -> Substitution:
    """k_x(a, b) = exp(sharpness (S_ab - (S_aa + S_bb) / 2)): 1 for equal letters, between 0 and 1 for others.

    Positive semidefinite: the exponential of a matrix, entry by entry, is so when the matrix is positive semidefinite
    on vectors that sum to 0 (Schoenberg).
    """
    scores = blosum_scores()
    own = np.diagonal(scores) / 2
    matrix = np.exp(sharpness * (scores - own[:, None] - own[None, :]))
    return Substitution(tuple(AMINO_ACIDS), tuple(map(tuple, matrix.tolist())))
