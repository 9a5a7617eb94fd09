"""Factors of B = diag(shift) + diag(s) K diag(s): LAPACK, by tiles and of low rank, against plain linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.errors import LearnerError, NotPositiveDefiniteError
from gramline.learners.gaussian_process.low_rank import LowRankCovariance, pivoted_cholesky
from gramline.learners.linear_algebra.cholesky import cholesky, lower_column_squares, scaled_lower
from gramline.learners.linear_algebra.tiled_cholesky import ScaledTiles, TiledFactor, factor_tile
from gramline.learners.operators.dense import DenseGram

N = 23
RANDOM = np.random.default_rng(5)
BASIS = RANDOM.standard_normal((N, 30))
GRAM = BASIS @ BASIS.T
SCALE = RANDOM.uniform(0.1, 2.0, N)
SHIFT = RANDOM.uniform(0.5, 2.0, N)
RIGHT = RANDOM.standard_normal((N, 4))


class BlocksOf:
    """The tiles of a matrix in memory."""

    def __init__(self, matrix: np.ndarray, starts: np.ndarray) -> None:
        self.matrix, self.starts = matrix, starts

    def get(self, i: int, j: int) -> np.ndarray:
        rows, cols = slice(*self.starts[i : i + 2]), slice(*self.starts[j : j + 2])
        return self.matrix[rows, cols]


class MemoryTiles:
    """The tiles of L in a dictionary."""

    def __init__(self) -> None:
        self.tiles: dict[tuple[int, int], np.ndarray] = {}

    def get(self, i: int, j: int) -> np.ndarray:
        return self.tiles[i, j]

    def put(self, i: int, j: int, tile: np.ndarray) -> None:
        self.tiles[i, j] = tile


def tiled(matrix: np.ndarray, scale: np.ndarray, shift: Any, starts: list[int]) -> Any:
    blocks, factor = np.array(starts), MemoryTiles()
    source = ScaledTiles(BlocksOf(matrix, blocks), blocks, scale, shift)
    for j in range(len(blocks) - 1):
        for i in range(j, len(blocks) - 1):
            factor_tile(i, j, source, factor, int(blocks[j]))
    return TiledFactor(factor, blocks)


def inverted(factor: Any) -> Any:
    factor.inverse_diagonal()
    return factor


def low_rank(rank: int) -> Any:
    pivoted = pivoted_cholesky(lambda chosen: GRAM[:, chosen], np.diagonal(GRAM).copy(), rank)
    return LowRankCovariance(pivoted, jitter=0.0).factor(SCALE)


FACTORS = {
    "lapack": lambda: cholesky(GRAM, SCALE, SHIFT),
    "lapack, inverted": lambda: inverted(cholesky(GRAM, SCALE, SHIFT)),
    "operator": lambda: DenseGram(GRAM, [10, 13]).cholesky(SCALE, SHIFT),
    "tiles": lambda: tiled(GRAM, SCALE, SHIFT, [0, 7, 14, 21, 23]),
    "one tile": lambda: tiled(GRAM, SCALE, SHIFT, [0, N]),
    "uneven tiles": lambda: tiled(GRAM, SCALE, SHIFT, [0, 1, 12, 22, 23]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_the_matrix(name: str) -> None:
    dense = np.diag(SHIFT) + SCALE[:, None] * GRAM * SCALE
    inverse = np.linalg.inv(dense)
    factor = FACTORS[name]()
    assert_close(factor.log_determinant(), np.linalg.slogdet(dense)[1])
    assert_close(factor.solve(RIGHT), inverse @ RIGHT)
    assert_close(factor.quadratic(RIGHT), np.diagonal(RIGHT.T @ inverse @ RIGHT))
    assert_close(factor.half_solve(RIGHT), np.linalg.solve(np.linalg.cholesky(dense), RIGHT))
    assert_close(factor.inverse_diagonal(), np.diagonal(inverse))
    assert_close(factor.solve(RIGHT), inverse @ RIGHT)


def test_rows_are_chosen_and_ordered() -> None:
    rows = np.array([4, 2, 19, 7])
    dense = np.eye(4) + SCALE[:4, None] * GRAM[np.ix_(rows, rows)] * SCALE[:4]
    factor = DenseGram(GRAM, [N]).cholesky(SCALE[:4], rows=rows)
    assert_close(factor.solve(np.eye(4)), np.linalg.inv(dense))


def test_float32_is_factored_in_float64() -> None:
    stored = GRAM.astype(np.float32)
    assert_close(cholesky(stored, SCALE).solve(RIGHT), cholesky(stored.astype(float), SCALE).solve(RIGHT))


def test_the_lower_triangle_is_handed_out_until_it_is_used_up() -> None:
    factor = cholesky(GRAM, SCALE, SHIFT)
    lower = factor.lower()
    assert_close(lower @ lower.T, np.diag(SHIFT) + SCALE[:, None] * GRAM * SCALE)
    factor.inverse_diagonal()
    with pytest.raises(LearnerError, match="inverse_diagonal has overwritten L; call lower before"):
        factor.lower()


def test_nothing_to_factor() -> None:
    factor = cholesky(GRAM, np.zeros(0), rows=np.zeros(0, np.int64))
    assert factor.log_determinant() == 0.0
    assert factor.solve(np.zeros((0, 2))).shape == (0, 2)
    assert factor.inverse_diagonal().shape == (0,)


@pytest.mark.parametrize("make", [cholesky, lambda K, s: tiled(K, s, 1.0, [0, 2, 4])], ids=["lapack", "tiles"])
def test_a_negative_pivot_is_named(make: Any) -> None:
    matrix = np.diag([1.0, 2.0, 3.0, -5.0])
    matrix[3, 2] = matrix[2, 3] = 2.0
    with pytest.raises(NotPositiveDefiniteError, match="definite: pivot -5 at row 3; is the kernel positive") as caught:
        make(matrix, np.ones(4))
    assert caught.value.row == 3
    assert_close(caught.value.pivot, 1.0 - 5.0 - 2.0**2 / 4.0)
    with pytest.raises(NotPositiveDefiniteError) as first:
        make(-matrix - 3 * np.eye(4), np.ones(4))
    assert first.value.row == 0


def test_compiled_loops_are_the_python_ones() -> None:
    rows = np.array([3, 0, 5])
    compiled, plain = np.zeros((3, 3)), np.zeros((3, 3))
    scaled_lower(GRAM, rows, SCALE[:3], SHIFT[:3], compiled)
    scaled_lower.py_func(GRAM, rows, SCALE[:3], SHIFT[:3], plain)  # type: ignore[attr-defined]
    assert (compiled == plain).all()
    assert_close(plain, np.tril(SCALE[:3, None] * GRAM[np.ix_(rows, rows)] * SCALE[:3] + np.diag(SHIFT[:3])))
    assert (lower_column_squares(compiled) == lower_column_squares.py_func(compiled)).all()  # type: ignore[attr-defined]


def test_low_rank_factor_at_full_rank() -> None:
    dense = np.eye(N) + SCALE[:, None] * GRAM * SCALE
    factor = low_rank(N)
    assert_close(factor.log_determinant(), np.linalg.slogdet(dense)[1])
    assert_close(factor.solve(RIGHT), np.linalg.solve(dense, RIGHT))
    assert_close(factor.quadratic(RIGHT), np.diagonal(RIGHT.T @ np.linalg.solve(dense, RIGHT)))
    assert_close(factor.inverse_diagonal(), np.diagonal(np.linalg.inv(dense)))


@pytest.mark.parametrize("rank", [1, 6, N])
def test_low_rank_keeps_the_diagonal_and_its_own_matrix(rank: int) -> None:
    pivoted = pivoted_cholesky(lambda chosen: GRAM[:, chosen], np.diagonal(GRAM).copy(), rank)
    covariance = LowRankCovariance(pivoted)
    dense = pivoted.basis @ pivoted.basis.T + np.diag(pivoted.residual)
    assert_close(covariance.diagonal(), np.diagonal(GRAM))
    assert_close(covariance.multiply(RIGHT), dense @ RIGHT)
    assert_close(covariance.columns(np.array([5, 1])), dense[:, [5, 1]])
    assert_close(
        covariance.factor(SCALE).solve(RIGHT), np.linalg.solve(np.eye(N) + SCALE[:, None] * dense * SCALE, RIGHT)
    )
    assert_close(pivoted.basis[pivoted.pivots], np.linalg.cholesky(GRAM[np.ix_(pivoted.pivots, pivoted.pivots)]))


def test_pivoting_stops_at_the_rank_of_the_matrix() -> None:
    thin = BASIS[:, :5]
    pivoted = pivoted_cholesky(lambda chosen: thin @ thin[chosen].T, (thin**2).sum(axis=1), N)
    assert len(pivoted.pivots) == 5
    assert_close(pivoted.basis @ pivoted.basis.T, thin @ thin.T)
    nothing = pivoted_cholesky(lambda chosen: np.zeros((3, len(chosen))), np.zeros(3), 3)
    assert nothing.basis.shape == (3, 0)


def test_pivoting_refuses_what_is_not_positive_semidefinite() -> None:
    bad = GRAM - 0.5 * np.diagonal(GRAM).max() * np.eye(N)
    with pytest.raises(NotPositiveDefiniteError) as negative:
        pivoted_cholesky(lambda chosen: bad[:, chosen], np.diagonal(bad).copy(), N)
    assert negative.value.pivot < 0
    with pytest.raises(NotPositiveDefiniteError) as second:
        pivoted_cholesky(lambda chosen: np.zeros((2, len(chosen))), np.array([0.0, -1.0]), 1)
    assert second.value.row == 1


@pytest.mark.parametrize("rank", [20, 150])
def test_pivots_come_in_few_blocks_and_explain_as_much_as_greedy_ones(rank: int) -> None:
    points = np.sort(np.random.default_rng(5).gamma(1.0, size=400))
    gram = np.exp(-np.abs(points[:, None] - points))  # its eigenvalues fall slowly
    asked: list[int] = []

    def columns(chosen: Indices) -> Matrix:
        asked.append(len(chosen))
        return gram[:, chosen]

    pivoted = pivoted_cholesky(columns, np.ones(len(gram)), rank)
    assert len(set(pivoted.pivots)) == rank
    assert len(asked) <= 8
    rest = gram
    for _ in range(rank):
        pivot = int(np.diagonal(rest).argmax())
        rest = rest - rest[:, [pivot]] * rest[pivot] / rest[pivot, pivot]
    assert pivoted.residual.sum() <= 1.5 * np.trace(rest)
