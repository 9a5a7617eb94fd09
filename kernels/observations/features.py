"""Observations compared by their features: dot product, its powers, and the Gaussian of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramline.kernels.errors import KernelParameterError
from gramline.kernels.observations.base import ObservationKernel
from gramline.kernels.observations.product_loops import raise_to_power
from gramline.kernels.observations.products import FeatureStrips, feature_strips, squared_norms
from gramline.kernels.packing import Features, Floats, Packed
from gramline.kernels.parameters import as_number, require_flag, require_positive, require_whole_number


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

    Parameters
    ----------
    normalized : divide by |x| |x'|; 0 where that is 0.

    >>> from gramline.kernels import Linear, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Linear()).gram(corpus)
    array([[5., 1.],
           [1., 1.]])
    """

    name: ClassVar[str] = "linear"

    normalized: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalized", require_flag(self.normalized, "Linear.normalized"))


@dataclass(frozen=True)
class Polynomial(FeatureKernel):
    """k_x = (x . x' + coef0)^degree: positive semidefinite.

    Parameters
    ----------
    degree : a whole number, degree >= 1.
    coef0 : coef0 >= 0.
    normalized : divide by sqrt(k_x(x, x) k_x(x', x')); 0 where that is 0.

    >>> from gramline.kernels import Polynomial, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Polynomial(degree=2)).gram(corpus)
    array([[36.,  4.],
           [ 4.,  4.]])
    """

    name: ClassVar[str] = "polynomial"

    degree: int = 2
    coef0: float = 1.0
    normalized: bool = False

    def __post_init__(self) -> None:
        degree = require_whole_number(self.degree, "Polynomial.degree")
        coef0 = as_number(self.coef0, "Polynomial.coef0")
        if coef0 < 0:
            raise KernelParameterError(
                f"Polynomial.coef0 must not be negative (the kernel would not be positive semidefinite), got {coef0}"
            )
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "coef0", coef0)
        object.__setattr__(self, "normalized", require_flag(self.normalized, "Polynomial.normalized"))

    def apply(self, values: Floats) -> None:
        raise_to_power(values, self.coef0, self.degree)


@dataclass(frozen=True)
class Gaussian(FeatureKernel):
    """k_x = exp(-gamma |x - x'|^2): positive semidefinite, normalized already.

    Parameters
    ----------
    gamma : gamma > 0.

    >>> from gramline.kernels import Gaussian, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([[{"u": 1.0, "v": 2.0}], [{"u": 1.0}]])
    >>> SequenceLabeling(observation=Gaussian(gamma=0.5)).gram(corpus).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    name: ClassVar[str] = "gaussian"
    by_distance: ClassVar[bool] = True

    gamma: float
    normalized: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", require_positive(self.gamma, "Gaussian.gamma"))
        object.__setattr__(self, "normalized", require_flag(self.normalized, "Gaussian.normalized"))

    def apply(self, values: Floats) -> None:
        np.multiply(values, -self.gamma, out=values)
        np.exp(values, out=values)
