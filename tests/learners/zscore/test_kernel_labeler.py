import json
from itertools import pairwise

import numpy as np
import pytest
from oracles.zscore import closed_covariance, closed_excess
from sklearn.base import clone
from tolerances import assert_close

from gramline.kernels.packing import Features, PackedSequences, Vocabulary
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.errors import ConvergenceError, LabelError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.build import build_gram

NAMES = ("a", "b", "c")


def data(lengths, seed, n_features=6, n_labels=3):
    random = np.random.default_rng(seed)
    n_rows = sum(lengths)
    labels = random.integers(n_labels, size=n_rows)
    rows = (random.random((n_rows, n_features)) < 0.3).astype(float)
    rows[np.arange(n_rows), labels] = 1.0  # something to learn
    starts = np.concatenate([[0], np.cumsum(lengths)])
    paths = [[NAMES[p] for p in labels[a:b]] for a, b in pairwise(starts)]
    return rows, paths, lengths


def packed(rows, paths, lengths):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))])
    codes = [NAMES.index(label) for path in paths for label in path]
    vocabulary = Vocabulary(features=tuple(map(str, range(rows.shape[1]))), labels=NAMES)
    return PackedSequences(starts, np.zeros(len(rows)), Features(indptr, np.nonzero(rows)[1], None), codes, vocabulary)


TRAIN = data([4, 1, 6, 3, 2, 5], 0)
NEW = data([3, 0, 1, 5], 1)


def linear(block_rows=None):
    return DenseGram(TRAIN[0] @ TRAIN[0].T, TRAIN[2], label_names=NAMES, block_rows=block_rows)


def linear_cross():
    return DenseGram(TRAIN[0] @ NEW[0].T, TRAIN[2], NEW[2], label_names=NAMES)


class CountedGram(DenseGram):
    """Counts products and remembers their widths."""

    def matmul(self, W, *, transpose=False):
        self.widths = [*getattr(self, "widths", []), W.shape[1]]
        return super().matmul(W, transpose=transpose)


@pytest.mark.parametrize("loss", ["none", "hamming"])
@pytest.mark.parametrize("ridges", [(0.01, None), (1.0, 0.2), (0.3, 0.0)])
@pytest.mark.parametrize("preconditioner", ["wide", "nystrom", "none"])
def test_with_the_linear_kernel_it_is_the_primal_learner(loss, ridges, preconditioner):
    primal = ZScoreLabeler(*ridges, loss=loss).fit(packed(*TRAIN))
    kernel = KernelZScoreLabeler(*ridges, loss=loss, tolerance=1e-12, preconditioner=preconditioner)
    kernel.fit(linear(), TRAIN[1])
    assert_close(kernel.transition_, primal.transition_)
    assert_close(TRAIN[0].T @ kernel.dual_, primal.emission_.T)
    assert_close(kernel.decision_scores(linear_cross()), primal.decision_scores(packed(*NEW)))
    assert kernel.predict(linear_cross()) == primal.predict(packed(*NEW))
    assert_close(kernel.score_paths(linear_cross(), NEW[1]), primal.score_paths(packed(*NEW)))
    assert_close(kernel.z_scores(linear_cross(), NEW[1]), primal.z_scores(packed(*NEW)))
    assert_close(kernel.p_values(linear_cross(), NEW[1]), primal.p_values(packed(*NEW)))
    assert_close(kernel.z_, primal.z_)
    if loss == "hamming":
        assert_close(kernel.loss_multiplier_, primal.loss_multiplier_)


def gaussian(A, B):
    return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("loss", ["none", "hamming"])
@pytest.mark.parametrize("ridge", [1e5, 1e9, 1e16, 1e100, 1e200])
def test_a_ridge_far_above_the_kernel_has_the_z_of_the_primal_learner(loss, ridge):
    """Then G A is a difference without digits, and as the ridge grows Z tends to |b*|^2 / sqrt(b*^T C* b*)."""
    primal = ZScoreLabeler(ridge, loss=loss, transition_ridge=None).fit(packed(*TRAIN))
    gram = CountedGram(TRAIN[0] @ TRAIN[0].T, TRAIN[2])
    kernel = KernelZScoreLabeler([ridge, 2 * ridge], loss=loss, transition_ridge=None).fit(gram, TRAIN[1])
    np.testing.assert_allclose(kernel.z_, primal.z_, rtol=1e-7)
    if loss == "hamming":
        np.testing.assert_allclose(kernel.loss_multiplier_, primal.loss_multiplier_, rtol=1e-7)
    starts = np.concatenate([[0], np.cumsum(TRAIN[2])])
    statistics = ChainStatistics(np.array([NAMES.index(name) for path in TRAIN[1] for name in path]), starts, 3)
    direction = closed_excess(TRAIN[0], statistics)
    limit = direction @ direction / np.sqrt(direction @ closed_covariance(TRAIN[0], starts, 3) @ direction)
    np.testing.assert_allclose(kernel.z_, limit, rtol=1e3 / ridge + 1e-9)
    assert gram.widths.count(9) == 1  # of the labeler and of its path of two, together


