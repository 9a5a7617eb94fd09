from __future__ import annotations

import numpy as np
from tolerances import assert_close

from gramline.learners.chains.dual_sums import dual_sums, sized
from gramline.learners.operators.dense import DenseGram


def test_one_product_sums_for_every_learner() -> None:
    draw = np.random.default_rng(0)
    points = draw.normal(size=(7, 3))
    gram = DenseGram(points @ points.T, [3, 4], block_rows=4)
    every = [draw.normal(size=(7, n)) for n in (2, 1, 4)]
    for own, weights in zip(dual_sums(gram, list(map(sized, every))), every, strict=True):
        assert_close(own.sums, gram.matrix.T @ weights)
        (alone,) = dual_sums(gram, [sized(weights)])
        assert_close(own.sums, alone.sums)
        assert_close(own.sizes, alone.sizes)
        assert (own.sizes >= np.abs(own.sums).max(axis=1)).all()


def test_numbers_that_cancel_have_a_size() -> None:
    gram = DenseGram(np.ones((2, 2)), [2])
    ((sums, sizes),) = dual_sums(gram, [sized(np.array([[1.0, -2.0], [-1.0, 2.0]]))])
    assert not sums.any()
    assert (sizes > 0.1).all()
