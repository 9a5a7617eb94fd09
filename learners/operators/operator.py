"""What a learner sees of a Gram matrix: an operator that multiplies, hands out blocks, and knows its labels' priors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from numpy.typing import ArrayLike

from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.linear_algebra.cholesky import Factor
from gramline.learners.operators.layout import GramLayout


class GramOperator(Protocol):
    """The scalar Gram G between rows and columns (the same ones when `layout.is_symmetric`).

    Rows and columns are unpadded positions in corpus order. `row_prior` is P(y|x) of the rows, shape
    (n_rows, n_labels), None when uniform; `label_kernel` is k_y, shape (n_labels, n_labels), None when the identity.
    """

    @property
    def layout(self) -> GramLayout: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def label_names(self) -> tuple[str, ...] | None:
        """Labels in the order of the prior's columns; None when the Gram knows none."""
        ...

    @property
    def row_prior(self) -> Matrix | None: ...
    @property
    def col_prior(self) -> Matrix | None: ...
    @property
    def label_kernel(self) -> Matrix | None: ...

    def tile(self, i: int, j: int) -> Tile:
        """Block (i, j) of the full matrix, unpadded; mirrored when only (j, i) is stored."""
        ...

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        """(i, tile(i, j)) for the given block rows (all of them by default), reading ahead."""
        ...

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W, or G.T @ W; every stored tile is read at most once, tiles that meet only zero rows of W never."""
        ...

    def select(self, rows: Indices, cols: Indices) -> Tile:
        """G[rows][:, cols] in memory, in the dtype of the tiles; reads only the tiles that hold some of it, once."""
        ...

    def diagonal(self) -> Matrix:
        """G(t, t), shape (n_rows,); symmetric Grams only."""
        ...

    @property
    def col_diagonal(self) -> Matrix | None:
        """k(x, x) of every column, shape (n_cols,): predictive variances need it; None when nobody knows it."""
        ...

    def cholesky(self, scale: ArrayLike, shift: ArrayLike = 1.0, rows: Indices | None = None) -> Factor:
        """The factor of diag(shift) + diag(scale) G[rows, rows] diag(scale); symmetric Grams only.

        `scale` has shape (n,), `shift` is a number or has shape (n,), where n = len(rows), or all rows. The row of a
        NotPositiveDefiniteError counts among these n.
        """
        ...


@runtime_checkable
class HasDense(Protocol):
    """A Gram matrix whose entries cost time to get; an operator need not be one."""

    def dense(self, rows: Indices) -> Tile | None:
        """G[rows][:, rows] for repeated use, where a `cholesky` of it takes that memory anyway; else None.

        Symmetric Grams only.
        """
        ...


@runtime_checkable
class _Multiplies(Protocol):
    """Tells operators from corpora and arrays. Only cheap members: Python 3.11 evaluates each of them."""

    @property
    def layout(self) -> GramLayout: ...
    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix: ...


def is_operator(evidence: object) -> TypeGuard[GramOperator]:
    """Whether this is a Gram operator rather than a corpus or an array."""
    return isinstance(evidence, _Multiplies)
