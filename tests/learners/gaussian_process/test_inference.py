"""Scores belong to the posterior after every update, and their normaliser is computed once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.learners.gaussian_process.covariance import ExactCovariance
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.likelihood import LabeledTokens, neighbour_labels
from gramline.learners.gaussian_process.means import update_means
from gramline.learners.gaussian_process.normalizer import JensenNormalizer
from gramline.learners.gaussian_process.posterior import Scores
from gramline.learners.operators.dense import DenseGram

N = 9
POINTS = np.random.default_rng(0).standard_normal((N, 2))
GRAM = 2.0 * np.exp(-((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2))
CODES = np.array([0, 1, 1, 2, 0, 2, 0, 1, 0])


class Counting(JensenNormalizer):
    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def totals(self, *moments: Any) -> Any:
        self.calls["totals"] += 1
        return super().totals(*moments)

    def slopes(self, *moments: Any) -> Any:
        self.calls["slopes"] += 1
        return super().slopes(*moments)


@pytest.fixture
def inference() -> Inference:
    tokens = LabeledTokens(CODES, neighbour_labels(CODES, np.array([4, 5]), (-1, 1)), np.arange(N), N, 3)
    covariance = ExactCovariance(DenseGram(GRAM, [4, 5]), np.arange(N))
    return Inference(covariance, tokens, np.ones((N, 3)), np.ones(3), Counting())


def assert_consistent(inference: Inference) -> None:
    expected = Scores.of(inference.posterior, inference.tokens, JensenNormalizer())
    assert_close(inference.scores.means, expected.means)
    assert_close(inference.scores.variances, expected.variances)
    assert_close(inference.scores.total, expected.total)


def test_scores_follow_every_update(inference: Inference) -> None:
    assert_consistent(inference)
    start, before = inference.snapshot(), inference.elbo()
    updates = [
        lambda: inference.update_precisions(np.array([1])),
        lambda: update_means(inference),
        inference.update_coupling_variances,
        lambda: inference.rescale(np.array([1.0, 2.0, 0.5])),
        lambda: inference.replace_covariance(ExactCovariance(DenseGram(2 * GRAM, [4, 5]), np.arange(N))),
    ]
    for update in updates:
        scores = inference.scores
        update()
        assert inference.scores is not scores
        assert_consistent(inference)
    inference.restore(start)
    assert inference.elbo() == before
    assert_consistent(inference)


def test_updates_that_are_taken_back_leave_the_scores(inference: Inference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "is_worse", lambda _before: True)
    scores, posterior = inference.scores, inference.posterior.copy()
    inference.update_precisions(np.array([1]))
    inference.update_coupling_variances()
    assert inference.scores is scores
    for name, value in vars(posterior).items():
        assert (vars(inference.posterior)[name] == value).all()


def test_a_normaliser_is_computed_once_per_scores(inference: Inference) -> None:
    calls = inference.normalizer.calls  # type: ignore[attr-defined]
    inference.elbo()
    for j in range(3):
        inference.update_precisions(np.array([j]), negligible=np.inf)  # changes nothing
    inference.elbo()
    assert calls == {"totals": 1, "slopes": 1}