@pytest.mark.parametrize("loss", ["none", "hamming"])
def test_labels_that_nothing_tells_from_others_have_a_z_of_0(loss):
    """b* = 0: equal positions, every label as often as any other."""
    for ridge in (1e-2, 1e9):
        model = KernelZScoreLabeler(ridge, loss=loss, transition_ridge=None).fit(
            DenseGram(np.ones((9, 9)), [1] * 9), [["a"], ["b"], ["c"]] * 3
        )
        assert model.z_ == 0
        assert model.loss_multiplier_ in (None, 0)


def test_a_list_of_ridges_equals_separate_solves_for_the_price_of_one():
    ridges = (0.5, 1e-3, 10.0, 0.02)
    together = CountedGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2])
    model = KernelZScoreLabeler(ridges, loss="hamming", tolerance=1e-12, transition_ridge=None).fit(together, TRAIN[1])
    cross = DenseGram(gaussian(TRAIN[0], NEW[0]), TRAIN[2], NEW[2])
    assert [single.ridge for single in model.path_] == list(ridges)
    assert_close(model.dual_, model.path_[0].dual_)
    for ridge, single in zip(ridges, model.path_, strict=True):
        alone = KernelZScoreLabeler(ridge, loss="hamming", tolerance=1e-12, transition_ridge=None)
        alone.fit(DenseGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2]), TRAIN[1])
        assert_close(single.dual_, alone.dual_)
        assert_close(single.transition_, alone.transition_)
        assert single.predict(cross) == alone.predict(cross)
        assert alone.path_ == []
    hardest = CountedGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2])
    KernelZScoreLabeler(1e-3, tolerance=1e-12, transition_ridge=None).fit(hardest, TRAIN[1])
    assert together.widths == hardest.widths


def test_single_precision_is_close_and_says_when_it_is_not_enough():
    gram = DenseGram(gaussian(TRAIN[0], TRAIN[0]).astype(np.float32), TRAIN[2])
    double = KernelZScoreLabeler(0.1, tolerance=1e-10, transition_ridge=None).fit(gram, TRAIN[1])
    single = KernelZScoreLabeler(0.1, tolerance=1e-5, precision="single", transition_ridge=None).fit(gram, TRAIN[1])
    assert single.status_ == "converged"
    np.testing.assert_allclose(single.dual_, double.dual_, atol=1e-4 * np.abs(double.dual_).max())
    assert (
        KernelZScoreLabeler(0.1, tolerance=1e-12, precision="single", transition_ridge=None).fit(gram, TRAIN[1]).status_
        == "stagnated"
    )


def test_folds_and_settings_share_their_passes():
    gram = CountedGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2], label_names=NAMES)
    folds = [[None if k % 2 == fold else path for k, path in enumerate(TRAIN[1])] for fold in (0, 1)]
    settings = [{"ridge": 0.1}, {"ridge": 0.4, "loss": "hamming"}]
    learners = [
        KernelZScoreLabeler(**item, unlabeled="drop", tolerance=1e-11, transition_ridge=None)
        for item in settings
        for _ in folds
    ]
    labels = [fold for _ in settings for fold in folds]
    predicted = KernelZScoreLabeler.fit_many(learners, gram, labels)
    alone = []
    for learner, fold in zip(learners, labels, strict=True):
        own = CountedGram(gram.matrix, TRAIN[2], label_names=NAMES)
        other = learner.fresh().fit(own, fold)
        assert_close(learner.dual_, other.dual_)
        alone.append((other.predict(DenseGram(gram.matrix, TRAIN[2], TRAIN[2], label_names=NAMES)), own.widths))
    assert predicted == [labels for labels, _ in alone]
    assert len(gram.widths) == max(len(widths) for _, widths in alone) + 1


