"""The bound and its optimum against explicit inverses; missing labels, duplicates, singular and weighted Grams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import gaussian_process as oracle
from tolerances import assert_close

from gramline.kernels.packing import MISSING
from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.covariance import ExactCovariance, distinct_rows
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.gaussian_process.likelihood import LabeledTokens, neighbour_labels
from gramline.learners.gaussian_process.search import ScaleSearch, bound_gradient
from gramline.learners.gaussian_process.training import maximise, sweep
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.operators.dense import DenseGram

LENGTHS = np.array([4, 1, 6, 3, 5])
N = int(LENGTHS.sum())
NAMES = ("A", "B", "C")
OFFSETS = [(), (-1,), (-1, 1), (-2, -1, 1, 2), (3,)]
RANDOM = np.random.default_rng(11)
POINTS = RANDOM.standard_normal((N, 3))
GRAM = 2.0 * np.exp(-0.5 * ((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2)) + 1e-3 * np.eye(N)
CODES = np.array([0, 1, 1, 2, 0, 2, 0, 1, 0, 1, 2, 1, 0, 0, 1, 2, 0, 1, 1])
BY_PLACE = np.digitize(POINTS[:, 0], (-0.4, 0.4))  # labels that the kernel can tell
HOLES = np.where(np.isin(np.arange(N), (2, 8, 9, 18)), MISSING, CODES)


def labels_of(codes: np.ndarray) -> list[list[str | None]]:
    flat: list[str | None] = [None if code < 0 else NAMES[code] for code in codes]
    ends = np.cumsum(LENGTHS)
    return [flat[end - length : end] for end, length in zip(ends, LENGTHS, strict=True)]


def gram_of(matrix: np.ndarray, **more: Any) -> DenseGram:
    return DenseGram(matrix, LENGTHS, label_names=NAMES, **more)


def fit(codes: np.ndarray = CODES, matrix: np.ndarray = GRAM, **params: Any) -> GaussianProcessLabeler:
    return GaussianProcessLabeler(
        **({"bound": "jensen", "scale": 1.0, "tolerance": 1e-13, "max_sweeps": 200} | params)
    ).fit(gram_of(matrix), labels_of(codes))


def explicit(model: GaussianProcessLabeler, codes: np.ndarray, kernels: list[np.ndarray], offsets: Any) -> Any:
    """(bound, p of every token) of a fitted model by the formulas, over all tokens, labeled or not."""
    found = [oracle.posterior(K, model.dual_[:, j], model.precision_[:, j]) for j, K in enumerate(kernels)]
    parts = ([m for m, _ in found], [V for _, V in found], model.coupling_mean_, model.coupling_variance_)
    z = oracle.scores(codes, LENGTHS, offsets, *parts)
    return oracle.elbo(kernels, codes, LENGTHS, offsets, *parts), np.array([oracle.softmax(row) for row in z])


@pytest.mark.parametrize("codes", [CODES, HOLES], ids=["all labeled", "some missing"])
@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
def test_the_bound_and_its_optimum(offsets: tuple[int, ...], codes: np.ndarray) -> None:
    """Unlabeled tokens are kept in the formulas with a = lam = 0 and dropped by the learner: the same bound."""
    model = fit(codes, offsets=offsets)
    bound, p = explicit(model, codes, [GRAM] * 3, offsets)
    assert_close(model.elbo_, bound)
    labeled = codes >= 0
    own = np.eye(3)[codes[labeled]]
    np.testing.assert_allclose(model.precision_[labeled], p[labeled], atol=2e-6)
    np.testing.assert_allclose(model.dual_[labeled], own - p[labeled], atol=2e-6)
    assert not model.dual_[~labeled].any()
    for k, d in enumerate(offsets):
        for a in range(3):
            rows = [t for t in np.flatnonzero(labeled) if oracle.neighbour(codes, LENGTHS, t, d) == a]
            expected = p[rows].sum(axis=0)
            np.testing.assert_allclose(
                model.coupling_mean_[k, a], np.eye(3)[codes[rows]].sum(axis=0) - expected, atol=1e-5
            )
            np.testing.assert_allclose(model.coupling_variance_[k, a], 1 / (1 + expected), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_posterior_has_a_larger_bound(seed: int) -> None:
    """The bound is concave: steps away from the optimum in any parameter lower it."""
    model = fit(HOLES)
    best = explicit(model, HOLES, [GRAM] * 3, (-1, 1))[0]
    random = np.random.default_rng(seed)
    for name in ("dual_", "precision_", "coupling_mean_", "coupling_variance_"):
        kept = getattr(model, name)
        change = 0.05 * random.standard_normal(kept.shape)
        if name in model.row_arrays:
            change *= (HOLES >= 0)[:, None]
        moved = kept + change
        setattr(model, name, moved if name in ("dual_", "coupling_mean_") else np.abs(moved))
        assert explicit(model, HOLES, [GRAM] * 3, (-1, 1))[0] < best
        setattr(model, name, kept)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("learn", [None, "shared", "per_label"])
def test_the_trace_never_decreases(scale: float, learn: Any) -> None:
    model = fit(scale=scale, learn_scale=learn, tolerance=1e-8, max_sweeps=25)
    trace = np.array(model.elbo_trace_)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()
    assert model.elbo_ == trace[-1]
    assert model.sweeps_ >= len(trace) - 1
    assert model.converged_ or model.sweeps_ == 25


def test_large_kernel_values_need_and_get_damping() -> None:
    """Means of several hundred neither overflow nor stop the bound from growing."""
    large = 1e6 * GRAM
    model = fit(matrix=large, max_sweeps=12)
    assert np.isfinite(model.elbo_trace_).all()
    assert (np.diff(model.elbo_trace_) > -1e-9 * abs(model.elbo_)).all()
    assert model.elbo_ > 0.9 * model.elbo_trace_[0]
    assert np.isfinite(model.predict_proba(gram_of(large))).all()


def test_singular_grams() -> None:
    """A linear kernel of rank 2: the same bound as with a hair of jitter, by the formulas."""
    linear = POINTS[:, :2] @ POINTS[:, :2].T
    model = fit(matrix=linear)
    hair = linear + 1e-7 * np.eye(N)
    np.testing.assert_allclose(model.elbo_, explicit(fit(matrix=hair), CODES, [hair] * 3, (-1, 1))[0], rtol=1e-5)
    assert model.converged_


def tokens_of(codes: np.ndarray, groups: np.ndarray, offsets: tuple[int, ...] = (-1, 1)) -> LabeledTokens:
    labeled = np.flatnonzero(codes >= 0)
    neighbours = neighbour_labels(codes, LENGTHS, offsets)[labeled]
    return LabeledTokens(codes[labeled], neighbours, groups, int(groups.max()) + 1, 3)


def test_a_label_that_has_nothing_to_gain_costs_no_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    every = np.arange(N)
    covariance = ExactCovariance(gram_of(GRAM), every)
    inference = Inference(covariance, tokens_of(CODES, every), np.ones((N, 3)), np.ones(3))
    maximise(inference, StoppingRule(1e-12, 200))
    factored: list[int] = []
    covariance_of = inference.covariance_of
    monkeypatch.setattr(inference, "covariance_of", lambda j, lam: factored.append(j) or covariance_of(j, lam))
    before = inference.elbo()
    sweep(inference, 1e-8)
    assert not factored
    inference.posterior.precision[:, 1] *= 1.5
    inference.refresh()
    factored.clear()
    sweep(inference, 1e-8)
    assert 1 in factored
    np.testing.assert_allclose(inference.elbo(), before, rtol=1e-4)


def test_identical_positions_share_their_latent_values() -> None:
    copies = np.arange(N)
    copies[[5, 9, 17]] = 3
    copies[12] = 7
    doubled = GRAM[np.ix_(copies, copies)]
    model = fit(HOLES, doubled)
    labeled = np.flatnonzero(HOLES >= 0)
    assert model.n_distinct_ == len(np.unique(copies[labeled]))
    assert model.support().sum() == model.n_distinct_
    apart = Inference(
        ExactCovariance(gram_of(doubled), labeled),
        tokens_of(HOLES, np.arange(len(labeled))),
        np.ones((15, 3)),
        np.ones(3),
    )
    training = maximise(apart, StoppingRule(1e-13, 200))
    assert_close(model.elbo_, training.trace[-1])
    np.testing.assert_allclose(doubled @ model.dual_, doubled[:, labeled] @ apart.posterior.dual, atol=1e-5)


def test_distinct_rows_keep_their_order_and_their_priors_apart() -> None:
    matrix = np.array([[1.0, 0, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]])
    rows, groups = distinct_rows(DenseGram(matrix, [4], block_rows=4), np.array([1, 2, 3]))
    assert rows.tolist() == [1, 2]
    assert groups.tolist() == [0, 1, 1]
    prior = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.1, 0.9]])
    tiled = DenseGram(matrix, [2, 2], row_prior=prior, block_rows=2)
    assert distinct_rows(tiled, np.arange(4))[1].tolist() == [0, 1, 0, 2]


def test_priors_and_diagonal_label_kernels_weigh_the_kernel() -> None:
    prior = RANDOM.dirichlet(np.ones(3), N)
    diagonal = np.array([1.0, 0.5, 2.0])
    gram = gram_of(GRAM, row_prior=prior, label_kernel=np.diag(diagonal))
    model = GaussianProcessLabeler(bound="jensen", tolerance=1e-13, max_sweeps=200, scale=0.7).fit(
        gram, labels_of(HOLES)
    )
    weights = 3 * prior * np.sqrt(0.7 * diagonal)
    kernels = [weights[:, [j]] * GRAM * weights[:, j] for j in range(3)]
    bound, p = explicit(model, HOLES, kernels, (-1, 1))
    assert_close(model.elbo_, bound)
    np.testing.assert_allclose(model.precision_[HOLES >= 0], p[HOLES >= 0], atol=2e-6)


def test_jitter_is_a_larger_diagonal() -> None:
    assert_close(fit(jitter=0.3).elbo_, fit(matrix=GRAM + 0.3 * np.eye(N)).elbo_)


def test_tiny_precisions_keep_their_variances() -> None:
    inference = Inference(
        ExactCovariance(gram_of(GRAM), np.arange(N)), tokens_of(CODES, np.arange(N)), np.ones((N, 3)), np.ones(3)
    )
    precision = np.where(np.arange(N) % 3 == 0, 1e-14, 0.3)
    precision[4] = 0.0
    variance, determinant = inference.covariance_of(0, precision)
    root = np.sqrt(precision)
    B = np.eye(N) + root[:, None] * GRAM * root
    assert_close(variance, np.diagonal(GRAM - GRAM @ (root[:, None] * np.linalg.inv(B) * root) @ GRAM))
    assert_close(determinant, np.linalg.slogdet(B)[1])


def test_a_label_that_never_occurs_becomes_improbable() -> None:
    only_two = np.where(CODES == 2, 0, CODES)
    model = fit(only_two)
    assert model.label_names_ == NAMES
    assert model.precision_[:, 2].max() < 0.5
    assert "C" not in {label for labels in model.predict(gram_of(GRAM)) for label in labels}


# --- hyper-parameters ------------------------------------------------------------------------------------------


def optimum(matrix: np.ndarray, scale: np.ndarray) -> Inference:
    inference = Inference(
        ExactCovariance(gram_of(matrix), np.arange(N)), tokens_of(CODES, np.arange(N)), np.ones((N, 3)), scale
    )
    maximise(inference, StoppingRule(1e-14, 200))
    return inference


def test_the_gradient_by_the_scale_is_a_difference_quotient() -> None:
    scale = np.array([0.5, 1.0, 2.0])
    found = oracle.scale_gradient(optimum(GRAM, scale).posterior)
    for j in range(3):
        step = 1e-4 * np.eye(3)[j]
        ends = [optimum(GRAM, scale * np.exp(sign * step)).elbo() for sign in (-1, 1)]
        np.testing.assert_allclose(found[j], (ends[1] - ends[0]) / 2e-4, rtol=1e-4)


def test_the_gradient_by_a_kernel_parameter_is_a_difference_quotient() -> None:
    distances = ((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2)

    def kernel(gamma: float) -> np.ndarray:
        found: np.ndarray = 2.0 * np.exp(-gamma * distances)
        return found

    slope = bound_gradient(optimum(kernel(0.4), np.full(3, 0.8)), -distances * kernel(0.4))
    ends = [optimum(kernel(0.4 + change), np.full(3, 0.8)).elbo() for change in (-1e-4, 1e-4)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-4, rtol=1e-4)


@pytest.mark.parametrize("start", [0.05, 1.0, 40.0])
def test_a_learned_scale_has_no_slope_left(start: float) -> None:
    model = fit(BY_PLACE, learn_scale="shared", scale=start, tolerance=1e-10)
    assert len(set(model.scale_.tolist())) == 1
    assert model.elbo_ >= fit(BY_PLACE, scale=start).elbo_ - 1e-9
    factor = np.exp(0.2)
    neighbours = [fit(BY_PLACE, scale=float(model.scale_[0]) * change).elbo_ for change in (1 / factor, factor)]
    assert model.elbo_ > max(neighbours)


@pytest.mark.parametrize("unit", [1e-12, 1e6, 1e30])
@pytest.mark.parametrize("kind", ["shared", "per_label"])
def test_a_learned_scale_does_not_hang_on_the_unit_of_the_gram(kind: Any, unit: float) -> None:
    table = np.random.default_rng(2).dirichlet(np.ones(3), N)
    one, other = (
        GaussianProcessLabeler(learn_scale=kind, bound="jensen", scale=1.0).fit(
            gram_of(factor * GRAM, row_prior=table), labels_of(BY_PLACE)
        )
        for factor in (1.0, unit)
    )
    assert other.converged_
    assert other.elbo_ == pytest.approx(one.elbo_, rel=1e-3)
    np.testing.assert_allclose(other.scale_ * unit, one.scale_, rtol=0.1, atol=1e-4)


def test_scales_of_their_own_are_at_least_as_good() -> None:
    shared, own = (fit(BY_PLACE, learn_scale=kind, tolerance=1e-8) for kind in ("shared", "per_label"))
    assert own.elbo_ > shared.elbo_ - 1e-6
    assert len(set(own.scale_.tolist())) == 3


def test_a_scale_that_makes_things_worse_is_taken_back() -> None:
    class Wrong(ScaleSearch):
        def propose(self, _posterior: Any) -> Any:
            self.settled = self._rejections > 2
            return None if self.settled else np.full(3, 50.0)

    inference = Inference(
        ExactCovariance(gram_of(GRAM), np.arange(N)), tokens_of(CODES, np.arange(N)), np.ones((N, 3)), np.full(3, 0.4)
    )
    training = maximise(inference, StoppingRule(1e-8, 30))
    scale, bound = inference.posterior.scale.copy(), inference.elbo()
    again = maximise(inference, StoppingRule(1e-8, 30), Wrong(shared=True))
    assert training.converged
    assert again.converged
    assert (inference.posterior.scale == scale).all()
    assert inference.elbo() >= bound - 1e-9


def test_kernel_values_that_float64_cannot_square_are_refused() -> None:
    with pytest.raises(LearnerError, match=r"the diagonal of the Gram matrix reaches 2e\+160.*a scale") as caught:
        GaussianProcessLabeler(scale=1e160, bound="jensen").fit(gram_of(GRAM), labels_of(CODES))
    assert caught.value.key == "scale"
    assert (
        GaussianProcessLabeler(max_sweeps=1, bound="jensen", scale=1.0)
        .fit(gram_of(1e90 * GRAM), labels_of(CODES))
        .sweeps_
        == 1
    )


@pytest.mark.parametrize("factor", [1e-3, 1.0, 50.0])
def test_the_scale_comes_from_the_data_unless_it_is_given(factor: float) -> None:
    """A mean diagonal of 100, whatever the units of the kernel are; then the expected normaliser."""
    gram = gram_of(factor * GRAM)
    model = GaussianProcessLabeler(max_sweeps=3).fit(gram, labels_of(CODES))
    scale = 100.0 / (factor * np.diagonal(GRAM)[np.unique(GRAM, axis=0, return_index=True)[1]].mean())
    np.testing.assert_allclose(model.scale_, scale)
    written = GaussianProcessLabeler(bound="expected", scale=scale, max_sweeps=3).fit(gram, labels_of(CODES))
    np.testing.assert_allclose(model.elbo_trace_, written.elbo_trace_, rtol=1e-5)
    nothing = GaussianProcessLabeler(max_sweeps=1).fit(gram_of(np.zeros_like(GRAM)), labels_of(CODES))
    np.testing.assert_array_equal(nothing.scale_, 1.0)


def test_the_published_learner_is_one_setting_away() -> None:
    published = GaussianProcessLabeler(**GaussianProcessLabeler.paper_settings())
    assert (published.bound, published.scale, published.learn_scale) == ("jensen", 1.0, None)
