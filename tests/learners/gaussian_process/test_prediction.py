"""Prediction against the literal formulas; low rank, states, decoding, and what is refused."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import gaussian_process as oracle
from oracles.viterbi import best_path
from scipy.special import softmax
from sklearn.base import clone
from tolerances import assert_close

from gramline.learners.errors import LearnerError, NotPositiveDefiniteError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.gaussian_process.normalizer import JensenNormalizer
from gramline.learners.gaussian_process.prediction import Couplings, Moments, Refinement, refine
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.operators.dense import DenseGram

LENGTHS, NEW_LENGTHS = np.array([5, 3, 6, 4]), np.array([4, 1, 7])
N, M = 18, 12
RANDOM = np.random.default_rng(3)
POINTS, NEW_POINTS = RANDOM.standard_normal((N, 2)), RANDOM.standard_normal((M, 2))
LABELS = [
    [("A", "B", "C")[int(abs(x) > 0.6) + int(y > 0.8)] for x, y in POINTS[a:b]] for a, b in pairwise([0, 5, 8, 14, 18])
]


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found: np.ndarray = 3.0 * np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2))
    return found


GRAM, CROSS = kernel(POINTS, POINTS), kernel(POINTS, NEW_POINTS)
TRAIN = DenseGram(GRAM, LENGTHS, block_rows=7)
NEW = DenseGram(CROSS, LENGTHS, NEW_LENGTHS, col_diagonal=np.full(M, 3.0), block_rows=7)


def fit(**params: Any) -> GaussianProcessLabeler:
    return GaussianProcessLabeler(**({"bound": "jensen", "scale": 1.0} | params)).fit(TRAIN, LABELS)


def refined(base: np.ndarray, table: np.ndarray, offsets: tuple[int, ...], lengths: np.ndarray, cap: int) -> Refinement:
    """Without variances, to the last sweep."""
    couplings = Couplings(offsets, table, np.zeros_like(table))
    return refine(Moments(base, None), couplings, lengths, JensenNormalizer(), StoppingRule(1e-30, cap))


@pytest.mark.parametrize("offsets", [(-1,), (-1, 1), (-2, -1, 1, 2), ()], ids=str)
def test_probabilities_are_the_refined_normalised_scores(offsets: tuple[int, ...]) -> None:
    model = fit(bound="jensen", offsets=offsets, scale=1.3)
    K = 1.3 * GRAM
    columns = [
        oracle.predictive(K, 1.3 * CROSS, np.full(M, 3.9), model.dual_[:, j], model.precision_[:, j]) for j in range(3)
    ]
    means, variances = (np.stack(parts, axis=1) for parts in zip(*columns, strict=True))
    found = model.local_moments(NEW)
    assert found[1] is not None
    assert_close(found[0], means)
    assert_close(found[1], variances)
    couplings = model.coupling_mean_ + model.coupling_variance_ / 2
    literal = oracle.refined_scores(means + variances / 2, couplings, offsets, NEW_LENGTHS, 60)
    probabilities = model.predict_proba(NEW)
    np.testing.assert_allclose(probabilities, literal, atol=1e-5)
    assert_close(probabilities.sum(axis=1), np.ones(M))
    assert model.prediction_report_["converged"]
    assert model.prediction_report_["variances"]
    scores = model.decision_scores(NEW)
    assert_close(np.array([oracle.softmax(row) for row in scores]), probabilities)
    flat = [model.label_names_[code] for code in probabilities.argmax(axis=1)]
    assert [label for labels in model.predict(NEW) for label in labels] == flat
    assert [len(labels) for labels in model.predict(NEW)] == NEW_LENGTHS.tolist()


def test_viterbi_finds_the_best_path() -> None:
    model = fit(bound="jensen", offsets="GPSL1", decoding="viterbi")
    base = model.local_scores(NEW)
    couplings = model.coupling_mean_[0] + model.coupling_variance_[0] / 2
    starts = np.concatenate([[0], np.cumsum(NEW_LENGTHS)])
    expected = [
        [model.label_names_[code] for code in best_path(base[a:b], couplings)] for a, b in pairwise(starts.tolist())
    ]
    assert model.predict(NEW) == expected


def test_refinement_counts_its_sweeps() -> None:
    base = RANDOM.standard_normal((M, 3))
    couplings = RANDOM.standard_normal((2, 3, 3))
    for cap in (1, 2, 5):
        found = refined(base, couplings, (-1, 2), NEW_LENGTHS, cap)
        assert_close(found.probabilities, oracle.refined_scores(base, couplings, (-1, 2), NEW_LENGTHS, cap))
        assert found.iterations == cap
        assert not found.converged


def test_strong_couplings_that_cycle_are_capped_and_reported() -> None:
    """Each neighbour wants the other one to differ: both positions flip together for ever."""
    couplings = np.array([[[-50.0, 50.0], [50.0, -50.0]]] * 2)
    base = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = refined(base, couplings, (-1, 1), np.array([2]), 33)
    assert not found.converged
    assert found.iterations == 33
    assert found.largest_change > 0.5


def test_scores_of_several_hundred_do_not_overflow() -> None:
    found = refined(np.array([[900.0, -900.0, 0.0]]), np.zeros((0, 3, 3)), (), np.array([1]), 5)
    assert_close(found.probabilities, [[1.0, 0.0, 0.0]])
    assert found.converged


def test_means_alone_when_nobody_knows_the_new_diagonal() -> None:
    model = fit()
    blind = DenseGram(CROSS, LENGTHS, NEW_LENGTHS)
    means, variances = model.local_moments(blind)
    assert variances is None
    assert_close(means, CROSS.T @ model.dual_)
    model.predict(blind)
    assert not model.prediction_report_["variances"]
    with pytest.raises(LearnerError) as caught:
        fit(variance="exact").predict(blind)
    assert caught.value.advice == "give DenseGram its col_diagonal"
    assert fit(variance="none").local_moments(NEW)[1] is None


def test_variances_at_the_training_positions_are_those_of_the_posterior() -> None:
    model = fit()
    variances = model.local_moments(TRAIN)[1]
    assert variances is not None
    for j in range(3):
        assert_close(variances[:, j], np.diagonal(oracle.posterior(GRAM, model.dual_[:, j], model.precision_[:, j])[1]))


# --- low rank --------------------------------------------------------------------------------------------------


def test_low_rank_at_full_rank_is_exact() -> None:
    exact, low = fit(offsets="GPSL4"), fit(offsets="GPSL4", approximation="nystrom", rank=N)
    np.testing.assert_allclose(low.elbo_, exact.elbo_, rtol=1e-8)
    np.testing.assert_allclose(low.predict_proba(NEW), exact.predict_proba(NEW), atol=1e-6)
    report = low.approximation_report_
    assert report["kernel_error"] < 1e-9
    assert report["mean_error"] < 1e-7
    assert report["variance_error"] < 1e-7


def test_low_rank_reports_its_error_and_needs_only_its_landmarks() -> None:
    low = fit(approximation="nystrom", rank=6)
    errors = [fit(approximation="nystrom", rank=rank).approximation_report_["trace_residual"] for rank in (2, 6, 12)]
    assert errors == sorted(errors, reverse=True)
    assert low.approximation_report_["kernel_error"] > 1e-6
    assert low.support().sum() == 6
    rows = np.flatnonzero(low.support())
    reduced = low.restricted(rows)
    cross = DenseGram(CROSS[rows], [6], NEW_LENGTHS, col_diagonal=np.full(M, 3.0))
    assert_close(reduced.predict_proba(cross), low.predict_proba(NEW))
    assert (np.diff(low.elbo_trace_) >= -1e-9 * abs(low.elbo_)).all()


def test_a_second_fit_forgets_the_first() -> None:
    model = fit(approximation="nystrom", rank=4)
    model.set_params(approximation=None, rank=None).fit(TRAIN, LABELS)
    assert_close(model.predict_proba(NEW), fit().predict_proba(NEW))
    assert not hasattr(model, "landmark_order_")


# --- states ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{}, {"approximation": "nystrom", "rank": 5}, {"offsets": "GPSL1", "variance": "none"}]
)
def test_a_state_predicts_like_the_learner(params: dict[str, Any]) -> None:
    missing = [[None, *labels[1:]] for labels in LABELS]
    model = GaussianProcessLabeler(**params, bound="jensen", scale=1.0).fit(TRAIN, missing)
    again = GaussianProcessLabeler.from_state(*model.to_state())
    assert again.get_params() == model.get_params()
    assert (again.predict_proba(NEW) == model.predict_proba(NEW)).all()
    rows = np.flatnonzero(model.support())
    cross = DenseGram(CROSS[rows], [len(rows)], NEW_LENGTHS, col_diagonal=np.full(M, 3.0))
    reduced = GaussianProcessLabeler.from_state(*model.restricted(rows).to_state())
    assert_close(reduced.predict_proba(cross), model.predict_proba(NEW))
    assert ("covariance" in model.to_state()[1]) == (params == {})


def test_clones_are_unfitted() -> None:
    model = fit(offsets=(1,), rank=None)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not copy.fitted()
    assert repr(copy) == "GaussianProcessLabeler(offsets=(1,), bound='jensen', scale=1.0)"


# --- bad input -------------------------------------------------------------------------------------------------


def test_label_kernels_are_checked() -> None:
    coupled = DenseGram(GRAM, LENGTHS, label_names=list("ABC"), label_kernel=np.eye(3) + 0.1)
    with pytest.raises(LearnerError, match="needs a diagonal label kernel; leave label_kernel out"):
        GaussianProcessLabeler(bound="jensen", scale=1.0).fit(coupled, LABELS)


@pytest.mark.parametrize(
    ("changed", "key", "problem"),
    [
        ({"offsets": (-1,)}, "offsets", "offsets is (-1,), but training had 2 of them"),
        ({"decoding": "viterbi"}, "decoding", 'decoding="viterbi" needs offsets=(-1,), got (-1, 1)'),
        ({"decoding": "beam"}, "decoding", "decoding must be one of refined, viterbi, got 'beam'"),
    ],
    ids=str,
)
def test_parameters_changed_after_the_training_are_checked(changed: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(LearnerError) as error:
        fit().set_params(**changed).predict(NEW)
    assert (error.value.key, error.value.problem) == (key, problem)
    assert fit(offsets=(-1,)).set_params(decoding="viterbi").predict(NEW)


@pytest.mark.parametrize("offsets", [np.array([-1, 1]), range(1, 3), [2, -1]], ids=repr)
def test_offsets_of_any_list_are_kept(offsets: Any) -> None:
    model = fit(offsets=offsets)
    again = GaussianProcessLabeler.from_state(*model.to_state())
    assert again.offsets == tuple(offsets)
    assert_close(again.predict_proba(NEW), fit(offsets=tuple(offsets)).predict_proba(NEW))


@pytest.mark.parametrize("offset", [N, -(2**63), 10**30])
def test_an_offset_beyond_every_structure_changes_nothing(offset: int) -> None:
    far, near = fit(offsets=(-1, offset)), fit(offsets=(-1,))
    assert_close(far.elbo_, near.elbo_)
    assert_close(far.predict_proba(NEW), near.predict_proba(NEW))


def test_a_gram_of_zeros_has_a_low_rank_of_none() -> None:
    nothing = DenseGram(np.zeros((N, N)), LENGTHS)
    low = GaussianProcessLabeler(approximation="nystrom", rank=3, bound="jensen", scale=1.0).fit(nothing, LABELS)
    assert low.approximation_report_["rank"] == 0
    assert low.approximation_report_["trace_residual"] == low.approximation_report_["kernel_error"] == 0
    assert_close(
        low.predict_proba(nothing),
        GaussianProcessLabeler(bound="jensen", scale=1.0).fit(nothing, LABELS).predict_proba(nothing),
    )


@pytest.mark.parametrize("strength", [1.0, 30.0])
@pytest.mark.parametrize("low", [{}, {"approximation": "nystrom", "rank": N}], ids=["exact", "low rank"])
def test_a_gram_that_is_not_positive_semidefinite_says_what_would_do(low: dict[str, Any], strength: float) -> None:
    direction = np.linalg.eigh(GRAM)[1][:, -1]
    bad = strength * (GRAM - 40.0 * np.outer(direction, direction))
    lowest = np.linalg.eigvalsh(bad)[0]
    with pytest.raises(NotPositiveDefiniteError) as caught:
        GaussianProcessLabeler(**low, bound="jensen", scale=1.0).fit(DenseGram(bad, LENGTHS), LABELS)
    jitter = caught.value.jitter
    assert jitter is not None
    assert -lowest <= jitter <= -1.3 * lowest
    assert caught.value.pivot < 0
    assert caught.value.advice.startswith(f"jitter={jitter:.2g} would do")
    assert ("a scale below" in caught.value.advice) == (not low)
    mended = GaussianProcessLabeler(jitter=jitter, **low, bound="jensen", scale=1.0).fit(
        DenseGram(bad, LENGTHS), LABELS
    )
    assert np.isfinite(mended.elbo_trace_).all()
    assert mended.elbo_ > mended.elbo_trace_[0]


@pytest.mark.parametrize("others", [0.0, 1.0], ids=["all of it", "of two rows"])
def test_a_diagonal_of_zero_beside_other_entries_is_refused_at_a_low_rank(others: float) -> None:
    """Such rows never become pivots."""
    bad = others * np.eye(N)
    bad[[3, 11], [3, 11]] = 0.0
    bad[3, 11] = bad[11, 3] = -1.5
    low = GaussianProcessLabeler(approximation="nystrom", rank=4, bound="jensen", scale=1.0)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        low.fit(DenseGram(bad, LENGTHS), LABELS)
    assert (caught.value.row, caught.value.pivot) == (11, pytest.approx(-1.5))
    assert caught.value.jitter in (1.6, 1.7)
    assert np.isfinite(low.set_params(jitter=1.7).fit(DenseGram(bad, LENGTHS), LABELS).elbo_)


def test_what_a_low_rank_only_finds_when_it_is_compared_is_refused_in_the_same_words() -> None:
    """Three rows with entries of -0.9 of their diagonal: no pair of them is wrong, and together they are."""
    bad = np.diag(np.where(np.arange(N) < 8, 80.0, 40.0))
    bad[np.ix_([11, 13, 17], [11, 13, 17])] -= 0.9 * 40.0 * (1.0 - np.eye(3))
    labels = [[None, *row[1:]] for row in LABELS]
    with pytest.raises(
        NotPositiveDefiniteError,
        match=r"^the Gram matrix is not positive semidefinite: pivot -\S+ at row 17, smallest eigenvalue about -32; "
        r"jitter=35 would do$",
    ) as caught:
        GaussianProcessLabeler(approximation="nystrom", rank=3, bound="jensen", scale=1.0).fit(
            DenseGram(bad, LENGTHS), labels
        )
    assert (caught.value.row, caught.value.jitter) == (17, 35)


@pytest.mark.parametrize(("others", "strength"), [(1.0, 5.0), (-1e-3, 0.5)], ids=["factor", "means"])
def test_the_row_of_a_bad_pivot_is_that_of_the_gram(others: float, strength: float) -> None:
    """Unlabeled positions before it do not count it away."""
    bad = others * np.eye(N)
    bad[11, 11] = -strength
    labels = [[None, *row[1:]] for row in LABELS]
    with pytest.raises(NotPositiveDefiniteError) as caught:
        GaussianProcessLabeler(bound="jensen", scale=1.0).fit(DenseGram(bad, LENGTHS), labels)
    assert caught.value.row == 11


def test_labels_and_probabilities_of_one_cross_gram_share_their_factorisations(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fit(offsets=(-1,))
    looked: list[Any] = []
    moments = GaussianProcessLabeler._local_moments

    def counted(learner: Any, new: Any) -> Any:
        looked.append(new)
        return moments(learner, new)

    monkeypatch.setattr(GaussianProcessLabeler, "_local_moments", counted)
    first = fitted.predict_proba(NEW)
    fitted.predict(NEW)
    assert looked == [NEW]
    # Whatever makes a difference is looked at again: parameters, another Gram, another training.
    assert np.abs(fitted.set_params(variance="none").predict_proba(NEW) - first).max() > 1e-6
    again = pickle.loads(pickle.dumps(fitted.set_params(variance="auto")))
    assert_close(again.predict_proba(NEW), first)
    other = DenseGram(CROSS[:, ::-1], LENGTHS, NEW_LENGTHS, col_diagonal=np.full(M, 3.0))
    assert np.abs(fitted.predict_proba(other) - first).max() > 1e-6
    fitted.fit(DenseGram(2 * GRAM, LENGTHS), LABELS)
    assert np.abs(fitted.predict_proba(NEW) - first).max() > 1e-6


def test_without_variances_scores_are_those_of_the_expected_functions() -> None:
    """The paper's text: softmax of mean + sum_d RNS mS_d, no variance of local functions nor of couplings."""
    fitted = fit(offsets="GPSL2", variance="none", bound="jensen", max_refinements=3)
    means = fitted.local_moments(NEW).means
    lengths = NEW.layout.cols.lengths
    probabilities = softmax(means, axis=1)
    for _ in range(3):
        scores = means.copy()
        for offset, coupling in zip((-1, 1), fitted.coupling_mean_, strict=True):
            start = 0
            for length in lengths.tolist():
                for place in range(length):
                    if 0 <= place + offset < length:
                        scores[start + place] += probabilities[start + place + offset] @ coupling
                start += length
        probabilities = softmax(scores, axis=1)
    assert fitted.predict_proba(NEW) == pytest.approx(probabilities, abs=1e-5)
