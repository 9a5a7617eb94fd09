from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels.errors import KernelError
from gramline.kernels.priors import EmpiricalPrior
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LearnerError
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
        assert gram.label_names == ("x", "y")
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
    class Counting(ComputedGram):
        n_tiles = 0

        def tile(self, i: int, j: int) -> Any:
            self.n_tiles += 1
            return super().tile(i, j)

    rows, cols = KERNEL.prepared_pair(TRAIN, NEW)
    gram = Counting(KERNEL, rows, cols, block_rows=4)
    weights = np.zeros((9, 2))
    weights[3, 1] = 1.0
    product = gram.matmul(weights, transpose=True)
    assert gram.n_tiles == gram.layout.cols.n_blocks
    assert_close(product[:, 1], KERNEL.gram(TRAIN, NEW)[3])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, np.longdouble, ">f8", np.float32])
def test_a_matrix_of_any_real_numbers_can_be_factored(dtype: Any) -> None:
    matrix = np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1)
    gram = DenseGram(matrix.astype(dtype), [3])
    assert_close(gram.matmul(np.eye(3)), matrix)
    assert_close(gram.cholesky(np.ones(3)).solve(np.eye(3)), np.linalg.inv(matrix + np.eye(3)))


def test_refusals_say_what_and_where() -> None:
    with pytest.raises(LearnerError, match=r"shape \(2, 2\), but the lengths add up to \(3, 3\)"):
        DenseGram(np.eye(2), [1, 2])
    with pytest.raises(LearnerError, match="not a finite number"):
        DenseGram([[np.nan]], [1])
    with pytest.raises(LearnerError, match=r"not symmetric: \(0, 1\) is 2, but \(1, 0\) is 3"):
        DenseGram([[1.0, 2.0], [3.0, 1.0]], [2])
    with pytest.raises(LearnerError, match=r"row_prior has shape \(1, 2\), but there are 2 positions"):
        DenseGram(np.eye(2), [2], row_prior=[[0.5, 0.5]])
    with pytest.raises(LearnerError, match=r"row_prior of row 1 has values from -0\.5 to 1\.5 and the sum 1; give"):
        DenseGram(np.eye(2), [2], row_prior=[[0.5, 0.5], [1.5, -0.5]])
    with pytest.raises(LearnerError, match=r"row_prior of row 0 has values from 0\.5 to 0\.6 and the sum 1\.1"):
        DenseGram(np.eye(2), [2], row_prior=[[0.5, 0.6], [0.5, 0.5]])
    with pytest.raises(KernelError, match=r"label_kernel is not positive semidefinite .smallest eigenvalue -1"):
        DenseGram(np.eye(2), [2], label_kernel=[[1, 2], [2, 1]])
    with pytest.raises(LearnerError, match="col_diagonal contains a value that is not a finite number"):
        DenseGram(np.eye(2), [2], [2], col_diagonal=[1.0, np.nan])
    with pytest.raises(LearnerError, match="the label 'a' is listed twice"):
        DenseGram(np.eye(2), [2], label_names=["a", "b", "a"])
    with pytest.raises(LearnerError, match="not a finite number"):
        DenseGram([["1"]], [1])
    for lengths in (None, 2, [1.5, 0.5], [[2]]):
        with pytest.raises(LearnerError, match="lengths must list how many positions"):
            DenseGram(np.eye(2), lengths)
    with pytest.raises(LearnerError, match="structure 0 has -1 positions"):
        DenseGram(np.eye(2), [-1, 3])
    with pytest.raises(LearnerError, match="label_kernel has 2 columns, but there are 3 labels"):
        DenseGram(np.eye(2), [2], label_names="abc", label_kernel=np.eye(2))
    _, computed = operators(4, other=True)
    with pytest.raises(LearnerError, match="has no diagonal"):
        computed.diagonal()
    with pytest.raises(LearnerError, match="has 2 rows, but the Gram matrix needs 9"):
        computed.matmul(np.zeros((2, 1)), transpose=True)
    for gram in operators(4, other=True):
        with pytest.raises(LearnerError, match="only a square Gram matrix"):
            gram.cholesky(np.ones(9))
