"""Observation kernels between positions with explicit features: a Gram matrix that knows how it hangs on its kernel.

What a learner needs to choose the kernel's parameters by its own bound: the matrix at other parameters, and slopes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.observations.base import inverse_norms
from gramline.kernels.observations.features import FeatureKernel, Gaussian, Linear, Polynomial
from gramline.learners.arrays import Matrix
from gramline.learners.errors import LearnerError
from gramline.learners.operators.dense import DenseGram


class ObservationGram(DenseGram):
    """k_x between positions, given by their feature rows; symmetric, or from training to new positions.

    Parameters
    ----------
    observation : `Gaussian`, `Polynomial` or `Linear`
    features : a row per position, shape (n_rows, n_features)
    lengths : positions of each structure of the rows
    other, other_lengths : the same of the columns, for a matrix between two corpora
    block_rows : rows of a block, at least those of the longest structure

    Examples
    --------
    >>> from gramline.kernels import Gaussian
    >>> from gramline.learners import ObservationGram
    >>> gram = ObservationGram(Gaussian(gamma=0.5), [[0.0], [1.0], [3.0]], lengths=[2, 1])
    >>> gram.parameters()
    {'gamma': 0.5}
    >>> gram.matrix.round(3).tolist()[0]
    [1.0, 0.607, 0.011]
    """

    def __init__(
        self,
        observation: FeatureKernel,
        features: ArrayLike,
        lengths: ArrayLike,
        other: ArrayLike | None = None,
        other_lengths: ArrayLike | None = None,
        *,
        block_rows: int | None = None,
    ) -> None:
        self.observation = observation
        self.features = _rows(observation, features)
        self.other = self.features if other is None else _rows(observation, other)
        if (other is None) != (other_lengths is None):
            raise LearnerError("features of new positions and the lengths of their structures belong together")
        rows, cols = (_self_values(observation, part) for part in (self.features, self.other))
        matrix = _values(observation, self.features, self.other)
        if observation.normalized:
            matrix /= np.sqrt(np.outer(rows, cols))
        super().__init__(
            matrix,
            lengths,
            other_lengths,
            col_diagonal=None if other is None else np.ones(len(cols)) if observation.normalized else cols,
            block_rows=block_rows,
        )

    def parameters(self) -> dict[str, float]:
        """Positive parameters that have a slope: gamma of `Gaussian`, coef0 of `Polynomial`, none of `Linear`."""
        if isinstance(self.observation, Gaussian):
            return {"gamma": self.observation.gamma}
        if isinstance(self.observation, Polynomial) and self.observation.coef0 > 0:
            return {"coef0": self.observation.coef0}
        if isinstance(self.observation, (Linear, Polynomial)):
            return {}
        raise LearnerError(f"{type(self.observation).__name__} has no parameters with a gradient")

    def at(self, parameters: Mapping[str, float]) -> ObservationGram:
        """The symmetric matrix of the same positions with other parameters."""
        changed = self.observation.from_params({**self.observation.get_params(), **parameters})
        return ObservationGram(changed, self.features, self.layout.rows.lengths, block_rows=self.layout.rows.block_rows)

    def slope(self, parameter: str) -> Matrix:
        """dK / d log(parameter) of the symmetric matrix, shape (n, n)."""
        observation, features = self.observation, self.features
        if parameter == "gamma" and isinstance(observation, Gaussian):
            return np.asarray(-observation.gamma * _distances(features, features) * self.matrix)
        if not (parameter == "coef0" and isinstance(observation, Polynomial)):
            raise LearnerError(f"{type(observation).__name__} has no parameter {parameter!r} with a gradient")
        lower = (features @ features.T + observation.coef0) ** (observation.degree - 1)
        slope: Matrix = observation.coef0 * observation.degree * lower
        if not observation.normalized:
            return slope
        own = _self_values(observation, features)
        relative = np.diagonal(slope) / own
        return np.asarray(slope / np.sqrt(np.outer(own, own)) - self.matrix * np.add.outer(relative, relative) / 2)


def _rows(observation: FeatureKernel, features: ArrayLike) -> Matrix:
    """Feature rows as the kernel sees them, shape (n, n_features)."""
    table = np.asarray(features, float)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise LearnerError(f"features must be finite numbers in one row per position, got shape {table.shape}")
    return table * inverse_norms(np.square(table).sum(axis=1))[:, None] if observation.of_unit_rows else table


def _values(observation: FeatureKernel, rows: Matrix, cols: Matrix) -> Matrix:
    values = _distances(rows, cols) if observation.by_distance else rows @ cols.T
    observation.apply(values)
    return values


def _self_values(observation: FeatureKernel, rows: Matrix) -> Matrix:
    values = np.zeros((1, len(rows))) if observation.by_distance else np.einsum("ij,ij->i", rows, rows)[None]
    observation.apply(values)
    if observation.normalized and not (values > 0).all():
        raise LearnerError("a position whose k(x, x) is 0 cannot be normalized; leave normalized out")
    return np.asarray(values[0])


def _distances(rows: Matrix, cols: Matrix) -> Matrix:
    """|x - x'|^2, exactly 0 between equal rows of one table."""
    left, right = (np.einsum("ij,ij->i", part, part) for part in (rows, cols))
    squares: Matrix = np.add.outer(left, right) - 2.0 * (rows @ cols.T)
    if rows is cols:
        np.fill_diagonal(squares, 0.0)
    np.maximum(squares, 0.0, out=squares)
    return squares
