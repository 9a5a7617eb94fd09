"""What every Gram operator must do: the same tests over matrices in memory, computed, stored, and parts of stores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL, WITH_PRIOR, corpus
from tolerances import assert_close

from gramline.kernels import Linear, SequenceLabeling, UniformPrior
from gramline.learners.errors import LearnerError, NotPositiveDefiniteError
from gramline.learners.gaussian_process.covariance import ExactCovariance
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.observation import ObservationGram
from gramline.learners.operators.operator import GramOperator, HasDense
from gramline.pipeline import Corpus, append_gram, build_gram
from gramline.pipeline.gram.cache import LeadingGram
from gramline.pipeline.gram.store import TileStore

Make = Callable[[SequenceLabeling, Corpus, Corpus | None], GramOperator]
BLOCK_ROWS = 9
OPERATORS = ["dense", "observation", "computed", "stored", "stored float32", "compressed", "leading"]


@pytest.fixture(scope="module", params=OPERATORS)
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A maker of operators; equal arguments give the same one, so that each is built once."""
    made: dict[object, GramOperator] = {}
    folder = tmp_path_factory.mktemp("operators")

    def build(kernel: SequenceLabeling, rows: Corpus, cols: Corpus | None = None) -> GramOperator:
        key = (kernel, rows.fingerprint, cols and cols.fingerprint)
        if key not in made:
            made[key] = _operator(request.param, kernel, rows, cols, folder / str(len(made)))
        return made[key]

    return build


def _operator(name: str, kernel: SequenceLabeling, rows: Corpus, cols: Corpus | None, path: Path) -> GramOperator:
    if name == "dense":
        return DenseGram.of(kernel, rows, cols, block_rows=BLOCK_ROWS)
    if name == "observation":
        return _observation(kernel, rows, cols)
    if name == "computed":
        return ComputedGram(kernel, *kernel.prepared_pair(rows, cols), block_rows=BLOCK_ROWS)
    if name == "leading" and cols is None:
        build_gram(kernel, rows, path, block_rows=BLOCK_ROWS)
        if isinstance(kernel.prior, UniformPrior):  # others depend on what is appended
            append_gram(path, corpus(4, seed=7))
        return LeadingGram(TileStore(str(path)), len(rows))
    dtype = "float32" if "float32" in name else "float64"
    compression = "lz4" if name == "compressed" else None
    return build_gram(kernel, rows, path, other=cols, block_rows=BLOCK_ROWS, dtype=dtype, compression=compression)


def _observation(kernel: SequenceLabeling, rows: Corpus, cols: Corpus | None) -> GramOperator:
    """Positions with features whose scalar products are the Gram matrix of the kernel."""
    tokens = rows.tokens + (cols.tokens if cols else [])
    both = kernel.gram(Corpus.from_sequences(tokens, labels=rows.label_names))
    values, vectors = np.linalg.eigh(both)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    n = rows.n_positions
    others = (features[n:], cols.lengths) if cols else (None, None)
    return ObservationGram(Linear(), features[:n], rows.lengths, *others, block_rows=BLOCK_ROWS)


ROWS, COLS = corpus(10), corpus(6, seed=3)


@cache  # not at import: every process that collects the tests would compile the kernel
def symmetric() -> np.ndarray:  # type: ignore[type-arg]
    return KERNEL.gram(ROWS)


@cache
def rectangular() -> np.ndarray:  # type: ignore[type-arg]
    return KERNEL.gram(ROWS, COLS)


def close(gram: GramOperator, actual: object, expected: object) -> None:
    """To the rounding of what is stored."""
    stored_single = gram.tile(0, 0).dtype == np.float32
    assert_close(np.asarray(actual, np.float32) if stored_single else actual, expected)


def weights(n_rows: int, n_columns: int = 3) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(1).normal(size=(n_rows, n_columns))


def test_shape_and_layout_agree(make: Make) -> None:
    gram, cross = make(KERNEL, ROWS, None), make(KERNEL, ROWS, COLS)
    assert gram.shape == gram.layout.shape == symmetric().shape
    assert cross.shape == cross.layout.shape == rectangular().shape
    assert gram.layout.is_symmetric
    assert not cross.layout.is_symmetric
    assert gram.layout.rows.n_blocks > 3


def test_tiles_are_blocks_of_the_full_matrix(make: Make) -> None:
    for gram, matrix in ((make(KERNEL, ROWS, None), symmetric()), (make(KERNEL, ROWS, COLS), rectangular())):
        for i in range(gram.layout.rows.n_blocks):
            for j in range(gram.layout.cols.n_blocks):
                close(gram, gram.tile(i, j), matrix[gram.layout.rows.rows(i), gram.layout.cols.rows(j)])


@pytest.mark.parametrize("chosen", [None, [2, 0, 1], []])
def test_column_blocks_come_in_the_order_asked_for(make: Make, chosen: list[int] | None) -> None:
    for gram in (make(KERNEL, ROWS, None), make(KERNEL, ROWS, COLS)):
        for j in range(gram.layout.cols.n_blocks):
            found = list(gram.column_blocks(j, chosen))
            assert [i for i, _ in found] == (list(range(gram.layout.rows.n_blocks)) if chosen is None else chosen)
            for i, tile in found:
                np.testing.assert_array_equal(tile, gram.tile(i, j))


