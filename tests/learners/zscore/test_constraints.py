"""The Z-score with constraints reaches the optimum under all label paths, or says that there is none."""

from itertools import pairwise

import numpy as np
import pytest
from oracles.viterbi import all_paths
from oracles.zscore import count_features
from scipy.optimize import linprog, minimize, nnls
from sklearn.base import clone
from zscore_samples import enumerated, example, flat, packed_from

from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.errors import ConvergenceError, LearnerParameterError
from gramline.learners.token_features import feature_matrix
from gramline.learners.zscore import constraints as zscore_constraints
from gramline.learners.zscore import path_program
from gramline.learners.zscore.constraints import SearchOutcome, Separation, separate
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.learners.zscore.path_program import least_distance

RIDGES = [(1e-3, None), (0.5, 0.1), (0.3, 0.0), (1e-6, 0.4), (1e-6, None)]
SEPARABLE = [  # lengths, features, labels
    ([4, 3, 5], 3, 2),
    ([1, 2, 1, 3], 4, 3),
    ([1, 1, 1], 2, 3),
    ([0, 3, 0, 4], 2, 2),
    ([1], 2, 2),
    ([3, 4, 2, 3], 9, 3),
]
every_separable = pytest.mark.parametrize(("lengths", "n_features", "n_labels"), SEPARABLE)


def separable(lengths, n_features, n_labels, seed=0):
    """Labels that some weights give."""
    packed, rows = example(lengths, n_features, n_labels, seed)
    random = np.random.default_rng(seed + 1)
    weights, transition = random.normal(size=(n_features, n_labels)), random.normal(size=(n_labels, n_labels))
    labels, _ = viterbi(rows @ weights + 0.1 * random.normal(size=n_labels), transition, packed.starts)
    return packed_from(rows, lengths, labels, n_labels), rows


def differences(packed, rows):
    """phi(x, ybar) - phi(x, y) for every sequence and every wrong path, one per row."""
    n = len(packed.vocabulary.labels)
    rows_of_counts = []
    for a, b in pairwise(packed.starts.tolist()):
        right = tuple(packed.labels[a:b].tolist())
        counts = count_features(rows[a:b], right, n)
        rows_of_counts += [counts - count_features(rows[a:b], path, n) for path in all_paths(b - a, n) if path != right]
    return np.array(rows_of_counts)


def penalised(packed, rows, ridges):
    b, C, *_ = enumerated(packed, rows)
    n, size = len(packed.vocabulary.labels), rows.shape[1]
    transition_ridge = ridges[0] if ridges[1] is None else ridges[1]
    return b, C + np.diag(np.concatenate([np.full(size * n, ridges[0]), np.full(n * n, transition_ridge)]))


@every_separable
@pytest.mark.parametrize("ridges", RIDGES)
def test_the_optimum_under_all_label_paths(lengths, n_features, n_labels, ridges):
    packed, rows = separable(lengths, n_features, n_labels)
    model = ZScoreLabeler(*ridges, constraints="iterative", margin=1.0).fit(packed)
    theta = flat(model)
    b, C = penalised(packed, rows, ridges)
    constraints = np.vstack([b, differences(packed, rows)])
    reached = constraints @ theta
    assert reached.min() > 1 - 2e-4
    # Karush-Kuhn-Tucker: C theta is a sum of active constraints with multipliers of at least 0.
    active = constraints[reached < 1 + 1e-3]
    _, residual = nnls(active.T, C @ theta, maxiter=10000)
    assert residual < 1e-3 * np.linalg.norm(C @ theta)
    # and so no other feasible weights have a smaller objective; a generic solver finds the same
    generic = minimize(
        lambda theta: theta @ C @ theta / 2,
        theta * 1.5,
        jac=lambda theta: C @ theta,
        constraints={"type": "ineq", "fun": lambda theta: constraints @ theta - 1, "jac": lambda _theta: constraints},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    np.testing.assert_allclose(theta @ C @ theta / 2, generic.fun, rtol=2e-3)
    if min(ridges[0], 1.0 if ridges[1] is None else ridges[1]) > 1e-2:  # where the minimum is not flat
        np.testing.assert_allclose(theta, generic.x, atol=1e-3 * np.abs(theta).max())


@pytest.mark.parametrize("margin", [0.1, 0.9, 1.0])
def test_the_training_set_is_labelled_right_where_the_plain_score_fails(margin):
    packed, _ = separable([6] * 12, 4, 3, seed=2)
    gold = [[f"L{code}" for code in packed.labels[a:b]] for a, b in pairwise(packed.starts.tolist())]
    plain = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)
    wrong = sum(path != right for path, right in zip(plain.predict(packed), gold, strict=True))
    assert wrong > 0
    model = ZScoreLabeler(constraints="iterative", margin=margin, ridge=1e-3, transition_ridge=None).fit(packed)
    assert model.predict(packed) == gold
    assert model.mistakes_[0] == wrong
    assert model.mistakes_[-1] == 0
    assert model.n_constraints_ > 0
    assert model.z_ <= plain.z_
    assert (plain.mistakes_, plain.n_constraints_) == (None, None)


