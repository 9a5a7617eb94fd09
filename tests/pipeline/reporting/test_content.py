"""What a report shows: calibration by hand, wrong positions of a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.pipeline.reporting.content import Calibration, Sentence, calibration_error


def test_calibration_error_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.55, 1.0])
    right = np.array([True, False, True, True])
    # last bin: 2.9 said, 2 right; sixth bin: 0.55 said, 1 right
    assert calibration_error(confidence, right) == pytest.approx((0.9 + 0.45) / 4)
    bins = Calibration("one", confidence, right).bins()
    assert [count for _, _, count in bins] == [1, 3]
    assert bins[1][:2] == pytest.approx((2.9 / 3, 2 / 3))


def test_a_position_without_a_gold_label_is_never_wrong() -> None:
    sentence = Sentence("s", ["a", "b", "c"], ["X", None, "Y"], ["X", "Y", "X"])
    assert [is_wrong for *_, is_wrong in sentence.positions()] == [False, False, True]
    assert sentence.n_wrong == 1
