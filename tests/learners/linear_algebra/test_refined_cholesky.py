"""A single-precision factor refined to double precision; a double one where that fails; neither where none helps."""

import numpy as np
import pytest

from gramline.learners.linear_algebra import cholesky
from gramline.learners.linear_algebra.cholesky import solve_refined


@pytest.fixture(autouse=True)
def _no_system_is_small(monkeypatch):
    monkeypatch.setattr(cholesky, "SMALL", 0)


def with_condition(condition: float, size: int = 30) -> np.ndarray:
    """A positive definite matrix with eigenvalues from 1 down to 1 / condition."""
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))
    return (basis * np.geomspace(1.0, 1.0 / condition, size)) @ basis.T


def solved(matrix: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray | None, list[type]]:
    """The solution and the precisions in which a factor was tried."""
    tried: list[type] = []

    def made(dtype: type) -> np.ndarray:
        tried.append(dtype)
        return np.triu(matrix).astype(dtype)

    return solve_refined(made, lambda block: matrix @ block, sides), tried


@pytest.mark.parametrize(
    ("condition", "precisions"), [(1e2, [np.float32]), (1e5, [np.float32]), (1e11, [np.float32, np.float64])]
)
def test_the_residual_is_that_of_double_precision(condition, precisions):
    matrix = with_condition(condition)
    sides = matrix @ np.random.default_rng(1).normal(size=(30, 4))
    value, tried = solved(matrix, sides)
    assert tried == precisions
    assert value is not None
    assert np.all(np.linalg.norm(matrix @ value - sides, axis=0) <= 1e-10 * np.linalg.norm(sides, axis=0))


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    value, tried = solved(np.diag([1.0, -1.0, 2.0]), np.ones((3, 1)))
    assert value is None
    assert tried == [np.float32, np.float64]


def test_nothing_to_solve_is_solved():
    value, _ = solved(np.eye(3), np.zeros((3, 2)))
    assert value is not None
    assert not value.any()


def test_a_small_system_has_a_factor_in_double_precision_at_once(monkeypatch):
    monkeypatch.setattr(cholesky, "SMALL", 30)
    matrix = with_condition(1e14)
    value, tried = solved(matrix, matrix @ np.ones((30, 1)))
    assert tried == [np.float64]
    assert value is not None
    assert np.linalg.norm(matrix @ value - matrix @ np.ones((30, 1))) < 1e-12


def test_a_system_without_rows_is_solved():
    value, tried = solved(np.zeros((0, 0)), np.zeros((0, 2)))
    assert value is not None
    assert value.shape == (0, 2)
    assert tried == []
