"""Observations compared by their features: dot product, its powers, and the Gaussian of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.observations.base import (
    AlwaysNormalized,
    Normalized,
    ObservationKernel,
    Strips,
    inverse_norms,
)
from gramline.kernels.observations.product_loops import raise_to_power
from gramline.kernels.observations.products import Power, feature_strips, squared_norms
from gramline.kernels.packing import Features, Floats, Packed
from gramline.kernels.parameters import Boolean, NonNegative, Positive, Whole

UnitFeatures = Annotated[Boolean, "divide every feature row by its length first, so that x . x' is their cosine"]


class FeatureKernel(ObservationKernel):
    """k_x as a function of the dot product of two feature rows, or of their squared distance (`by_distance`)."""

    by_distance: ClassVar[bool] = False

    @property
    def of_unit_rows(self) -> bool:
        """Whether feature rows are divided by their length before anything else."""
        return False

    def apply(self, values: Floats) -> None:
        """Replace dot products (or squared distances) by kernel values, in place; two-dimensional."""

    @property
    def power(self) -> Power | None:
        """The kernel, before normalization, as a power of the dot product; None where it is none."""
        return None

    def strips(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64) -> Strips:
        return feature_strips(rows, cols, self, dtype)

    def is_never_negative(self, rows: Packed, cols: Packed) -> bool:
        return self.by_distance or (rows.features.is_binary and cols.features.is_binary)

    def self_values(self, features: Features) -> Floats:
        """k(x, x) of every feature row, before normalization."""
        if self.by_distance:
            return np.ones(len(features))
        values = squared_norms(features)
        if self.of_unit_rows:
            values = (inverse_norms(values) > 0).astype(np.float64)
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

    @property
    def power(self) -> Power:
        return Power(0.0, 1)


@dataclass(frozen=True)
class Polynomial(FeatureKernel):
    """k_x = (x . x' + coef0)^degree: positive semidefinite.

    `normalized` divides after the power. With many features at a position x . x' is large and coef0 next to nothing;
    `unit` divides before it, so that single features count beside their pairs: with both, ((cosine + 1) / 2)^2.

    >>> from gramline.kernels import PositionKernel, Polynomial
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 3.0, "v": 4.0}], [{"u": 1.0}]])
    >>> PositionKernel(Polynomial(degree=2)).gram(corpus)
    array([[676.,  16.],
           [ 16.,   4.]])
    >>> PositionKernel(Polynomial(degree=2, unit=True, normalized=True)).gram(corpus).round(2)
    array([[1.  , 0.64],
           [0.64, 1.  ]])
    """

    name: ClassVar[str] = "polynomial"
    summary: ClassVar[str] = "(dot product + coef0)^degree"

    degree: Annotated[Whole, "power of the sum, a whole number from 1"] = 2
    coef0: Annotated[NonNegative, "added to the dot product, 0 or more; less would not be positive semidefinite"] = 1.0
    normalized: Normalized = False
    unit: UnitFeatures = False

    added: ClassVar[tuple[str, ...]] = ("unit",)

    @property
    def of_unit_rows(self) -> bool:
        return self.unit

    @property
    def power(self) -> Power:
        return Power(self.coef0, self.degree)

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
    unit: UnitFeatures = False

    added: ClassVar[tuple[str, ...]] = ("unit",)

    @property
    def of_unit_rows(self) -> bool:
        return self.unit

    def apply(self, values: Floats) -> None:
        np.multiply(values, -self.gamma, out=values)
        np.exp(values, out=values)
