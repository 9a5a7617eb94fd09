"""Published tables of amino acids as positive semidefinite kernels, for every letter that proteins are written with.

Log-odds s_ab are no kernel: the largest eigenvalue of -s is that of the constant vector. With s in half bits

    k(a, b) = exp(sharpness (s_ab - (s_aa + s_bb) / 2))

is 1 between equal letters, and positive semidefinite where s is so on vectors that sum to 0 (Schoenberg), as BLOSUM is.
What is negative in the spectrum of another table (PAM) is cut off, and rows and columns are divided by the roots of
the diagonal, which is 1 again.

A letter for several amino acids is the mean of their feature vectors, so that no letter can spoil the spectrum; a stop
or a gap is like itself alone.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from gramline.kernels.packing import Floats, frozen

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
MEANT = {"B": "ND", "Z": "QE", "J": "IL", "X": AMINO_ACIDS, "U": "C", "O": "K"}  # letters that stand for others
SIGNS = "*-."  # a stop and gaps
LETTERS = (*AMINO_ACIDS, *MEANT, *SIGNS)

AminoAcidTable = Literal["blosum45", "blosum62", "blosum80", "pam120", "pam250"]
# That one unit of a table is.
HALF_BITS: dict[str, float] = {"blosum45": 2 / 3, "blosum62": 1.0, "blosum80": 2 / 3, "pam120": 1.0, "pam250": 2 / 3}


@cache
def published_scores(table: AminoAcidTable) -> Floats:
    """The log-odds as they were published, in the order of AMINO_ACIDS; shape (20, 20)."""
    lines = files(__package__).joinpath(f"{table}.txt").read_text("utf-8").splitlines()
    return frozen(np.loadtxt(lines, usecols=range(1, 1 + len(AMINO_ACIDS))), np.float64)


def letter_similarity(table: AminoAcidTable, sharpness: float) -> Floats:
    """k between all LETTERS, positive semidefinite; shape (n_letters, n_letters)."""
    scores = HALF_BITS[table] * published_scores(table)
    own = scores.diagonal() / 2
    values = without_negative_part(np.exp(sharpness * (scores - own[:, None] - own)))
    weights = np.array([[letter in MEANT.get(name, name) for letter in AMINO_ACIDS] for name in LETTERS], dtype=float)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    result: Floats = weights @ values @ weights.T
    for number in range(len(LETTERS) - len(SIGNS), len(LETTERS)):
        result[number, number] = 1.0
    return result


def without_negative_part(values: Floats) -> Floats:
    """The nearest positive semidefinite matrix (negative eigenvalues become 0), scaled to a diagonal of 1.

    One that is positive semidefinite already stays as it is.
    """
    eigenvalues, vectors = np.linalg.eigh(values)
    if eigenvalues[0] >= 0:
        return values
    clipped = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    scale = 1 / np.sqrt(clipped.diagonal())
    clipped *= scale[:, None] * scale
    result: Floats = (clipped + clipped.T) / 2
    return result