@pytest.mark.parametrize("n_columns", [1, 9])
def test_matmul(make: Make, n_columns: int) -> None:
    gram, cross = make(KERNEL, ROWS, None), make(KERNEL, ROWS, COLS)
    W = weights(len(symmetric()), n_columns)
    close(gram, gram.matmul(W), symmetric() @ W)
    close(gram, gram.matmul(W, transpose=True), symmetric() @ W)
    close(cross, cross.matmul(W, transpose=True), rectangular().T @ W)
    V = weights(rectangular().shape[1], n_columns)
    close(cross, cross.matmul(V), rectangular() @ V)


def test_matmul_with_zero_rows_and_nothing_at_all(make: Make) -> None:
    gram, cross = make(KERNEL, ROWS, None), make(KERNEL, ROWS, COLS)
    W = np.zeros((len(symmetric()), 2))
    assert not gram.matmul(W).any()
    W[3] = 1.0
    close(gram, gram.matmul(W), symmetric() @ W)
    close(cross, cross.matmul(W, transpose=True), rectangular().T @ W)
    assert gram.matmul(np.zeros((len(symmetric()), 0))).shape == (len(symmetric()), 0)


def test_select_gives_rows_and_columns_in_any_order(make: Make) -> None:
    rows, cols = np.array([30, 2, 11, 2]), np.array([0, 17, 5])
    for gram, matrix in ((make(KERNEL, ROWS, None), symmetric()), (make(KERNEL, ROWS, COLS), rectangular())):
        selected = gram.select(rows, cols)
        assert selected.dtype == gram.tile(0, 0).dtype
        close(gram, selected, matrix[np.ix_(rows, cols)])
        assert gram.select(rows[:0], cols).shape == (0, 3)


def test_diagonals(make: Make) -> None:
    gram, cross = make(KERNEL, ROWS, None), make(KERNEL, ROWS, COLS)
    close(gram, gram.diagonal(), np.diagonal(symmetric()))
    assert gram.col_diagonal is not None
    close(gram, gram.col_diagonal, np.diagonal(symmetric()))
    assert cross.col_diagonal is not None
    close(cross, cross.col_diagonal, np.diagonal(KERNEL.gram(COLS)))


def test_cholesky_solves(make: Make) -> None:
    gram = make(KERNEL, ROWS, None)
    rows = np.array([5, 2, 30, 11])
    scale = np.array([1.0, 0.5, 2.0, 1.5])
    matrix = np.eye(4) * 2.0 + scale[:, None] * symmetric()[np.ix_(rows, rows)] * scale
    X = weights(4, 2)
    close(gram, gram.cholesky(scale, 2.0, rows).solve(X), np.linalg.solve(matrix, X))
    whole = gram.cholesky(np.ones(len(symmetric())), 1.0)
    assert whole.log_determinant() == pytest.approx(
        np.linalg.slogdet(np.eye(len(symmetric())) + symmetric())[1], rel=1e-5
    )
    with pytest.raises(LearnerError, match="only a s"):
        make(KERNEL, ROWS, COLS).cholesky(np.ones(3))
    with pytest.raises(NotPositiveDefiniteError) as caught:
        gram.cholesky(scale, np.array([2.0, 2.0, -1e9, 2.0]), rows)
    assert caught.value.row == 2  # among those four


def test_what_is_dense_for_factors_is_the_matrix(make: Make) -> None:
    gram, rows = make(KERNEL, ROWS, None), np.array([5, 2, 30, 11])
    if isinstance(gram, HasDense):
        close(gram, gram.dense(rows), symmetric()[np.ix_(rows, rows)])
    else:
        assert isinstance(gram, DenseGram)  # in memory as it is


def test_a_covariance_is_the_same_before_and_after_its_first_factor(make: Make) -> None:
    gram, rows, chosen = make(KERNEL, ROWS, None), np.array([5, 2, 30, 11]), np.array([3, 0])
    covariance = ExactCovariance(gram, rows, 0.25)
    expected = symmetric()[np.ix_(rows, rows)] + 0.25 * np.eye(4)
    for _ in range(2):
        close(gram, covariance.multiply(weights(4, 3)), expected @ weights(4, 3))
        close(gram, covariance.columns(chosen), expected[:, chosen])
        close(gram, covariance.factor(np.full(4, 0.5)).solve(np.eye(4)), np.linalg.inv(np.eye(4) + expected / 4))


def test_labels_and_priors(make: Make) -> None:
    plain = make(KERNEL, ROWS, COLS)
    if isinstance(plain, ObservationGram):
        assert (plain.label_names, plain.row_prior, plain.col_prior, plain.label_kernel) == (None,) * 4
        return
    assert plain.label_names == ("B", "O")
    assert plain.row_prior is None
    assert plain.col_prior is None
    assert plain.label_kernel is None
    gram, cross = make(WITH_PRIOR, ROWS, None), make(WITH_PRIOR, ROWS, COLS)
    rows, cols = WITH_PRIOR.prepared_pair(ROWS, COLS)
    assert rows.prior is not None
    assert cols is not None
    np.testing.assert_array_equal(gram.row_prior, rows.prior)
    np.testing.assert_array_equal(gram.col_prior, rows.prior)
    np.testing.assert_array_equal(cross.row_prior, rows.prior)
    np.testing.assert_array_equal(cross.col_prior, cols.prior)
    kernel = SequenceLabeling(label_kernel=((2.0, 1.0), (1.0, 3.0)))
    np.testing.assert_array_equal(make(kernel, ROWS, None).label_kernel, [[2, 1], [1, 3]])
