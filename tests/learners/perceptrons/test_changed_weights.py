"""Weights of changed rows only, beside the whole tables they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.learners.perceptrons.changed_weights import FIRST_ROOM, ChangedWeights

N_ROWS, N_LABELS = 3 * FIRST_ROOM, 4


@pytest.fixture
def both() -> tuple[ChangedWeights, np.ndarray, np.ndarray]:
    """The same changes of some rows, some of them twice, kept both ways."""
    draw = np.random.default_rng(0)
    weights, alpha, lag = ChangedWeights(N_ROWS, N_LABELS), *np.zeros((2, N_ROWS, N_LABELS), np.int64)
    for _ in range(20):
        rows = np.sort(draw.choice(N_ROWS // 2, size=40, replace=False)) * 2
        steps, delays = draw.integers(-1, 2, size=(40, N_LABELS)), draw.integers(0, 10**12, size=(40, N_LABELS))
        weights.add(rows, steps, delays)
        alpha[rows] += steps
        lag[rows] += delays
    return weights, alpha, lag


def test_they_are_the_tables(both: tuple[ChangedWeights, np.ndarray, np.ndarray]) -> None:
    weights, alpha, lag = both
    np.testing.assert_array_equal(weights.alpha(), alpha)
    np.testing.assert_array_equal(weights.lag(), lag)
    average = weights.average(1234)
    assert average.tobytes() == (alpha - lag / 1234).tobytes()
    assert not average[1::2].any()


def test_they_go_on_from_the_tables(both: tuple[ChangedWeights, np.ndarray, np.ndarray]) -> None:
    weights, alpha, lag = both
    resumed = ChangedWeights.of(weights.alpha(), weights.lag())
    every, more = np.arange(N_ROWS), np.ones((N_ROWS, N_LABELS), np.int64)
    resumed.add(every, more, 2 * more)
    np.testing.assert_array_equal(resumed.alpha(), alpha + 1)
    np.testing.assert_array_equal(resumed.lag(), lag + 2)
    assert resumed.n_labels == N_LABELS


def test_a_change_is_no_part_of_what_was_handed_out(both: tuple[ChangedWeights, np.ndarray, np.ndarray]) -> None:
    weights, alpha, _ = both
    before = weights.alpha()
    weights.add(np.array([0]), np.ones((1, N_LABELS), np.int64), np.ones((1, N_LABELS), np.int64))
    np.testing.assert_array_equal(before, alpha)
