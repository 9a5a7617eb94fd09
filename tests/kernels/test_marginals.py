"""The loop that every position labeling kernel shares."""

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels.marginals import multiply_marginals


@pytest.mark.parametrize("n_labels", [1, 3])
def test_multiply_marginals(n_labels):
    rng = np.random.default_rng(n_labels)
    left, right, kx = rng.random((2, n_labels)), rng.random((n_labels, 5)), rng.random((4, 5))
    compiled, interpreted = np.zeros((2, 4, 5))
    multiply_marginals(left, right, kx, compiled)
    multiply_marginals.py_func(left, right, kx, interpreted)
    assert_close(compiled[:2], kx[:2] * (left @ right))
    assert_close(interpreted, compiled)