def test_all_solvers_find_the_same_weights():
    packed, _ = separable([5, 4, 6], 4, 3)
    models = [
        ZScoreLabeler(0.1, 0.3, solver=solver, tolerance=1e-13, constraints="iterative").fit(packed)
        for solver in ("auto", "direct", "cg")
    ]
    for model in models[1:]:
        np.testing.assert_allclose(flat(model), flat(models[0]), atol=1e-8 * np.abs(flat(models[0])).max())


def test_repeated_positions_are_one(monkeypatch):
    random = np.random.default_rng(0)
    rows = np.eye(3)[random.integers(3, size=40)]
    labels, _ = viterbi(rows @ random.normal(size=(3, 2)), np.zeros((2, 2)), np.array([0, 20, 40]))
    packed = packed_from(rows, [20, 20], labels, 2)
    monkeypatch.setattr(path_program, "LARGEST", 3)
    model = ZScoreLabeler(constraints="iterative", ridge=1e-3, transition_ridge=None).fit(packed)
    assert model.mistakes_[-1] == 0
    monkeypatch.setattr(path_program, "LARGEST", 2)
    with pytest.raises(LearnerParameterError) as error:
        ZScoreLabeler(constraints="iterative", ridge=1e-3, transition_ridge=None).fit(packed)
    assert error.value.key == "constraints"
    assert error.value.problem.endswith("are for at most 2 distinct training positions, got 3")


def test_one_label():
    packed, _ = example([3, 2], 2, 1)
    model = ZScoreLabeler(constraints="iterative", ridge=1e-3, transition_ridge=None).fit(packed)
    assert model.predict(packed) == [["L0"] * 3, ["L0"] * 2]
    assert (model.mistakes_, model.n_constraints_) == ([0], 0)


def refusal(packed, **settings):
    """The error of a fit whose constraints have no solution."""
    with pytest.raises(ConvergenceError) as error:
        ZScoreLabeler(constraints="iterative", **({"ridge": 1e-3, "transition_ridge": None} | settings)).fit(packed)
    return error.value


def test_sequences_that_contradict_each_other_are_named():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    error = refusal(packed_from(rows, [1, 1, 1], np.array([0, 1, 1]), 2))
    assert (error.status, error.structures) == ("not separable", (0, 2))
    assert str(error).startswith("no weights label the training structures 0, 2 (counted from 0) right (not separable")
    assert str(error).endswith("; give features that tell them apart, or set constraints to none")
    # one sequence of equal tokens: x y x x and x x y x have the same counts
    alone = refusal(packed_from(np.ones((4, 1)), [4], np.array([0, 1, 0, 0]), 2))
    assert (alone.status, alone.structures, alone.advice) == ("not separable", (0,), error.advice)
    # as often this as that: b* = 0
    even = refusal(packed_from(np.ones((3, 1)), [1, 1, 1], np.array([0, 1, 2]), 3))
    assert (even.status, even.structures, even.iterations) == ("not separable", (), 0)
    assert "no weights label the training structures right" in even.problem


