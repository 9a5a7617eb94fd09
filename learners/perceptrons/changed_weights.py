"""Dual weights of the rows that a perceptron was wrong at, and nothing of all the others."""

from __future__ import annotations

from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Counts, Indices, Matrix, SmallCounts

FIRST_ROOM = 256  # rows
Number = TypeVar("Number", np.int32, np.int64, np.float64)


class ChangedWeights:
    """A, whole numbers of shape (n_rows, n_labels), and the lag of its mean; rows that never changed take 4 bytes."""

    def __init__(self, n_rows: int, n_labels: int) -> None:
        self._place = np.full(n_rows, -1, np.int32)  # of every row among those that changed
        self._n_changed = 0
        self._alpha: SmallCounts = np.zeros((FIRST_ROOM, n_labels), np.int32)
        self._lag: Counts = np.zeros((FIRST_ROOM, n_labels), np.int64)

    @classmethod
    def of(cls, alpha: NDArray[np.integer], lag: Counts) -> Self:
        """From the weights of all rows."""
        weights = cls(*alpha.shape)
        rows = np.flatnonzero(alpha.any(axis=1) | lag.any(axis=1))
        weights.add(rows, alpha[rows], lag[rows])
        return weights

    @property
    def n_labels(self) -> int:
        return int(self._alpha.shape[1])

    def add(self, rows: Indices, alpha: NDArray[np.integer], lag: Counts) -> None:
        """Some rows change by so much, shape (len(rows), n_labels); no row is among them twice."""
        new = rows[self._place[rows] < 0]
        end = self._n_changed + len(new)
        if end > len(self._alpha):
            room = min(max(end, 2 * len(self._alpha)), len(self._place))
            self._alpha, self._lag = _longer(self._alpha, room), _longer(self._lag, room)
        self._place[new] = np.arange(self._n_changed, end)
        self._n_changed = end
        self._alpha[self._place[rows]] += alpha
        self._lag[self._place[rows]] += lag

    def alpha(self) -> SmallCounts:
        """A of all rows."""
        return self._of_all(self._alpha)

    def lag(self) -> Counts:
        """The lag of all rows."""
        return self._of_all(self._lag)

    def average(self, n_visits: int) -> Matrix:
        """A - lag / n_visits of all rows."""
        changed = slice(self._n_changed)
        return self._of_all(self._alpha[changed] - self._lag[changed] / n_visits)

    def _of_all(self, changed: NDArray[Number]) -> NDArray[Number]:
        whole = np.zeros((len(self._place), self.n_labels), changed.dtype)
        rows = np.flatnonzero(self._place >= 0)
        whole[rows] = changed[self._place[rows]]
        return whole


def _longer(array: NDArray[Number], n_rows: int) -> NDArray[Number]:
    longer = np.zeros((n_rows, array.shape[1]), array.dtype)
    longer[: len(array)] = array
    return longer
