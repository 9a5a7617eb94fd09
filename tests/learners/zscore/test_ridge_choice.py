"""Ridges chosen on hidden structures: against fits of every pair on every fold, one by one."""

from itertools import pairwise

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels.packing import Features, PackedSequences, Vocabulary
from gramline.learners.errors import ConvergenceError, LearnerParameterError
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.operators.dense import DenseGram
from gramline.learners.zscore import ridge_choice
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler

NAMES = ("B", "I", "O")
AUTO = {"ridge": "auto", "transition_ridge": "auto"}


def entities(n_structures, seed=0, noise=0.15):
    """Rows of features and labels of which most are O: what makes a small transition ridge label everything O."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 12, n_structures)
    codes = np.concatenate([_path(random, length) for length in lengths]).astype(np.int32)
    rows = (random.random((len(codes), 14)) < 0.2).astype(float)
    noisy = np.where(random.random(len(codes)) < noise, random.integers(0, 3, len(codes)), codes)
    rows[np.arange(len(codes)), noisy] = 1.0
    return rows, codes, lengths


def _path(random, length):
    path = np.full(length, 2)
    if length > 4 and random.random() < 0.5:
        start = random.integers(0, length - 2)
        path[start : start + 2] = 0, 1
    return path


ROWS, CODES, LENGTHS = entities(23)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
PATHS = [[NAMES[code] for code in CODES[a:b]] for a, b in pairwise(STARTS)]


def packed(rows=ROWS, codes=CODES, lengths=LENGTHS):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))])
    vocabulary = Vocabulary(features=tuple(f"f{k}" for k in range(rows.shape[1])), labels=NAMES)
    return PackedSequences(starts, np.zeros(len(rows)), Features(indptr, np.nonzero(rows)[1], None), codes, vocabulary)


class CountedGram(DenseGram):
    def matmul(self, W, *, transpose=False):
        self.widths = [*getattr(self, "widths", []), W.shape[1]]
        return super().matmul(W, transpose=transpose)


def gram(kind=DenseGram):
    return kind(ROWS @ ROWS.T, LENGTHS, label_names=NAMES)


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(ridge_choice, "STOPPING", StoppingRule(1e-11, 500))


def candidates(ridge=None):
    typical, n_transitions = np.diag(ROWS @ ROWS.T).mean(), np.maximum(LENGTHS - 1, 0).sum()
    ridges = [step * typical / 3 for step in (0.03, 0.1, 0.3, 1.0, 3.0)] if ridge is None else [ridge]
    steps = (1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)
    return [(one, step * n_transitions / 9) for one in ridges for step in steps]


def wrong_labels(pair, n_folds=5, **settings):
    """Labels that fits without every fifth filled structure get wrong there."""
    filled, wrong = np.flatnonzero(LENGTHS), 0
    for fold in range(n_folds):
        hidden = set(filled[fold::5].tolist())
        visible = [None if k in hidden else path for k, path in enumerate(PATHS)]
        model = KernelZScoreLabeler(*pair, unlabeled="drop", tolerance=1e-11, **settings).fit(gram(), visible)
        predicted = model.predict(gram())
        wrong += sum(a != b for k in hidden for a, b in zip(predicted[k], PATHS[k], strict=True))
    return wrong


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("ridge", [None, 0.2])
@pytest.mark.parametrize("settings", [{}, {"loss": "hamming"}, {"constraints": "iob2"}], ids=str)
def test_the_pair_with_the_fewest_wrong_labels_on_hidden_structures_is_chosen(ridge, settings):
    counts = {pair: wrong_labels(pair, **settings) for pair in candidates(ridge)}
    assert len(set(counts.values())) > 2
    expected = max(pair for pair, count in counts.items() if count == min(counts.values()))
    given = AUTO if ridge is None else AUTO | {"ridge": ridge}
    kernel = KernelZScoreLabeler(**given, **settings).fit(gram(), PATHS)
    primal = ZScoreLabeler(**given, **settings).fit(packed())
    for model in (kernel, primal):
        assert_close((model.ridge_, model.transition_ridge_), expected)
    fixed = KernelZScoreLabeler(*expected, **settings).fit(gram(), PATHS)
    np.testing.assert_allclose(kernel.dual_, fixed.dual_, atol=1e-6 * np.abs(fixed.dual_).max())
    np.testing.assert_allclose(kernel.transition_, fixed.transition_, rtol=1e-6)
    assert_close(primal.emission_, ZScoreLabeler(*expected, **settings).fit(packed()).emission_)


def test_a_fold_less_when_enough_positions_were_hidden(monkeypatch):
    monkeypatch.setattr(ridge_choice, "STOPPING", StoppingRule(1e-11, 500))
    monkeypatch.setattr(ridge_choice, "ENOUGH", int(LENGTHS[np.flatnonzero(LENGTHS)[::5]].sum()) + 1)
    counts = {pair: wrong_labels(pair, n_folds=2) for pair in candidates()}
    expected = max(pair for pair, count in counts.items() if count == min(counts.values()))
    model = KernelZScoreLabeler().fit(gram(), PATHS)
    assert_close((model.ridge_, model.transition_ridge_), expected)


def test_where_one_label_is_nearly_everywhere_the_others_are_predicted():
    rows, codes, lengths = entities(60, seed=5, noise=0.0)
    new_rows, new_codes, new_lengths = entities(40, seed=6, noise=0.0)
    majority = (new_codes != 2).mean()
    for ridge, transition_ridge in ((1e-3, None), ("auto", "auto")):
        model = ZScoreLabeler(ridge, transition_ridge).fit(packed(rows, codes, lengths))
        predicted = [label for path in model.predict(packed(new_rows, new_codes, new_lengths)) for label in path]
        error = np.mean([label != NAMES[code] for label, code in zip(predicted, new_codes, strict=True)])
        if ridge == "auto":
            assert error < 0.7 * majority
            assert set(predicted) == set(NAMES)
        else:
            assert error > 0.9 * majority


@pytest.mark.parametrize("n_structures", [1, 4])
def test_fewer_than_five_structures_get_a_fixed_choice(n_structures):
    filled = np.flatnonzero(LENGTHS > 4)[:n_structures]
    at = np.concatenate([np.arange(STARTS[k], STARTS[k + 1]) for k in filled])
    lengths, paths = LENGTHS[filled], [PATHS[k] for k in filled]
    rows = ROWS[at]
    model = KernelZScoreLabeler().fit(DenseGram(rows @ rows.T, lengths, label_names=NAMES), paths)
    primal = ZScoreLabeler().fit(packed(rows, CODES[at], lengths))
    expected = 0.1 * np.diag(rows @ rows.T).mean() / 3, 100 * (lengths - 1).sum() / 9
    for one in (model, primal):
        assert_close((one.ridge_, one.transition_ridge_), expected)


def test_folds_and_settings_choose_in_one_stream_what_they_choose_alone():
    together = gram(CountedGram)
    sets = [[None if k % 3 == fold else path for k, path in enumerate(PATHS)] for fold in range(2)]
    settings = [{}, {"loss": "hamming"}, {"ridge": [0.1, 1.0]}, {"ridge": 0.3, "transition_ridge": None}]
    learners = [KernelZScoreLabeler(unlabeled="drop", **item) for item in settings for _ in sets]
    labels = sets * len(settings)
    predicted = KernelZScoreLabeler.fit_many(learners, together, labels)
    alone = [gram(CountedGram) for _ in learners]
    for learner, own, visible, found in zip(learners, alone, labels, predicted, strict=True):
        other = learner.fresh().fit(own, visible)
        assert (learner.ridge_, learner.transition_ridge_) == (other.ridge_, other.transition_ridge_)
        assert [one.transition_ridge_ for one in learner.path_] == [one.transition_ridge_ for one in other.path_]
        np.testing.assert_allclose(learner.dual_, other.dual_, atol=1e-6 * np.abs(other.dual_).max())
        assert found == other.predict(gram())
    assert len(together.widths) <= max(len(own.widths) for own in alone) + 1


def test_every_ridge_of_a_list_has_a_transition_ridge_of_its_own():
    ridges = [10.0, 0.05]
    model = KernelZScoreLabeler(ridges).fit(gram(), PATHS)
    for ridge, single in zip(ridges, model.path_, strict=True):
        alone = KernelZScoreLabeler(ridge).fit(gram(), PATHS)
        assert (single.ridge_, single.transition_ridge_) == (ridge, alone.transition_ridge_)
    assert (model.ridge_, model.transition_ridge_) == (10.0, model.path_[0].transition_ridge_)


def test_a_ridge_that_did_not_converge_is_not_chosen_beside_one_that_did():
    curved = DenseGram(np.exp(-0.3 * ((ROWS[:, None] - ROWS[None]) ** 2).sum(axis=2)), LENGTHS, label_names=NAMES)
    settings = {"preconditioner": "none", "max_iterations": 14, "tolerance": 1e-6}
    model = KernelZScoreLabeler(**settings).fit(curved, PATHS)
    ridges = [step / 3 for step in (0.03, 0.1, 0.3, 1.0, 3.0)]  # of a diagonal of 1 and 3 labels
    alone = [KernelZScoreLabeler(ridge, **settings).fit(curved, PATHS) for ridge in ridges]
    assert [one.status_ for one in alone][:: len(alone) - 1] == ["max_iterations", "converged"]
    assert model.status_ == "converged"
    none = KernelZScoreLabeler(preconditioner="none", max_iterations=1).fit(curved, PATHS)
    assert_close(none.ridge_, ridges[-1])
    with pytest.raises(ConvergenceError, match=f"ridge {none.ridge_:g} did not"):
        none.predict(curved)


def test_a_gram_of_zeros_and_a_ridge_of_zero():
    nothing = KernelZScoreLabeler().fit(DenseGram(np.zeros_like(ROWS @ ROWS.T), LENGTHS), PATHS)
    assert nothing.ridge_ == 1.0  # the largest, of 3 labels, where no diagonal gives a size
    least = ZScoreLabeler(ridge=0).fit(packed())
    assert least.ridge_ == 0
    assert least.transition_ridge_ > 0


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(LearnerParameterError, match="belongs to one ridge; give a number") as error:
        KernelZScoreLabeler(preconditioner="nystrom").fit(gram(), PATHS)
    assert error.value.key == "preconditioner"
    with pytest.raises(LearnerParameterError, match="cannot be chosen and listed at once"):
        KernelZScoreLabeler(ridge=["auto", 0.1]).fit(gram(), PATHS)
    for kind in (KernelZScoreLabeler, ZScoreLabeler):
        with pytest.raises(LearnerParameterError, match="or auto, got 'best'"):
            kind(transition_ridge="best").check_parameters()