def test_a_message_names_some_of_many_structures():
    separation = Separation(np.zeros((9, 2)), np.zeros((2, 2)), SearchOutcome.NOT_SEPARABLE, [3], 9, tuple(range(9)))
    with pytest.raises(ConvergenceError) as error:
        separation.require()
    assert error.value.structures == tuple(range(9))
    assert "training structures 0, 1, 2, 3, 4, ... (counted from 0)" in error.value.problem


@pytest.mark.parametrize("seed", range(5))
def test_random_labels_are_separable_or_refused_as_a_linear_program_says(seed):
    packed, rows = example([3, 3, 2, 3], 2, 2, seed)
    constraints = differences(packed, rows)
    feasible = linprog(
        np.zeros(constraints.shape[1]), -constraints, -np.ones(len(constraints)), bounds=(None, None)
    ).success
    statistics = ChainStatistics(packed.labels, packed.starts, 2)
    separation = separate(feature_matrix(packed, 2), statistics, 1e-3, 1e-3, 1.0, 100)
    assert separation.outcome is (SearchOutcome.SEPARATED if feasible else SearchOutcome.NOT_SEPARABLE)
    assert separation.outcome.advice


def test_rounds_have_an_end():
    packed, _ = separable([6] * 12, 4, 3, seed=2)
    error = refusal(packed, max_rounds=2)
    assert (error.status, error.iterations) == ("max_rounds", 2)
    assert "the Z-score's constraints did not converge (max_rounds after 2 rounds" in error.problem
    assert "raise max_rounds" in error.advice


def test_a_program_that_gains_nothing_ends(monkeypatch):
    packed, _ = separable([6] * 12, 4, 3, seed=2)
    monkeypatch.setattr(zscore_constraints, "least_distance", lambda gram: (np.full(len(gram), 1.0 / gram.max()), True))
    error = refusal(packed)
    assert error.status == "stagnated"
    assert error.advice.startswith("rounding is in the way")


def test_least_distance():
    vectors = np.array([[2.0, 0.0], [0.0, 0.5], [1.0, 1.0]])
    multipliers, is_solved = least_distance(vectors @ vectors.T)
    assert is_solved
    np.testing.assert_allclose(vectors.T @ multipliers, [0.5, 2.0])
    against = np.array([[2.0, 0.0], [0.0, 0.5], [-4.0, 0.0]])
    contradiction, is_solved = least_distance(against @ against.T)
    assert not is_solved
    np.testing.assert_allclose(against.T @ contradiction, 0.0, atol=1e-7)
    assert np.flatnonzero(contradiction > 1e-6).tolist() == [0, 2]


def test_least_squares_without_an_end_are_an_error(monkeypatch):
    def endless(*_arguments, **_options):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(path_program, "nnls", endless)
    with pytest.raises(ConvergenceError) as error:
        least_distance(np.eye(2))
    assert error.value.status == "max_iterations"
    assert error.value.problem.startswith("non-negative least squares of 2 constraints did not converge")


def test_state_and_a_new_fit_without_constraints():
    packed, _ = separable([4, 3, 5], 3, 2)
    model = ZScoreLabeler(constraints="iterative", ridge=1e-3, transition_ridge=None).fit(packed)
    again = ZScoreLabeler.from_state(*model.to_state())
    assert again.predict(packed) == model.predict(packed)
    assert (again.mistakes_, again.n_constraints_) == (model.mistakes_, model.n_constraints_)
    assert clone(model).get_params() == model.get_params()
    plain = model.set_params(constraints="none").fit(packed)
    assert plain.mistakes_ is None
    np.testing.assert_allclose(flat(plain), flat(ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)))
