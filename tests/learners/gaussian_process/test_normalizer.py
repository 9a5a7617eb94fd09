"""Both normalisers against differences and quadrature, and what training with the expectation reaches."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.gaussian_process import scale_gradient
from scipy.special import logsumexp, softmax
from tolerances import assert_close

from gramline.learners.gaussian_process.covariance import ExactCovariance
from gramline.learners.gaussian_process.expectation import ExpectedNormalizer
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.gaussian_process.likelihood import LabeledTokens, neighbour_labels
from gramline.learners.gaussian_process.normalizer import JensenNormalizer, Normalizer
from gramline.learners.gaussian_process.training import maximise
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.operators.dense import DenseGram

RANDOM = np.random.default_rng(5)
MEANS = 2.0 * RANDOM.standard_normal((6, 3))
VARIANCES = RANDOM.uniform(0.2, 6.0, (6, 3))
BOTH = [JensenNormalizer(), ExpectedNormalizer(3)]


@pytest.mark.parametrize("normalizer", BOTH, ids=["jensen", "expected"])
def test_slopes_are_difference_quotients(normalizer: Normalizer) -> None:
    found = normalizer.slopes(MEANS, VARIANCES)
    assert_close(found.probabilities.sum(axis=1), np.ones(6))
    step = 1e-5
    for q in range(3):
        move = step * np.eye(3)[q]
        up, down = (normalizer.totals(MEANS + sign * move, VARIANCES) for sign in (1, -1))
        np.testing.assert_allclose(found.probabilities[:, q], (up - down) / (2 * step), atol=1e-8)
        up, down = (normalizer.totals(MEANS, VARIANCES + sign * move) for sign in (1, -1))
        np.testing.assert_allclose(found.precision[:, q], np.maximum((up - down) / step, 0.0), atol=1e-7)
        rows = [normalizer.slopes(MEANS + sign * move, VARIANCES).probabilities for sign in (1, -1)]
        unit = np.tile(np.eye(3)[q], (6, 1))
        hessian = normalizer.hessian(MEANS, VARIANCES)
        np.testing.assert_allclose(hessian.times(unit), (rows[0] - rows[1]) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("normalizer", BOTH, ids=["jensen", "expected"])
def test_without_variances_there_is_only_a_softmax(normalizer: Normalizer) -> None:
    found = normalizer.slopes(MEANS, np.zeros_like(MEANS))
    assert_close(found.probabilities, softmax(MEANS, axis=1))
    assert_close(softmax(normalizer.scores(MEANS, 0 * MEANS), axis=1), found.probabilities)
    assert_close(normalizer.totals(MEANS, 0 * MEANS), logsumexp(MEANS, axis=1))


@pytest.mark.parametrize("normalizer", BOTH, ids=["jensen", "expected"])
def test_scores_of_several_hundred(normalizer: Normalizer) -> None:
    means = np.array([[900.0, -900.0, 899.0], [-800.0, -800.0, -800.0]])
    assert_close(normalizer.totals(means, 0 * means), [900.0 + np.log1p(np.exp(-1.0)), -800.0 + np.log(3.0)])
    expected = [[1 / (1 + np.exp(-1.0)), 0.0, 1 / (1 + np.e)], [1 / 3] * 3]
    assert_close(normalizer.slopes(means, 0 * means).probabilities, expected)


POINTS = np.random.default_rng(8).standard_normal((24, 2))
GRAM = DenseGram(4.0 * np.exp(-((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2)), [6, 10, 8])
FLAT = ["AB"[int(x > 0)] if y < 0.9 else "C" for x, y in POINTS]
LABELS = [FLAT[:6], FLAT[6:16], FLAT[16:]]


@pytest.mark.parametrize("scale", [0.1, 5.0, 500.0])
def test_training_with_the_expectation(scale: float) -> None:
    """The trace never decreases, ends where a = [y=j] - p, and above Jensen's bound of the same model."""
    model, loose = (
        GaussianProcessLabeler(bound=bound, scale=scale, tolerance=1e-10, max_sweeps=60).fit(GRAM, LABELS)
        for bound in ("expected", "jensen")
    )
    trace = np.array(model.elbo_trace_)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()
    assert model.elbo_ > loose.elbo_
    assert (model.precision_ > 0).all()
    own = np.array([[label == name for name in model.label_names_] for label in FLAT], float)
    shares = own - model.dual_
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-4)
    assert shares.min() > -1e-4


def test_a_larger_scale_is_learned_than_by_the_loose_bound() -> None:
    tight, loose = (
        GaussianProcessLabeler(bound=bound, learn_scale="shared", scale=1.0).fit(GRAM, LABELS)
        for bound in ("expected", "jensen")
    )
    assert tight.scale_[0] > 1.5 * loose.scale_[0]


def test_the_gradient_by_the_scale_is_a_difference_quotient() -> None:
    """So where the bound puts the scale is where its maximum is, whichever bound it is."""

    def optimum(scale: float) -> Inference:
        codes = np.array(["ABC".index(label) for label in FLAT])
        neighbours = neighbour_labels(codes, np.array([6, 10, 8]), (-1, 1))
        tokens = LabeledTokens(codes, neighbours, np.arange(24), 24, 3)
        covariance = ExactCovariance(GRAM, np.arange(24))
        inference = Inference(covariance, tokens, np.ones((24, 3)), np.full(3, scale), ExpectedNormalizer(3))
        maximise(inference, StoppingRule(1e-14, 300))
        return inference

    for scale in (0.3, 3.0):
        ends = [optimum(scale * np.exp(step)).elbo() for step in (-1e-3, 1e-3)]
        slope = scale_gradient(optimum(scale).posterior).sum()
        np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-3, atol=0.02)
