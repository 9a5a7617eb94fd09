"""The factor of a covariance of low rank is made a few rows at a time, and is that of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.learners.gaussian_process import low_rank
from gramline.learners.gaussian_process.low_rank import LowRankFactor


@pytest.mark.parametrize("rows_at_once", [1, 7, 100])
def test_a_factor_in_blocks_is_the_factor(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "ROWS_AT_ONCE", rows_at_once)
    draw = np.random.default_rng(0)
    diagonal, scale, basis = draw.uniform(1.0, 2.0, 30), draw.uniform(0.0, 2.0, 30), draw.normal(size=(30, 4))
    whole = np.diag(diagonal) + (scale[:, None] * basis) @ (scale[:, None] * basis).T
    factor, X = LowRankFactor(diagonal, scale, basis), draw.normal(size=(30, 2))
    np.testing.assert_allclose(factor.solve(X), np.linalg.solve(whole, X), rtol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(np.linalg.inv(whole)), rtol=1e-10)
    np.testing.assert_allclose(factor.log_determinant(), np.linalg.slogdet(whole)[1], rtol=1e-10)
    np.testing.assert_allclose(factor.quadratic(X), (X * np.linalg.solve(whole, X)).sum(axis=0), rtol=1e-10)
