"""Whether a Gram matrix is one that a learner can train on, or predict from after its training."""

from __future__ import annotations

from gramline.learners.errors import LearnerError
from gramline.learners.operators.operator import GramOperator, is_operator


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
