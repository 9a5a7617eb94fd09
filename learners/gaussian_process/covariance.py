"""The prior covariance of the local functions at the positions that matter, read from any Gram operator.

f_j has the covariance K_j = diag(u_j) C diag(u_j): C is the Gram restricted to some rows, plus a jitter, and u_j the
weights of label j (square root of its scale, times its prior). Only C is known here, never a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.errors import LearnerError, NotPositiveDefiniteError
from gramline.learners.linear_algebra.cholesky import cholesky
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.layout import by_block
from gramline.learners.operators.operator import GramOperator, HasDense

STRIP_ROWS = 128  # converted to float64 at a time
LARGEST_VARIANCE = 1e100


class Covariance(Protocol):
    """C of shape (n, n), exact or approximated."""

    def multiply(self, W: Matrix) -> Matrix:
        """C W, shape (n, k)."""

    def diagonal(self) -> Matrix: ...

    def columns(self, chosen: Indices) -> Matrix:
        """C[:, chosen], shape (n, len(chosen))."""

    def factor(self, scale: Matrix) -> Factor:
        """The factor of I + diag(scale) C diag(scale)."""


@runtime_checkable
class HasFactorLimit(Protocol):
    """A Gram that factors by tiles on disk beyond a size."""

    factor_limit: int  # bytes


@runtime_checkable
class HasRowDigests(Protocol):
    """A Gram whose rows other processes can compare."""

    def row_digests(self, rows: Indices) -> list[bytes] | None:
        """16 bytes for each of these rows, from all of its values; None where this process had better do it."""


class ExactCovariance:
    """C = G[rows, rows] + jitter I; in memory from the first factor on, where the operator allows it."""

    def __init__(self, gram: GramOperator, rows: Indices, jitter: float = 0.0) -> None:
        self.gram = gram
        self.rows = rows
        self.jitter = jitter
        self._diagonal = gram.diagonal()[rows] + jitter
        self._is_factored = False
        self._dense: NDArray[Any] | None = None  # G[rows, rows]

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def multiply(self, W: Matrix) -> Matrix:
        product: Matrix
        if self._dense is not None:
            product = _product(self._dense, W)
        else:
            spread = np.zeros((self.gram.shape[0], W.shape[1]))
            spread[self.rows] = W
            product = self.gram.matmul(spread)[self.rows]
        if self.jitter:
            product += self.jitter * W
        return product

    def diagonal(self) -> Matrix:
        return self._diagonal

    def columns(self, chosen: Indices) -> Matrix:
        if self._dense is not None:
            block = self._dense[:, chosen].astype(float)
        else:
            block = submatrix(self.gram, self.rows, self.rows[chosen])
        block[chosen, np.arange(len(chosen))] += self.jitter
        return block

    def column(self, place: int) -> Matrix:
        """C[:, place], shape (n,)."""
        return self.columns(np.array([place]))[:, 0]

    def factor(self, scale: Matrix) -> Factor:
        if not self._is_factored:
            self._is_factored = True
            self._dense = self.gram.dense(self.rows) if isinstance(self.gram, HasDense) else None
        shift = 1.0 + self.jitter * scale**2
        if self._dense is None:
            return self.gram.cholesky(scale, shift, self.rows)
        return cholesky(self._dense, scale, shift)

    @property
    def factor_limit(self) -> int | None:
        """Bytes that a factor in memory may take; None where nothing limits them."""
        return self.gram.factor_limit if isinstance(self.gram, HasFactorLimit) else None


def label_weights(gram: GramOperator, n_labels: int) -> Matrix:
    """Square roots of the label kernel's diagonal, shape (n_labels,); refuses a label kernel that is not diagonal."""
    if gram.label_kernel is None:
        return np.ones(n_labels)
    diagonal = np.diagonal(gram.label_kernel)
    if np.any(gram.label_kernel != np.diag(diagonal)):
        raise LearnerError(
            "the Gaussian-process labeler has independent functions per label and needs a diagonal label kernel",
            advice="leave label_kernel out",
        )
    return np.sqrt(diagonal)


def require_moderate(prior: Matrix) -> None:
    """Refuse prior variances of the local functions, shape (n, n_labels), whose products do not fit into float64."""
    largest = float(prior.max(initial=0.0))
    if not largest <= LARGEST_VARIANCE:
        raise LearnerError(
            f"scale times the diagonal of the Gram matrix reaches {largest:.3g}, too much for float64",
            advice=f"give a scale that keeps it below {LARGEST_VARIANCE:g}, or normalize the kernel",
            key="scale",
        )


