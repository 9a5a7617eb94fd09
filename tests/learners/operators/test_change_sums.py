"""Changes that are added up kind by kind, or multiplied one by one, make the same scores."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.learners.operators.change_sums import add_changes
from gramline.learners.operators.packets import Packet, Scores, Values

DRAW = np.random.default_rng(8)
N_CHANGED, N_ROWS = 37, 21


def packet(*, few_kinds: bool) -> Packet:
    """Changes of two problems, with 3 and 2 columns of which one was not touched."""
    steps = DRAW.integers(-1, 2, size=(4, N_CHANGED)).astype(float) if few_kinds else DRAW.normal(size=(4, N_CHANGED))
    if few_kinds:
        steps[:, 4:] = steps[:, DRAW.integers(0, 4, size=N_CHANGED - 4)]
    sizes = np.array([abs(steps[:2]).max(axis=0), abs(steps[2:]).max(axis=0)])
    touched = {0: np.array([0, 2]), 3: np.array([0, 1])}
    return Packet(1, np.arange(N_CHANGED), steps, sizes, touched, None)


@pytest.mark.parametrize("few_kinds", [True, False])
@pytest.mark.parametrize("lowest", [0.0, -1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_scores_are_sums_of_steps_times_values(few_kinds: bool, lowest: float, dtype: str, order: str) -> None:
    made = packet(few_kinds=few_kinds)
    assert (made.kinds is not None) == few_kinds
    tile = np.array(DRAW.uniform(lowest, 1.0, size=(50, 9)).astype(dtype), order=order)  # type: ignore[call-overload]
    lines, columns = DRAW.permutation(50)[:N_CHANGED], DRAW.integers(0, 9, size=N_ROWS)
    values = tile[np.ix_(lines, columns)].astype(np.float64)
    own = {0: Scores(np.ones((3, 30)), np.zeros(30)), 3: Scores(np.zeros((2, 30)), np.zeros(30))}
    target = np.arange(4, 4 + N_ROWS)
    add_changes(made, own, target, Values(tile, lines, columns))
    np.testing.assert_allclose(own[0].sums[[0, 2]][:, target] - 1, made.steps[:2] @ values, atol=1e-12)
    np.testing.assert_array_equal(own[0].sums[1], 1.0)
    np.testing.assert_allclose(own[3].sums[:, target], made.steps[2:] @ values, atol=1e-12)
    for place, problem in enumerate((0, 3)):
        np.testing.assert_allclose(own[problem].magnitudes[target], made.sizes[place] @ abs(values), atol=1e-12)
        np.testing.assert_array_equal(own[problem].magnitudes[:4], 0.0)


def test_a_problem_at_its_end_takes_no_part() -> None:
    made = packet(few_kinds=True)
    own = {3: Scores(np.zeros((2, 9)), np.zeros(9))}
    tile = DRAW.random((N_CHANGED, 9))
    add_changes(made, own, slice(None), Values(tile))
    np.testing.assert_allclose(own[3].sums, made.steps[2:] @ tile)


def test_no_changes_at_all() -> None:
    made = Packet(1, np.arange(0), np.zeros((1, 0)), np.zeros((1, 0)), {0: np.array([0])}, None)
    own = {0: Scores(np.zeros((1, 4)), np.zeros(4))}
    add_changes(made, own, slice(None), Values(np.zeros((0, 4))))
    np.testing.assert_array_equal(own[0].sums, 0.0)
