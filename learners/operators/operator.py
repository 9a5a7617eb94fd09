"""What a learner sees of a Gram matrix: an operator that multiplies, hands out blocks, and knows its labels' priors.

The checks say whether it is one that a learner can train on, or predict from after its training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from numpy.typing import ArrayLike

from gramline.learners.arrays import Indices, Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.factor import Factor
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

    @property
    def row_prior(self) -> Matrix | None: ...
    @property
    def col_prior(self) -> Matrix | None: ...
    @property
    def label_kernel(self) -> Matrix | None: ...

    def tile(self, i: int, j: int) -> Tile:
        """Block (i, j) of the full matrix, unpadded; mirrored when only (j, i) is stored."""

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, Tile]]:
        """(i, tile(i, j)) for the given block rows (all of them by default), reading ahead."""

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W, or G.T @ W; every stored tile is read at most once, tiles that meet only zero rows of W never."""

    def select(self, rows: Indices, cols: Indices) -> Tile:
        """G[rows][:, cols] in memory, in the dtype of the tiles; reads only the tiles that hold some of it, once."""

    def diagonal(self) -> Matrix:
        """G(t, t), shape (n_rows,); symmetric Grams only."""

    @property
    def col_diagonal(self) -> Matrix | None:
        """k(x, x) of every column, shape (n_cols,): predictive variances need it; None when nobody knows it."""

    def cholesky(self, scale: ArrayLike, shift: ArrayLike = 1.0, rows: Indices | None = None) -> Factor:
        """The factor of diag(shift) + diag(scale) G[rows, rows] diag(scale); symmetric Grams only.

        `scale` has shape (n,), `shift` is a number or has shape (n,), where n = len(rows), or all rows. The row of a
        NotPositiveDefiniteError counts among these n.
        """


@runtime_checkable
class HasDense(Protocol):
    """A Gram matrix whose entries cost time to get; an operator need not be one."""

    def dense(self, rows: Indices) -> Tile | None:
        """G[rows][:, rows] for repeated use, where a `cholesky` of it takes that memory anyway; else None.

        Symmetric Grams only.
        """


@runtime_checkable
class _Multiplies(Protocol):
    """Tells operators from corpora and arrays. Only cheap members: Python 3.11 evaluates each of them."""

    @property
    def layout(self) -> GramLayout: ...
    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix: ...


def is_operator(evidence: object) -> TypeGuard[GramOperator]:
    """Whether this is a Gram operator rather than a corpus or an array."""
    return isinstance(evidence, _Multiplies)


def check_operator(gram: object) -> None:
    """A learner reads Gram matrices that know their layout, not bare arrays and not corpora."""
    if not is_operator(gram):
        raise LearnerError(
            f"expected a Gram matrix, got {type(gram).__name__}; give DenseGram(matrix, lengths), "
            "DenseGram.of(kernel, training corpus), with the new corpus as third argument to predict, or a StoredGram"
        )


def check_square(gram: GramOperator) -> None:
    """Training compares training positions with each other."""
    check_operator(gram)
    if not gram.layout.is_symmetric:
        raise LearnerError(
            f"a learner trains on a square Gram matrix, but this one is rectangular, {gram.shape[0]} x "
            f"{gram.shape[1]}; build it from the training corpus alone"
        )


def check_rows(cross: GramOperator, n_rows: int, what: str = "positions") -> None:
    """The Gram to predict from has the rows of the training, which are `what`."""
    check_operator(cross)
    if cross.shape[0] != n_rows:
        raise LearnerError(
            f"the Gram matrix to predict from has {cross.shape[0]} rows, but training had {n_rows}; "
            f"rows are the training {what}, columns the new ones"
        )


def check_cross(
    cross: GramOperator, n_rows: int, label_names: tuple[str, ...], *, uniform_prior: bool | None = None
) -> None:
    """Rows, labels and kind of prior P(y|x) of the Gram to predict from are those of the training.

    `uniform_prior` None: the learner reads no prior.
    """
    check_rows(cross, n_rows)
    if cross.label_names is not None and tuple(cross.label_names) != label_names:
        raise LearnerError(
            f"the Gram matrix to predict from has the labels {', '.join(cross.label_names)}, "
            f"but training had {', '.join(label_names)}"
        )
    if uniform_prior is not None and (cross.row_prior is None) != uniform_prior:
        raise LearnerError("training and prediction need the same prior, but only one of the two has a uniform one")
