"""What is known of the labels of two positions beforehand, as a factor of the labeling kernels: P'^T ky P."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Packed, frozen


class MarginalTables(NamedTuple):
    """P'^T ky P as factor * left . right, or as `factor` alone where the tables are empty: for compiled loops."""

    left: NDArray[Any]  # shape (n_rows, n_labels), or (0, 0)
    right: NDArray[Any]  # shape (n_cols, n_labels), or (0, 0)
    factor: np.floating[Any]  # of the precision of the tables


def marginal_factor(rows: Packed, cols: Packed, label_kernel: Floats | None) -> float:
    """P'^T ky P of any two positions when both priors are uniform, else 1."""
    if rows.prior is not None or cols.prior is not None:
        return 1.0
    return 1.0 / rows.n_labels if label_kernel is None else float(label_kernel.sum()) / rows.n_labels**2


class Marginals:
    """P'^T ky P between the positions of two corpora: one number when both priors are uniform, else left . right.

    Its arrays are of the given precision, and read-only in every case, so the loops are compiled once for each.
    """

    def __init__(
        self, rows: Packed, cols: Packed, label_kernel: Floats | None, precision: type[np.floating[Any]] = np.float64
    ) -> None:
        self.precision = precision
        self.is_uniform = rows.prior is None and cols.prior is None
        self.factor = marginal_factor(rows, cols, label_kernel)
        self.left = self.right = frozen(np.empty((0, 0)), precision)  # (n_rows, n_labels) and (n_cols, n_labels)
        if not self.is_uniform:
            left = prior_table(rows)
            self.left = frozen(left if label_kernel is None else left @ label_kernel, precision)
            self.right = frozen(prior_table(cols), precision)

    @cached_property
    def by_label(self) -> NDArray[Any]:
        """`right` with a line per label, shape (n_labels, n_cols)."""
        return frozen(self.right.T, self.precision)

    def weigh(self, low: int, high: int, kx: NDArray[Any], weights: NDArray[Any]) -> None:
        """weights = kx * (P'^T ky P) for row positions low..high-1; nothing to do when uniform."""
        if not self.is_uniform:
            multiply_marginals(self.left[low:high], self.by_label, kx, weights)


@jit
def multiply_marginals(left: NDArray[Any], right: NDArray[Any], kx: NDArray[Any], weights: NDArray[Any]) -> None:
    """weights[i, t] = kx[i, t] * sum_y left[i, y] right[y, t], all of one precision; kx and weights may be larger."""
    n_rows, n_labels = left.shape
    n_cols = right.shape[1]
    for i in range(n_rows):
        for t in range(n_cols):
            weights[i, t] = left[i, 0] * right[0, t]
        for y in range(1, n_labels):
            share = left[i, y]
            for t in range(n_cols):
                weights[i, t] += share * right[y, t]
        for t in range(n_cols):
            weights[i, t] *= kx[i, t]


def prior_table(packed: Packed) -> Floats:
    """P(y|x) of a prepared corpus, also when it is uniform; shape (n, n_labels)."""
    if packed.prior is not None:
        return packed.prior
    return np.full((packed.n_positions, packed.n_labels), 1.0 / packed.n_labels)
