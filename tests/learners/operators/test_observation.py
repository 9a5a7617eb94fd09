"""Gram matrices of observation kernels: their values, slopes, and parameters learned by the bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels import Gaussian, Linear, Polynomial
from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.observation import ObservationGram

RANDOM = np.random.default_rng(2)
POINTS, NEW = RANDOM.standard_normal((30, 2)), RANDOM.standard_normal((5, 2))
LENGTHS = [10, 12, 8]
FLAT = ["in" if x @ x < 1.2 else "out" for x in POINTS]
LABELS = [FLAT[:10], FLAT[10:22], FLAT[22:]]
KERNELS = [Gaussian(gamma=0.7), Polynomial(3, 0.4), Polynomial(2, 1.5, normalized=True), Linear()]
KERNELS += [Polynomial(2, 0.5, normalized=True, unit=True), Gaussian(gamma=0.7, unit=True)]


def value(kernel: Any, x: np.ndarray, y: np.ndarray) -> float:
    if kernel.of_unit_rows:
        x, y = x / np.sqrt(x @ x), y / np.sqrt(y @ y)
    if isinstance(kernel, Gaussian):
        return float(np.exp(-kernel.gamma * ((x - y) ** 2).sum()))
    power, shift = (kernel.degree, kernel.coef0) if isinstance(kernel, Polynomial) else (1, 0.0)
    found = (x @ y + shift) ** power
    if kernel.normalized:
        found /= np.sqrt((x @ x + shift) ** power * (y @ y + shift) ** power)
    return float(found)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_and_slopes(kernel: Any) -> None:
    gram = ObservationGram(kernel, POINTS, LENGTHS)
    assert_close(gram.matrix, [[value(kernel, x, y) for y in POINTS] for x in POINTS])
    cross = ObservationGram(kernel, POINTS, LENGTHS, NEW, [2, 3])
    assert_close(cross.matrix, [[value(kernel, x, y) for y in NEW] for x in POINTS])
    assert cross.col_diagonal is not None
    assert_close(cross.col_diagonal, [value(kernel, y, y) for y in NEW])
    for name, now in gram.parameters().items():
        low, high = (gram.at({name: now * np.exp(step)}).matrix for step in (-1e-5, 1e-5))
        np.testing.assert_allclose(gram.slope(name), (high - low) / 2e-5, atol=1e-6 * np.abs(gram.matrix).max())


@pytest.mark.parametrize("bound", ["expected", "jensen"])
@pytest.mark.parametrize("start", [0.15, 30.0])
def test_a_learned_parameter_is_at_least_as_good_as_its_neighbours(bound: Any, start: float) -> None:
    params: dict[str, Any] = {"bound": bound, "offsets": "GPSL1", "scale": 4.0, "max_sweeps": 100}
    model = GaussianProcessLabeler(learn_kernel=True, **params)
    model.fit(ObservationGram(Gaussian(gamma=start), POINTS, LENGTHS), LABELS)
    gamma = model.kernel_parameters_["gamma"]
    assert 0.1 < gamma < 5.0
    trace = np.array(model.elbo_trace_)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()
    beside = [
        GaussianProcessLabeler(**params).fit(ObservationGram(Gaussian(gamma=gamma * factor), POINTS, LENGTHS), LABELS)
        for factor in (0.8, 1.25)
    ]
    assert model.elbo_ > max(other.elbo_ for other in beside) - 1e-6
    cross = ObservationGram(Gaussian(gamma=gamma), POINTS, LENGTHS, POINTS[:4], [4])
    assert model.predict(cross) == [FLAT[:4]]


def test_a_scale_is_learned_beside_a_parameter() -> None:
    gram = ObservationGram(Polynomial(2, 0.05), POINTS, LENGTHS)
    fixed, both = (
        GaussianProcessLabeler(bound="expected", learn_kernel=learned, learn_scale="shared", max_sweeps=100).fit(
            gram, LABELS
        )
        for learned in (False, True)
    )
    assert both.elbo_ > fixed.elbo_
    assert both.kernel_parameters_["coef0"] > 0.05


@pytest.mark.parametrize("start", [Gaussian(gamma=1e-20), Polynomial(2, 1e20), Polynomial(2, 1e-20)], ids=str)
def test_positions_share_latent_values_for_their_features_and_not_for_where_a_search_starts(start: Any) -> None:
    """At these parameters rows of the Gram are equal in float64 whose positions are not."""
    points = np.concatenate([POINTS, -POINTS, POINTS])
    points[0, 0], points[30, 0], points[60, 0] = 0.0, -0.0, -0.0
    labels, lengths = LABELS * 3, LENGTHS * 3
    gram = ObservationGram(start, points, lengths)
    params: dict[str, Any] = {"scale": 1.0 / gram.diagonal().max(), "max_sweeps": 3}
    assert GaussianProcessLabeler(**params).fit(gram, labels).n_distinct_ < 60
    assert GaussianProcessLabeler(learn_kernel=True, **params).fit(gram, labels).n_distinct_ == 60


def test_a_gram_without_a_gradient_is_refused() -> None:
    with pytest.raises(LearnerError) as error:
        GaussianProcessLabeler(learn_kernel=True).fit(DenseGram(POINTS @ POINTS.T, LENGTHS), LABELS)
    assert error.value.key == "learn_kernel"
    assert error.value.problem.startswith("learn_kernel needs an ObservationGram")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ObservationGram(Linear(), POINTS, LENGTHS).slope("gamma"), "has no parameter 'gamma' with a gradient"),
        (lambda: ObservationGram(Linear(), POINTS, LENGTHS, NEW), "belong together"),
        (lambda: ObservationGram(Linear(), [[np.nan]], [1]), "features must be finite numbers"),
        (lambda: ObservationGram(Linear(normalized=True), [[0.0], [1.0]], [2]), "cannot be normalized"),
    ],
    ids=["gradient", "lengths", "finite", "normalized"],
)
def test_what_is_no_observation_gram_is_refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(LearnerError, match=sentence):
        make()


def test_forgotten_labels_are_missing_ones() -> None:
    gram = ObservationGram(Gaussian(gamma=0.5), POINTS, LENGTHS)
    models = [GaussianProcessLabeler(missing=share, seed=4).fit(gram, LABELS) for share in (0.0, 0.2, 0.5)]
    known = [set(np.flatnonzero(model.precision_.any(axis=1)).tolist()) for model in models]
    assert [len(rows) for rows in known] == [30, 24, 15]
    assert known[2] < known[1]
    flat: list[str | None] = [label if k in known[1] else None for k, label in enumerate(FLAT)]
    same = GaussianProcessLabeler().fit(gram, [flat[:10], flat[10:22], flat[22:]])
    assert_close(models[1].predict_proba(gram), same.predict_proba(gram))
