"""Means and covariances over all label paths: closed forms, dynamic programming and samples."""

from itertools import pairwise

import numpy as np
from oracles import zscore as oracle
from tolerances import assert_close
from zscore_samples import enumerated, every_case, example, flat

from gramline.learners.chains.moments import ChainStatistics, path_moments
from gramline.learners.token_features import feature_matrix
from gramline.learners.zscore import dynamic as zscore_dynamic
from gramline.learners.zscore import sampled as zscore_sampled
from gramline.learners.zscore.dynamic import PathFeatures, dynamic_moments, training_moments
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.learners.zscore.sampled import SampledMoments


@every_case
def test_closed_moments_are_those_of_all_paths_and_of_dynamic_programming(lengths, n_features, n_labels):
    packed, rows = example(lengths, n_features, n_labels)
    b, C, loss_mean, _, loss_covariance = enumerated(packed, rows)
    statistics = ChainStatistics(packed.labels, packed.starts, n_labels)
    assert_close(oracle.closed_covariance(rows, packed.starts, n_labels), C)
    assert_close(oracle.closed_excess(rows, statistics), b)
    model = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(
        packed
    )  # the route to the sparse matrix of the learner
    moments = training_moments(feature_matrix(packed, n_features), packed.labels, packed.starts, n_labels)
    assert_close(moments.covariance, C)
    assert_close(moments.excess, b)
    assert_close(moments.loss_covariance, loss_covariance)
    assert_close(moments.loss_mean, loss_mean)
    assert model.emission_.shape == (n_labels, n_features)


@every_case
def test_score_moments_are_those_of_all_paths(lengths, n_features, n_labels):
    random = np.random.default_rng(n_features)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores, transition = random.normal(size=(starts[-1], n_labels)), random.normal(size=(n_labels, n_labels))
    expected = [oracle.score_moments(scores[a:b], transition) for a, b in pairwise(starts)]
    mean, variance = path_moments(scores, transition, starts)
    assert_close(mean, [pair[0] for pair in expected])
    assert_close(variance, [pair[1] for pair in expected])


def test_dynamic_programming_takes_any_local_features():
    random = np.random.default_rng(2)
    local = random.normal(size=(4, 3, 3, 5)) * (random.random((4, 3, 3, 5)) < 0.6)
    local[0] = local[0, :1]  # the first position has no predecessor
    totals = []
    for path in np.ndindex(3, 3, 3, 3):
        totals.append(local[0, 0, path[0]] + sum(local[k, path[k - 1], path[k]] for k in range(1, 4)))
    mean, spread = dynamic_moments(PathFeatures.of(local))
    assert_close(mean, np.mean(totals, axis=0))
    assert_close(spread, np.cov(np.array(totals).T, bias=True))
    again, half = zscore_dynamic._moments.py_func(PathFeatures.of(local))
    assert_close(again, mean)
    assert_close(half + half.T - np.outer(again, again), spread)


def test_sampled_moments_are_those_of_the_sampled_paths(monkeypatch):
    packed, rows = example([3, 4, 1], 3, 2)
    statistics = ChainStatistics(packed.labels, packed.starts, 2)
    sampled = SampledMoments(feature_matrix(packed, 3), statistics, 7, seed=5)
    C, mean, c, loss_mean, truth = 0.0, 0.0, 0.0, 0.0, 0.0
    for a, b in pairwise(packed.starts.tolist()):
        table = np.array([oracle.count_features(rows[a:b], path, 2) for path in sampled.paths[:, a:b]])
        losses = (sampled.paths[:, a:b] != packed.labels[a:b]).sum(axis=1)
        C = C + np.cov(table.T, bias=True)
        c = c + (table - table.mean(axis=0)).T @ (losses - losses.mean()) / 7
        mean, loss_mean = mean + table.mean(axis=0), loss_mean + losses.mean()
        truth = truth + oracle.count_features(rows[a:b], packed.labels[a:b], 2)
    assert_close(sampled.apply(np.eye(len(C))), C)
    assert_close(sampled.excess, truth - mean)
    assert_close(sampled.loss_covariance, c)
    assert_close(sampled.loss_mean, loss_mean)
    expected = np.linalg.solve(C + 0.1 * np.eye(len(C)), truth - mean)
    for solver in ("direct", "cg"):
        settings = {"moments": "sampled", "n_paths": 7, "seed": 5, "solver": solver, "tolerance": 1e-13}
        assert_close(flat(ZScoreLabeler(0.1, **settings, transition_ridge=None).fit(packed)), expected)
    random = np.random.default_rng(1)
    emitted, transition = random.normal(size=(8, 2, 4)), random.normal(size=(2, 2, 4))
    compiled, plain = np.zeros((3, 7, 4)), np.zeros((3, 7, 4))
    follow = zscore_sampled._follow
    follow(sampled.paths, packed.starts, emitted, transition, compiled, False)
    gathered = [np.zeros((8, 2, 4)), np.zeros((2, 2, 4)), np.zeros((8, 2, 4)), np.zeros((2, 2, 4))]
    follow(sampled.paths, packed.starts, *gathered[:2], compiled, True)
    monkeypatch.setattr(zscore_sampled, "_add", zscore_sampled._add.py_func)
    follow.py_func(sampled.paths, packed.starts, emitted, transition, plain, False)
    follow.py_func(sampled.paths, packed.starts, *gathered[2:], plain, True)
    assert_close(compiled, plain)
    for fast, slow in zip(gathered[:2], gathered[2:], strict=True):
        assert_close(fast, slow)


def test_many_sampled_paths_come_close_to_all():
    packed, _ = example([4] * 30, 3, 2)
    exact = ZScoreLabeler(ridge=1.0, transition_ridge=None).fit(packed)
    sampled = ZScoreLabeler(ridge=1.0, moments="sampled", n_paths=4000, transition_ridge=None).fit(packed)
    assert np.abs(flat(sampled) - flat(exact)).max() < 0.1 * np.abs(flat(exact)).max()
