"""A Gram matrix in memory: for tests and small data; the pipeline's `StoredGram` streams a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.base import Kernel, check_kernel
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.marginalized import SemidefiniteMatrix
from gramline.kernels.packing import Packable, Packed
from gramline.kernels.parameters import plain_value
from gramline.kernels.priors import DISTRIBUTION_ADVICE, improper_row
from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import is_listed
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.counts import counted
from gramline.learners.operators.layout import GramLayout


class DenseGram:
    """G between rows and columns in memory, with the priors and the label kernel that a learner reads.

    Parameters
    ----------
    matrix : finite numbers, shape (n_rows, n_cols)
    lengths : positions of each structure of the rows, and of the columns unless `other_lengths` is given
    other_lengths : positions of each structure of the columns of a matrix between two corpora
    label_names : labels in the order of the priors' columns
    row_prior, col_prior : P(y|x), shape (n_rows, n_labels) and (n_cols, n_labels); None when uniform
    label_kernel : k_y, shape (n_labels, n_labels); None for the identity
    col_diagonal : k(x, x) of the columns of a rectangular matrix, shape (n_cols,); a symmetric one knows it
    block_rows : rows of a block, at least those of the longest structure

    Examples
    --------
    >>> from gramline.kernels import Identity, SequenceLabeling
    >>> from gramline.learners import DenseGram
    >>> from gramline.pipeline import Corpus
    >>> DenseGram([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]], lengths=[2, 1]).shape
    (3, 3)
    >>> train, new = Corpus.from_sequences([["a", "b"]]), Corpus.from_sequences([["b"], ["c", "a"]])
    >>> DenseGram.of(SequenceLabeling(c=0.5), train, new).shape
    (2, 3)
    """

    def __init__(
        self,
        matrix: ArrayLike,
        lengths: ArrayLike,
        other_lengths: ArrayLike | None = None,
        *,
        label_names: Sequence[str] | None = None,
        row_prior: ArrayLike | None = None,
        col_prior: ArrayLike | None = None,
        label_kernel: ArrayLike | None = None,
        col_diagonal: ArrayLike | None = None,
        block_rows: int | None = None,
    ) -> None:
        self.matrix = _array(matrix, "the matrix")
        self.layout = GramLayout.of(lengths, other_lengths, block_rows)
        if self.matrix.shape != self.layout.shape:
            raise LearnerError(
                f"the matrix has shape {self.matrix.shape}, but the lengths add up to {self.layout.shape}"
            )
        if self.matrix.dtype.kind not in "fiub" or not np.isfinite(self.matrix).all():
            raise LearnerError("the matrix contains a value that is not a finite number")
        if self.matrix.dtype not in (np.float32, np.float64):
            self.matrix = self.matrix.astype(np.float64)  # what compiled loops and differences of entries can take
        if self.layout.is_symmetric:
            _check_symmetric(self.matrix)
        self.kernel: Kernel | None = None  # known when `of` made the matrix
        self.label_names = None if label_names is None else _distinct(label_names)
        self.row_prior = _prior(row_prior, self.shape[0], "row_prior")
        self.col_prior = self.row_prior if other_lengths is None else _prior(col_prior, self.shape[1], "col_prior")
        if label_kernel is not None:
            label_kernel = plain_value("label_kernel", SemidefiniteMatrix(), label_kernel, KernelParameterError)
        self.label_kernel = None if label_kernel is None else np.array(label_kernel)
        if self.label_names is not None:
            self._check_labels(len(self.label_names))
        self._col_diagonal = None if col_diagonal is None else _array(col_diagonal, "col_diagonal", float)
        if self._col_diagonal is not None and self._col_diagonal.shape != self.shape[1:]:
            raise LearnerError(
                f"col_diagonal has shape {self._col_diagonal.shape}, but there are {self.shape[1]} columns"
            )
        if self._col_diagonal is not None and not np.isfinite(self._col_diagonal).all():
            raise LearnerError("col_diagonal contains a value that is not a finite number")

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        corpus: Packable | Packed,
        other: Packable | Packed | None = None,
        *,
        block_rows: int | None = None,
    ) -> DenseGram:
        """The Gram of a kernel over a corpus (or between two), with the priors and label kernel it implies."""
        check_kernel(kernel)
        rows, cols = kernel.prepared_pair(corpus, other)
        gram = cls(
            counted(kernel.tile(rows, rows if cols is None else cols)),
            kernel.row_lengths(rows),
            None if cols is None else kernel.row_lengths(cols),
            label_names=rows.vocabulary.labels or None,
            row_prior=rows.prior,
            col_prior=None if cols is None else cols.prior,
            label_kernel=kernel.label_matrix(),
            col_diagonal=None if cols is None else kernel.diagonal(cols),
            block_rows=block_rows,
        )
        gram.kernel = kernel
        return gram

    def _check_labels(self, n_labels: int) -> None:
        for what in ("row_prior", "col_prior", "label_kernel"):
            table = getattr(self, what)
            if table is not None and table.shape[1] != n_labels:
                raise LearnerError(f"{what} has {table.shape[1]} columns, but there are {n_labels} labels")

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    def tile(self, i: int, j: int) -> Tile:
        return self.matrix[self.layout.rows.rows(i), self.layout.cols.rows(j)]

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        for i in range(self.layout.rows.n_blocks) if rows is None else rows:
            yield i, self.tile(i, j)

    def select(self, rows: Indices, cols: Indices) -> Tile:
        return self.matrix[np.ix_(rows, cols)]

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        return np.asarray((self.matrix.T if transpose else self.matrix) @ W)

    def diagonal(self) -> Matrix:
        return np.diagonal(self.matrix).astype(float)

    @property
    def col_diagonal(self) -> Matrix | None:
        return self.diagonal() if self.layout.is_symmetric else self._col_diagonal

    def cholesky(self, scale: ArrayLike, shift: ArrayLike = 1.0, rows: Indices | None = None) -> Factor:
        from gramline.learners.linear_algebra.cholesky import cholesky  # only who factors waits for LAPACK

        self.layout.require_symmetric("a Cholesky factor")
        return cholesky(self.matrix, scale, shift, rows)


def _array(values: ArrayLike, what: str, dtype: type | None = None) -> Matrix:
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise LearnerError(f"{what} must be a table of numbers with rows of one length") from None


def _check_symmetric(matrix: Tile) -> None:
    """Refuse a square Gram that differs from its transpose by more than rounding in single precision."""
    limit = 1e-5 * float(np.max(np.abs(matrix), initial=0.0))
    for first in range(0, len(matrix), 512):  # strips: the difference of a whole matrix is a whole matrix
        strip = slice(first, first + 512)
        distance = np.abs(matrix[strip] - matrix[:, strip].T)
        if distance.max(initial=0.0) > limit:
            row, col = (int(index) for index in np.unravel_index(int(distance.argmax()), distance.shape))
            row += first
            raise LearnerError(
                f"the matrix is not symmetric: ({row}, {col}) is {matrix[row, col]:g}, but ({col}, {row}) is "
                f"{matrix[col, row]:g}; give other_lengths for a Gram matrix between two corpora"
            )


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    given: list[Any] = list(names) if is_listed(names) else [None]
    if not all(isinstance(name, str) for name in given):
        raise LearnerError(f"label_names must be a list of strings, got {names!r}")
    for number, name in enumerate(given):
        if name in given[:number]:
            raise LearnerError(f"the label {name!r} is listed twice; list each label once")
    return tuple(given)


def _prior(prior: ArrayLike | None, n_rows: int, what: str) -> Matrix | None:
    if prior is None:
        return None
    table = _array(prior, what, float)
    if table.ndim != 2 or len(table) != n_rows:
        raise LearnerError(f"{what} has shape {table.shape}, but there are {n_rows} positions")
    if (improper := improper_row(table)) is not None:
        row, problem = improper
        raise LearnerError(f"{what} of row {row} {problem}", advice=DISTRIBUTION_ADVICE)
    return table
