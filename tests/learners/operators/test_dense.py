from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels.errors import KernelError
from gramline.kernels.priors import EmpiricalPrior
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LayoutError, LearnerError
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.corpus.corpus import Corpus

KERNEL = SequenceLabeling(c=0.9, prior=EmpiricalPrior())
TRAIN = Corpus.from_sequences(
    [["a", "b", "c"], ["b", "b"], ["c", "a", "a", "b"]], [["x", "y", "y"], ["y", "y"], ["x", "x", "x", "y"]]
)
NEW = Corpus.from_sequences([["b", "a"], ["d"], ["a", "b", "c"]])


def operators(block_rows: int | None, other: bool) -> list[Any]:
    rows, cols = KERNEL.prepared_pair(TRAIN, NEW if other else None)
    return [
        DenseGram.of(KERNEL, TRAIN, NEW if other else None, block_rows=block_rows),
        ComputedGram(KERNEL, rows, cols, block_rows=block_rows),
    ]


@pytest.mark.parametrize("block_rows", [4, 5, None])
@pytest.mark.parametrize("other", [False, True], ids=["square", "between"])
def test_every_operator_is_the_matrix_of_the_kernel(block_rows: int | None, other: bool) -> None:
    matrix = KERNEL.gram(TRAIN, NEW if other else None)
    new = KERNEL.prepared_pair(TRAIN, NEW)[1]
    assert new is not None
    draw = np.random.default_rng(0)
    wide, tall = draw.normal(size=(matrix.shape[1], 3)), draw.normal(size=(matrix.shape[0], 3))
    for gram in operators(block_rows, other):
        rows, cols = gram.layout.rows, gram.layout.cols
        assert gram.shape == matrix.shape
        assert gram.layout.is_symmetric is not other
        for j in range(cols.n_blocks):
            for i, tile in gram.column_blocks(j):
                assert_close(tile, matrix[rows.rows(i), cols.rows(j)])
                assert_close(gram.tile(i, j), tile)
            assert [i for i, _ in gram.column_blocks(j, [rows.n_blocks - 1])] == [rows.n_blocks - 1]
        assert_close(gram.matmul(wide), matrix @ wide)
        assert_close(gram.matmul(tall, transpose=True), matrix.T @ tall)
        assert gram.label_names == ("y", "x")
        assert gram.label_kernel is None
        assert gram.row_prior.shape == (9, 2)
        assert gram.col_prior.shape == (matrix.shape[1], 2)
        assert_close(gram.col_diagonal, np.diag(KERNEL.tile(new, new) if other else matrix))
        if not other:
            assert_close(gram.diagonal(), np.diag(matrix))
            factor = gram.cholesky(np.ones(9))
            assert_close(factor.solve(np.eye(9)), np.linalg.inv(np.eye(9) + matrix))
            if not isinstance(gram, DenseGram):
                assert_close(gram.dense(np.array([7, 0, 2])), matrix[np.ix_([7, 0, 2], [7, 0, 2])])


def test_a_computed_gram_skips_what_meets_only_zeros() -> None:
    rows, cols = KERNEL.prepared_pair(TRAIN, NEW)
    gram = ComputedGram(KERNEL, rows, cols, block_rows=4)
    weights = np.zeros((9, 2))
    weights[3, 1] = 1.0
    product = gram.matmul(weights, transpose=True)
    assert gram.values_computed == 2 * gram.shape[1]  # the structure of that row has two
    assert_close(product[:, 1], KERNEL.gram(TRAIN, NEW)[3])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, np.longdouble, ">f8", np.float32])
def test_a_matrix_of_any_real_numbers_can_be_factored(dtype: Any) -> None:
    matrix = np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1)
    gram = DenseGram(matrix.astype(dtype), [3])
    assert_close(gram.matmul(np.eye(3)), matrix)
    assert_close(gram.cholesky(np.ones(3)).solve(np.eye(3)), np.linalg.inv(matrix + np.eye(3)))


EYE = np.eye(2)
REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((EYE, [1, 2]), {}, r"the matrix has shape \(2, 2\), but the lengths add up to \(3, 3\)"),
    (([[np.nan]], [1]), {}, "the matrix contains a value that is not a finite number"),
    (([["1"]], [1]), {}, "the matrix contains a value that is not a finite number"),
    (([[1.0, 2.0], [3.0, 1.0]], [2]), {}, r"not symmetric: \(0, 1\) is 2, but \(1, 0\) is 3; give other_lengths"),
    ((EYE, [2]), {"row_prior": [[0.5, 0.5]]}, r"row_prior has shape \(1, 2\), but there are 2 positions"),
    (
        (EYE, [2]),
        {"row_prior": [[0.5, 0.5], [1.5, -0.5]]},
        r"row_prior of row 1 has values from -0\.5 to 1\.5 and the sum 1; give",
    ),
    (
        (EYE, [2]),
        {"row_prior": [[0.5, 0.6], [0.5, 0.5]]},
        r"row_prior of row 0 has values from 0\.5 to 0\.6 and the sum 1\.1",
    ),
    (
        (EYE, [2]),
        {"label_kernel": [[1, 2], [2, 1]]},
        r"label_kernel is not positive semidefinite .smallest eigenvalue -1",
    ),
    (
        (EYE, [2], [2]),
        {"col_diagonal": [1.0, np.nan]},
        "col_diagonal contains a value that is not a finite number",
    ),
    ((EYE, [2], [2]), {"col_diagonal": [1.0]}, r"col_diagonal has shape \(1,\), but there are 2 columns"),
    ((EYE, [2]), {"label_names": ["a", "b", "a"]}, "the label 'a' is listed twice; list each label once"),
    (
        (EYE, [2]),
        {"label_names": ["a", "b", "c"], "label_kernel": EYE},
        "label_kernel has 2 columns, but there are 3 labels",
    ),
    *(((EYE, lengths), {}, "lengths must list how many positions") for lengths in (None, 2, [1.5, 0.5], [[2]])),
    ((EYE, [-1, 3]), {}, "structure 0 has -1 positions; a length is at least 0"),
]


@pytest.mark.parametrize(("given", "settings", "sentence"), REFUSED)
def test_refusals_say_what_and_where(given: tuple[Any, ...], settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((LearnerError, KernelError), match=sentence):
        DenseGram(*given, **settings)


def test_a_matrix_between_two_corpora_is_not_square() -> None:
    _, computed = operators(4, other=True)
    with pytest.raises(LayoutError) as error:
        computed.diagonal()
    assert str(error.value) == "only a symmetric Gram matrix has a diagonal, this one is (9, 6) between two corpora"
    with pytest.raises(LearnerError, match="has 2 rows, but the Gram matrix needs 9"):
        computed.matmul(np.zeros((2, 1)), transpose=True)
    for gram in operators(4, other=True):
        with pytest.raises(LayoutError):
            gram.cholesky(np.ones(9))
