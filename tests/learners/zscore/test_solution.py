"""The Z-score's weights are the true optimum, whatever route finds them."""

import numpy as np
import pytest
from oracles.zscore import closed_covariance, closed_excess
from scipy.optimize import minimize
from tolerances import assert_close
from zscore_samples import enumerated, every_case, example, flat, packed_from, z_of

from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.linear_algebra import cholesky
from gramline.learners.token_features import feature_matrix
from gramline.learners.zscore import emissions
from gramline.learners.zscore.compressed_features import CompressedFeatures
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.learners.zscore.local_features import LocalFeatures


@every_case
@pytest.mark.parametrize("ridges", [(1e-3, None), (0.5, 0.1), (0.7, 0.0), (0.0, 0.4), (0.0, None)])
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_reduced_solution_solves_the_full_normal_equations(lengths, n_features, n_labels, ridges, solver):
    packed, rows = example(lengths, n_features, n_labels)
    b, C, *_ = enumerated(packed, rows)
    transition_ridge = ridges[0] if ridges[1] is None else ridges[1]
    diagonal = np.concatenate([np.full(n_features * n_labels, ridges[0]), np.full(n_labels**2, transition_ridge)])
    model = ZScoreLabeler(*ridges, solver=solver, tolerance=1e-13).fit(packed)
    theta = flat(model)
    assert_close((C + np.diag(diagonal)) @ theta, b)
    if ridges == (0.0, None) or min(diagonal) > 0:  # equal ridges -> 0: the pseudo-inverse
        expected = np.linalg.pinv(C + np.diag(diagonal), hermitian=True, rcond=1e-11) @ b
        np.testing.assert_allclose(theta, expected, atol=1e-7 * max(1.0, np.abs(expected).max()))
    if theta.any():
        np.testing.assert_allclose(model.z_, z_of(theta, b, C), rtol=1e-7)
    else:
        assert model.z_ == 0


def test_a_feature_that_speaks_for_a_transition_leaves_the_least_norm():
    """'has a predecessor' can replace a column of transitions: the 2 x 2 system is singular without a ridge."""
    lengths = [3, 4, 2]
    random = np.random.default_rng(4)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = random.normal(size=(9, 4))
    rows[:, 2] = 1.0
    rows[starts[:-1], 2] = 0.0
    rows[:, 3] = 1.0
    rows[starts[1:] - 1, 3] = 0.0
    packed = packed_from(rows, lengths, random.integers(3, size=9), 3)
    b, C, *_ = enumerated(packed, rows)
    expected = np.linalg.pinv(C, hermitian=True, rcond=1e-11) @ b
    for solver in ("direct", "cg"):
        theta = flat(ZScoreLabeler(ridge=0.0, solver=solver, tolerance=1e-13, transition_ridge=None).fit(packed))
        np.testing.assert_allclose(theta, expected, atol=1e-7 * np.abs(expected).max())


def test_a_small_singular_system_has_the_solution_of_least_norm():
    """Its eigenvalues of 0 come out as some rounding errors, more than a matrix of three rows has rows."""
    for seed in range(300):
        random = np.random.default_rng(seed)
        size = int(random.integers(2, 6))
        roots = random.integers(-3, 4, size=(int(random.integers(1, size)), size)) / 3
        matrix = roots.T @ roots
        sides = matrix @ random.normal(size=(size, 1))
        expected = np.linalg.pinv(matrix, hermitian=True, rcond=1e-11) @ sides
        np.testing.assert_allclose(emissions.solve_symmetric(matrix, sides, 0.0), expected, atol=1e-9)


@pytest.mark.parametrize("head", [1, 3, 700])
@pytest.mark.parametrize("values", ["ones", "mixed"])
def test_repeated_rows_and_features_change_nothing(monkeypatch, head, values):
    """Features that always occur together, rows seen before, features of one row and of none are solved as fewer."""
    monkeypatch.setattr(emissions, "HEAD", head)
    random = np.random.default_rng(5)
    base = (random.random((6, 7)) < 0.5) * (1.0 if values == "ones" else random.integers(1, 3, size=(6, 7)))
    rows = base[random.integers(6, size=25)][:, [0, 1, 1, 2, 3, 3, 3, 4, 5, 6]]
    rows = np.column_stack([rows, np.eye(25)[:, 3:6], 2.0 * np.eye(25)[:, 3], np.zeros((25, 2))])
    lengths = [9, 1, 7, 8]
    packed = packed_from(rows, lengths, random.integers(3, size=25), 3)
    compressed = CompressedFeatures.of(feature_matrix(packed, rows.shape[1]))
    assert compressed.distinct.shape[0] < 15
    shared = LocalFeatures.of(compressed.distinct, 1).global_features
    assert shared.shape[1] <= 7
    C = closed_covariance(rows, packed.starts, 3)
    b = closed_excess(rows, ChainStatistics(packed.labels, packed.starts, 3))
    expected = np.linalg.solve(C + 0.05 * np.eye(len(C)), b)
    for solver in ("direct", "cg"):
        assert_close(
            flat(ZScoreLabeler(0.05, solver=solver, tolerance=1e-13, transition_ridge=None).fit(packed)), expected
        )