def test_dropped_structures_take_no_part():
    holed = [path if k != 2 else [*path[:-1], None] for k, path in enumerate(TRAIN[1])]
    with pytest.raises(LabelError) as error:
        KernelZScoreLabeler(ridge=1e-2, transition_ridge=None).fit(linear(), holed)
    assert (error.value.structure, error.value.position) == (2, 5)
    model = KernelZScoreLabeler(unlabeled="drop", tolerance=1e-12, ridge=1e-2, transition_ridge=None).fit(
        linear(), holed
    )
    kept = np.r_[0:5, 11:21]
    lengths = [length for k, length in enumerate(TRAIN[2]) if k != 2]
    smaller = DenseGram(TRAIN[0][kept] @ TRAIN[0][kept].T, lengths, label_names=NAMES)
    expected = KernelZScoreLabeler(tolerance=1e-12, ridge=1e-2, transition_ridge=None).fit(
        smaller, [path for k, path in enumerate(TRAIN[1]) if k != 2]
    )
    assert_close(model.dual_[kept], expected.dual_)
    assert not model.dual_[5:11].any()
    assert model.support().sum() == 15


def test_not_converged_is_a_status_and_trusting_it_an_error():
    model = KernelZScoreLabeler(1e-6, max_iterations=1, preconditioner="none", transition_ridge=None)
    model.fit(DenseGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2]), TRAIN[1])
    assert model.status_ == "max_iterations"
    with pytest.raises(ConvergenceError, match="the kernel Z-score with ridge 1e-06") as error:
        model.predict(linear_cross())
    assert (error.value.status, error.value.iterations) == ("max_iterations", 1)
    assert error.value.residual == model.residual_.max()
    with pytest.raises(ConvergenceError) as error:
        KernelZScoreLabeler.fit_many([model], DenseGram(gaussian(TRAIN[0], TRAIN[0]), TRAIN[2]), [TRAIN[1]])
    assert error.value.status == "max_iterations"


def test_an_indefinite_gram_is_noticed():
    model = KernelZScoreLabeler(0.01, transition_ridge=None).fit(DenseGram(-np.eye(21), TRAIN[2]), TRAIN[1])
    assert model.status_ == "not_positive_definite"


def test_paths_to_score_must_be_given():
    model = KernelZScoreLabeler(ridge=1e-2, transition_ridge=None).fit(linear(), TRAIN[1])
    with pytest.raises(LabelError, match="a Gram matrix carries no labels; give the label paths to score"):
        model.score_paths(linear_cross())


def test_state_and_parameters():
    model = KernelZScoreLabeler((0.1, 0.2), transition_ridge=None).fit(linear(), TRAIN[1])
    attributes, arrays = model.to_state()
    again = KernelZScoreLabeler.from_state(json.loads(json.dumps(attributes)), arrays)
    assert again.predict(linear_cross()) == model.predict(linear_cross())
    assert again.path_ == []
    assert clone(model).get_params() == model.get_params()


def test_one_label_and_structures_of_one_position():
    one = KernelZScoreLabeler(ridge=1e-2, transition_ridge=None).fit(DenseGram(np.eye(3), [2, 1]), [["x", "x"], ["x"]])
    assert one.predict(DenseGram(np.eye(3), [2, 1], [3])) == [["x"] * 3]
    single = KernelZScoreLabeler(ridge=1e-2, transition_ridge=None).fit(
        DenseGram(np.eye(3), [1, 1, 1]), [["x"], ["y"], ["x"]]
    )
    assert not single.transition_.any()
    assert single.predict(DenseGram(np.eye(3), [1, 1, 1], [1, 1, 1])) == [["x"], ["y"], ["x"]]


def test_a_stored_gram_gives_the_same_model(tmp_path):
    corpus = Corpus.from_sequences(
        [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["cat", "ran"], ["the", "dog"], ["a", "cat"]],
        [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V"], ["D", "N"], ["D", "N"]],
    )
    new = Corpus.from_sequences([["the", "dog", "sat"], ["bird", "ran"]])
    kernel = SequenceLabeling(c=0.7)
    dense = KernelZScoreLabeler((0.1, 0.01), transition_ridge=None).fit(DenseGram.of(kernel, corpus), corpus.labels)
    stored_gram = build_gram(kernel, corpus, tmp_path / "train.zarr", block_rows=5)
    stored = KernelZScoreLabeler((0.1, 0.01), transition_ridge=None).fit(stored_gram, corpus.labels)
    cross = build_gram(kernel, corpus, tmp_path / "cross.zarr", other=new, block_rows=5)
    for first, second in zip(dense.path_, stored.path_, strict=True):
        np.testing.assert_allclose(first.dual_, second.dual_, atol=1e-6)
        assert second.predict(cross) == first.predict(DenseGram.of(kernel, corpus, new))
