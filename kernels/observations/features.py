"""Observations compared by their features: dot product, its powers, and the Gaussian of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gramline.kernels.observations.base import AlwaysNormalized, Normalized, ObservationKernel
from gramline.kernels.observations.product_loops import raise_to_power
from gramline.kernels.observations.products import FeatureStrips, feature_strips, squared_norms
from gramline.kernels.packing import Features, Floats, Packed
from gramline.kernels.parameters import NonNegative, Positive, Whole


class FeatureKernel(ObservationKernel):
    """k_x as a function of the dot product of two feature rows, or of their squared distance (`by_distance`)."""

    by_distance: ClassVar[bool] = False

    def apply(self, values: Floats) -> None:
        """Replace dot products (or squared distances) by kernel values, in place; two-dimensional."""

    def strips(self, rows: Packed, cols: Packed) -> FeatureStrips:
        return feature_strips(rows, cols, self)

    def self_values(self, features: Features) -> Floats:
        """k(x, x) of every feature row, before normalization."""
        if self.by_distance:
            return np.ones(len(features))
        values = squared_norms(features)
        self.apply(values.reshape(1, -1))
        return values

    def diagonal(self, packed: Packed) -> Floats:
        return self.self_values(packed.features)


@dataclass(frozen=True)
class Linear(FeatureKernel):
    """k_x = x . x': positive semidefinite.

    >>> from gramline.kernels import Linear, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Linear()).gram(corpus)
    array([[5., 1.],
           [1., 1.]])
    """

    name: ClassVar[str] = "linear"
    summary: ClassVar[str] = "the dot product of features"

    normalized: Normalized = False


@dataclass(frozen=True)
class Polynomial(FeatureKernel):
    """k_x = (x . x' + coef0)^degree: positive semidefinite.

    >>> from gramline.kernels import Polynomial, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Polynomial(degree=2)).gram(corpus)
    array([[36.,  4.],
           [ 4.,  4.]])
    """

    name: ClassVar[str] = "polynomial"
    summary: ClassVar[str] = "(dot product + coef0)^degree"

    degree: Annotated[Whole, "power of the sum, a whole number from 1"] = 2
    coef0: Annotated[NonNegative, "added to the dot product, 0 or more; less would not be positive semidefinite"] = 1.0
    normalized: Normalized = False

    def apply(self, values: Floats) -> None:
        raise_to_power(values, self.coef0, self.degree)


@dataclass(frozen=True)
class Gaussian(FeatureKernel):
    """k_x = exp(-gamma |x - x'|^2): positive semidefinite, normalized already.

    >>> from gramline.kernels import Gaussian, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Gaussian(gamma=0.5)).gram(corpus).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "exp(-gamma distance^2)"
    by_distance: ClassVar[bool] = True

    gamma: Annotated[Positive, "weight of the squared distance, above 0"]
    normalized: AlwaysNormalized = False

    def apply(self, values: Floats) -> None:
        np.multiply(values, -self.gamma, out=values)
        np.exp(values, out=values)