def advised(
    error: NotPositiveDefiniteError, exact: ExactCovariance, largest_group: int | None
) -> NotPositiveDefiniteError:
    """The same error with the row of the Gram and the jitter that would do.

    Without an approximation, `largest_group` tokens share a position at most, and a smaller scale would do, too.
    """
    row, lowest = int(exact.rows[error.row]), min(smallest_eigenvalue(exact), -np.finfo(float).tiny)
    jitter = float(f"{-1.1 * lowest:.2g}")
    advice = f"jitter={jitter:.2g} would do"
    if largest_group is not None:
        advice += f", or, if that is only rounding, a scale below {0.9 / (-lowest * largest_group):.2g}"
    return NotPositiveDefiniteError(
        f"the Gram matrix is not positive semidefinite: pivot {error.pivot:.3g} at row {row}, smallest eigenvalue "
        f"about {lowest:.3g}",
        row,
        error.pivot,
        advice=advice,
        jitter=jitter,
    )


def _product(matrix: NDArray[Any], W: Matrix) -> Matrix:
    """matrix @ W in float64, strip by strip where that takes a conversion."""
    if matrix.dtype == np.float64:
        return np.asarray(matrix @ W)
    product = np.empty((len(matrix), W.shape[1]))
    for first in range(0, len(matrix), STRIP_ROWS):
        product[first : first + STRIP_ROWS] = matrix[first : first + STRIP_ROWS].astype(float) @ W
    return product


def submatrix(gram: GramOperator, rows: Indices, cols: Indices) -> Matrix:
    """G[rows][:, cols] as float64."""
    return gram.select(rows, cols).astype(float, copy=False)


def row_blocks(cross: GramOperator, rows: Indices) -> Iterator[tuple[slice, Matrix]]:
    """(columns, G[rows, columns]) for every block of columns."""
    layout = cross.layout.cols
    for block in range(layout.n_blocks):
        cols = layout.rows(block)
        yield cols, submatrix(cross, rows, np.arange(cols.start, cols.stop))


def distinct_rows(gram: GramOperator, rows: Indices) -> tuple[Indices, Indices]:
    """(first row of every group of identical Gram rows, group of each of `rows`).

    Identical rows of a positive semidefinite matrix have the same latent value with probability 1. Rows are
    compared byte by byte through 128-bit digests, priors included.
    """
    digests = gram.row_digests(rows) if isinstance(gram, HasRowDigests) else None
    digests = _digests(gram, rows) if digests is None else digests
    if (prior := gram.row_prior) is not None:
        digests = [
            blake2b(digest + np.ascontiguousarray(prior[row]).tobytes(), digest_size=16).digest()
            for digest, row in zip(digests, rows.tolist(), strict=True)
        ]
    return _grouped(np.array(digests), rows)


def _digests(gram: GramOperator, rows: Indices) -> list[bytes]:
    """16 bytes for each row, from all of its values in order."""
    wanted = by_block(gram.layout.rows.block_starts, rows)
    digests = [blake2b(digest_size=16) for _ in rows]
    for block in range(gram.layout.cols.n_blocks):
        for i, tile in gram.column_blocks(block, list(wanted)):
            start = gram.layout.rows.rows(i).start
            for place in wanted[i].tolist():
                digests[place].update(np.ascontiguousarray(tile[rows[place] - start]).data)
    return [digest.digest() for digest in digests]


def distinct_features(features: Matrix, rows: Indices) -> tuple[Indices, Indices]:
    """The same for positions that are given by features: equal ones have equal Gram rows whatever the kernel is."""
    return _grouped(np.array([blake2b((features[row] + 0.0).data, digest_size=16).digest() for row in rows]), rows)


def _grouped(keys: NDArray[np.bytes_], rows: Indices) -> tuple[Indices, Indices]:
    """(first of `rows` of every group with equal keys, group of each)."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups in the order of their first rows
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[group]


def smallest_eigenvalue(covariance: ExactCovariance) -> float:
    """The smallest eigenvalue of C to a few digits, from products alone."""
    n = covariance.n_rows
    if n <= 64:  # Lanczos wants room
        return float(np.linalg.eigvalsh(covariance.multiply(np.eye(n)))[0])
    operator: LinearOperator = LinearOperator(
        (n, n), matvec=lambda v: covariance.multiply(np.reshape(v, (n, 1)))[:, 0], dtype=np.float64
    )
    values, _ = eigsh(operator, k=1, which="SA", tol=1e-4, v0=np.random.default_rng(0).standard_normal(n))
    return float(values[0])
