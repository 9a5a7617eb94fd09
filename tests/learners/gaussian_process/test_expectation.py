"""The expectation over draws: against quadrature and the plain mean, whichever way its powers are come by."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.special import softmax as plain_softmax
from tolerances import assert_close

from gramline.learners.gaussian_process.expectation import LARGEST_EXPONENT, ExpectedNormalizer, normal_draws
from gramline.learners.gaussian_process.normalizer import JensenNormalizer

RANDOM = np.random.default_rng(5)
MEANS = 2.0 * RANDOM.standard_normal((6, 3))
VARIANCES = RANDOM.uniform(0.2, 6.0, (6, 3))
WIDE = LARGEST_EXPONENT**2  # variances whose powers would overflow


@pytest.mark.parametrize("n_labels", [1, 2, 17, 40])
def test_draws_have_the_moments_of_a_normal(n_labels: int) -> None:
    draws = normal_draws(n_labels)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(draws.T @ draws / len(draws), np.eye(n_labels), atol=1e-9)


def test_the_expectation_is_that_of_quadrature() -> None:
    """Two labels: log(e^f + e^g) = g + log(1 + e^(f - g)), and f - g is one normal."""
    means, variances = MEANS[:, :2], VARIANCES[:, :2]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    gaps = (means[:, 0] - means[:, 1])[:, None] + np.sqrt(variances.sum(axis=1))[:, None] * nodes
    exact = means[:, 1] + np.logaddexp(0.0, gaps) @ weights / weights.sum()
    found = ExpectedNormalizer(2).totals(means, variances)
    np.testing.assert_allclose(found, exact, atol=0.05)
    assert (JensenNormalizer().totals(means, variances) > exact).all()


def test_scores_of_several_hundred_do_not_overflow() -> None:
    found = ExpectedNormalizer(3).slopes(np.array([[900.0, -900.0, 0.0]]), np.full((1, 3), 400.0))
    assert_close(found.probabilities, [[1.0, 0.0, 0.0]])
    assert np.isfinite(found.precision).all()


def check(normalizer: ExpectedNormalizer, means: NDArray[np.float64], variances: NDArray[np.float64]) -> None:
    """Totals, softmax, slopes and Hessian as means over all draws, written out."""
    draws = normal_draws(means.shape[1])
    values = means[:, None] + np.sqrt(variances)[:, None] * draws
    shares = plain_softmax(values, axis=2)
    found = normalizer.slopes(means, variances)
    assert_close(normalizer.totals(means, variances), logsumexp(values, axis=2).mean(axis=1))
    assert_close(found.probabilities, shares.mean(axis=1))
    slopes = (shares * draws).mean(axis=1) / np.sqrt(variances)
    np.testing.assert_allclose(found.precision, np.maximum(slopes, 1e-12), rtol=1e-9, atol=1e-11)
    hessians = -np.einsum("tdq,tdr->tqr", shares, shares) / len(draws)
    hessians[:, range(len(means[0])), range(len(means[0]))] += shares.mean(axis=1)
    units = np.broadcast_to(np.eye(means.shape[1])[:, None], (means.shape[1], *means.shape))
    hessian = normalizer.hessian(means, variances)
    for q, unit in enumerate(units):
        np.testing.assert_allclose(hessian.times(unit), hessians[:, q], atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 13])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 100.0, WIDE], ids=["narrow", "plain", "broad", "overflowing powers"])
def test_it_is_the_mean_over_the_draws(n_labels: int, spread: float) -> None:
    means = 5.0 * RANDOM.standard_normal((9, n_labels))
    check(ExpectedNormalizer(n_labels), means, spread * RANDOM.uniform(0.5, 1.5, means.shape))


def test_powers_that_are_kept_follow_the_variances() -> None:
    normalizer, variances = ExpectedNormalizer(3), VARIANCES
    for column, factor in [(0, 2.0), (2, 0.1), (1, WIDE), (1, 1 / WIDE), (0, 1.0)]:
        variances = variances.copy()
        variances[:, column] *= factor
        check(normalizer, MEANS, variances)
        check(normalizer, MEANS + column, variances)
    check(normalizer, MEANS[:4], variances[:4])
    check(normalizer, MEANS, variances)


def test_too_many_tokens_to_keep_are_taken_part_by_part() -> None:
    few = ExpectedNormalizer(3, cache_bytes=2 * ExpectedNormalizer(3)._halves.nbytes)
    assert [part.stop - part.start for part, _ in few._parts(MEANS[:5], VARIANCES[:5])] == [2, 2, 2]
    check(few, MEANS[:5], VARIANCES[:5])


def test_labels_that_lie_far_below_the_best_one_count_for_nothing() -> None:
    means = np.array([[7.0, -800.0, -1e6]])
    check(ExpectedNormalizer(3), means, np.array([[1.0, 2000.0, 3000.0]]))
