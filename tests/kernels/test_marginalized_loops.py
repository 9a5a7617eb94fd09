"""Loops that every position labeling kernel shares."""

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels.marginalized_loops import mirror, multiply_marginals


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mirror(n, dtype):
    tile = np.random.default_rng(n).random((n, n)).astype(dtype)
    expected = np.triu(tile) + np.triu(tile, 1).T
    interpreted = tile.copy()
    mirror(tile)
    mirror.py_func(interpreted)
    assert np.array_equal(tile, expected)
    assert np.array_equal(interpreted, expected)


@pytest.mark.parametrize("n_labels", [1, 3])
def test_multiply_marginals(n_labels):
    rng = np.random.default_rng(n_labels)
    left, right, kx = rng.random((2, n_labels)), rng.random((n_labels, 5)), rng.random((4, 5))
    compiled, interpreted = np.zeros((2, 4, 5))
    multiply_marginals(left, right, kx, compiled)
    multiply_marginals.py_func(left, right, kx, interpreted)
    assert_close(compiled[:2], kx[:2] * (left @ right))
    assert_close(interpreted, compiled)
