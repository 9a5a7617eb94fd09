"""Observations are the same or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramline.kernels.observations.base import AlwaysNormalized, EqualStrips, ObservationKernel
from gramline.kernels.packing import Floats, Packed


@dataclass(frozen=True)
class Identity(ObservationKernel):
    """k_x(x, x') = 1 if the whole observations are equal, else 0. Positive semidefinite, normalized already.

    >>> from gramline.kernels import Identity, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> SequenceLabeling(observation=Identity()).gram(Corpus.from_sequences([["a"], ["b"], ["a"]]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "1 for equal observations, else 0"

    normalized: AlwaysNormalized = False

    def strips(self, rows: Packed, cols: Packed) -> EqualStrips:
        return EqualStrips(rows.observed, cols.observed)

    def diagonal(self, packed: Packed) -> Floats:
        return np.ones(packed.n_positions)