@pytest.mark.parametrize("small", [0, 1200])
@pytest.mark.parametrize("group", [1, 2, 16])
@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 0.5])
def test_features_are_eliminated_where_they_are_local(monkeypatch, small, group, ridge):
    """Nearly all rows differ, most features are in two or three of them: the system is solved without those."""
    monkeypatch.setattr(emissions, "FACTOR_SMALLEST", 0)
    monkeypatch.setattr(emissions, "_iterated", None)
    monkeypatch.setattr(emissions, "GROUP", group)
    monkeypatch.setattr(cholesky, "SMALL", small)
    random = np.random.default_rng(6)
    rows = (random.random((40, 50)) < np.geomspace(0.02, 0.5, 50)) * random.integers(1, 3, size=(40, 50)).astype(float)
    lengths = [9, 1, 12, 18]
    packed = packed_from(rows, lengths, random.integers(3, size=40), 3)
    C = closed_covariance(rows, packed.starts, 3)
    b = closed_excess(rows, ChainStatistics(packed.labels, packed.starts, 3))
    theta = flat(ZScoreLabeler(ridge, transition_ridge=None).fit(packed))
    residual = (C + ridge * np.eye(len(C))) @ theta - b
    assert np.linalg.norm(residual) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("ridge", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_small_systems_keep_their_digits_at_any_ridge(ridge, shape):
    """They are factorised in the size of the rows or of the features, whichever are fewer."""
    random = np.random.default_rng(7)
    rows = random.normal(size=shape) * (random.random(shape) < 0.7)
    packed = packed_from(rows, [shape[0] // 2, shape[0] // 2], random.integers(3, size=shape[0]), 3)
    C = closed_covariance(rows, packed.starts, 3)
    b = closed_excess(rows, ChainStatistics(packed.labels, packed.starts, 3))
    for solver in ("auto", "direct"):
        theta = flat(ZScoreLabeler(ridge, transition_ridge=1.0, solver=solver).fit(packed))
        ridges = np.concatenate([np.full(3 * shape[1], ridge), np.ones(9)])
        assert np.linalg.norm(C @ theta + ridges * theta - b) <= 1e-12 * np.linalg.norm(b)


def test_where_rounding_forbids_a_factor_conjugate_gradients_go_on(monkeypatch):
    packed, _ = example([4, 3, 5], 3, 2)
    expected = flat(ZScoreLabeler(0.1, solver="cg", transition_ridge=None).fit(packed))
    monkeypatch.setattr(emissions, "solve_refined", lambda *_: None)
    assert_close(flat(ZScoreLabeler(0.1, transition_ridge=None).fit(packed)), expected)


def test_learners_with_one_ridge_share_a_solve(monkeypatch):
    packed, _ = example([4, 3, 5], 3, 2)
    settings = [
        {"ridge": ridge, "transition_ridge": other, "loss": loss}
        for ridge in (0.1, 0.5)
        for other in (None, 3.0)
        for loss in ("none", "hamming")
    ]
    expected = [flat(ZScoreLabeler(**setting).fit(packed)) for setting in settings]
    solve, ridges = emissions.EmissionSystem.solve, []

    def counted(self, ridge, *rest):
        ridges.append(ridge)
        return solve(self, ridge, *rest)

    monkeypatch.setattr(emissions.EmissionSystem, "solve", counted)
    learners = [ZScoreLabeler(**setting) for setting in settings]
    ZScoreLabeler.fit_many(learners, packed)
    assert ridges == [0.1, 0.5]
    for learner, theta in zip(learners, expected, strict=True):
        assert_close(flat(learner), theta)


def test_one_label_nearly_everywhere_outweighs_the_features_in_the_true_optimum():
    """T_aa is near n^2 P(a, a) while emission scores stay near n: Z is largest where everything gets label a.

    Not a slip of the reduced solution: the dense normal equations say the same. A ridge on transitions undoes it.
    """
    random = np.random.default_rng(0)
    lengths, n = [12] * 40, 4
    codes = np.where(random.random(480) < 0.9, 3, random.integers(3, size=480))
    rows = np.eye(n)[codes]  # every position says its label
    packed = packed_from(rows, lengths, codes, n)
    C = closed_covariance(rows, packed.starts, n)
    b = closed_excess(rows, ChainStatistics(packed.labels, packed.starts, n))
    plain = ZScoreLabeler(1e-3, transition_ridge=None).fit(packed)
    assert_close(flat(plain), np.linalg.solve(C + 1e-3 * np.eye(len(C)), b))
    gold = [[f"L{code}" for code in path] for path in codes.reshape(40, 12)]
    wrong = np.mean(np.array(plain.predict(packed)) != np.array(gold))
    assert wrong > 0.5 * np.mean(codes != 3)
    tamed = ZScoreLabeler(1e-3, transition_ridge=1e4).fit(packed)
    assert tamed.predict(packed) == gold
    assert tamed.z_ < plain.z_
    assert ZScoreLabeler(1e-3, loss="hamming", transition_ridge=None).fit(packed).predict(packed) == gold


def test_no_direction_improves_z():
    packed, rows = example([4, 3, 5], 3, 2)
    b, C, *_ = enumerated(packed, rows)
    theta = flat(ZScoreLabeler(ridge=0.0, transition_ridge=None).fit(packed))
    best = z_of(theta, b, C)
    random = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0, 10.0):
        for _ in range(50):
            assert z_of(theta + size * np.abs(theta).max() * random.normal(size=len(theta)), b, C) <= best * (1 + 1e-12)


@every_case
@pytest.mark.parametrize("moments", ["closed", "dynamic"])
@pytest.mark.parametrize("ridge", [0.05, 2.0])
def test_hamming_version_is_the_quadratic_program(lengths, n_features, n_labels, moments, ridge):
    packed, rows = example(lengths, n_features, n_labels)
    b, C, loss_mean, loss_variance, c = enumerated(packed, rows)
    model = ZScoreLabeler(ridge=ridge, loss="hamming", moments=moments, transition_ridge=None).fit(packed)
    if n_labels == 1:
        assert not flat(model).any()
        return
    penalised = C + ridge * np.eye(len(C))
    theta = flat(model)
    multiplier = float(b @ (penalised @ theta + c) / (b @ b))
    scale = np.abs(multiplier * b).max()
    # Karush-Kuhn-Tucker: in a convex program these conditions hold at the optimum and nowhere else.
    np.testing.assert_allclose(penalised @ theta + c, multiplier * b, atol=1e-8 * scale)
    assert multiplier > 0
    np.testing.assert_allclose(theta @ b - loss_mean, 1.0, rtol=1e-8)  # the constraint is active

    def objective(theta: np.ndarray) -> float:
        return float(theta @ penalised @ theta / 2 + theta @ c + loss_variance / 2)

    generic = minimize(  # its line search may give up near the optimum; its value is close all the same
        objective,
        np.zeros(len(b)),
        jac=lambda theta: penalised @ theta + c,
        constraints={"type": "ineq", "fun": lambda theta: theta @ b - loss_mean - 1, "jac": lambda _theta: b},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    np.testing.assert_allclose(objective(theta), generic.fun, rtol=1e-6)


@every_case
@pytest.mark.parametrize("head", [0, 1, 700])
def test_all_routes_agree(lengths, n_features, n_labels, head, monkeypatch):
    monkeypatch.setattr(emissions, "HEAD", head)  # all by conjugate gradients, all but one column, or none
    packed, _ = example(lengths, n_features, n_labels)
    for loss in ("none", "hamming"):
        models = [
            ZScoreLabeler(ridge=0.1, transition_ridge=0.3, loss=loss, **settings).fit(packed)
            for settings in ({}, {"solver": "cg", "tolerance": 1e-13}, {"moments": "dynamic"})
        ]
        for model in models[1:]:
            assert_close(flat(model), flat(models[0]))
            if n_labels > 1:
                np.testing.assert_allclose(model.z_, models[0].z_, rtol=1e-8)
