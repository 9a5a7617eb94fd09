"""The CRF of python-crfsuite on sequences of a hidden Markov model."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.pipeline.crossval.crf import crf_marginals, crf_predictions, has_crf
from gramline.pipeline.experiments.zscore_artificial import HiddenMarkovModel

pytestmark = pytest.mark.skipif(not has_crf(), reason="python-crfsuite is not installed")


def test_the_crf_reads_names_of_features_and_labels() -> None:
    rng = np.random.default_rng(2)
    model = HiddenMarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), np.array([[0.98, 0.02], [0.02, 0.98]]))
    train, test = model.draw(30, 6, rng), model.draw(20, 6, rng)
    predicted = np.array(crf_predictions(train, test)).ravel()
    assert (predicted == np.array(test.vocabulary.labels)[test.labels]).mean() > 0.9


def test_marginals_follow_the_observations() -> None:
    rng = np.random.default_rng(2)
    model = HiddenMarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), np.array([[0.98, 0.02], [0.02, 0.98]]))
    train, test = model.draw(30, 6, rng), model.draw(20, 6, rng)
    table = crf_marginals(train, test, [*train.vocabulary.labels, "never"])
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert (table[:, 2] == 0).all()
    assert (table.argmax(axis=1) == test.labels).mean() > 0.9
