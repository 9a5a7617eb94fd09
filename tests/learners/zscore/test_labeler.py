"""The Z-score labeler as a learner: predictions, p-values, missing labels, bad input, state."""

from itertools import pairwise

import numpy as np
import pytest
from oracles import zscore as oracle
from oracles.viterbi import best_path
from sklearn.base import clone
from tolerances import assert_close
from zscore_samples import example, flat, packed_from

from gramline.kernels.packing import MISSING, PackedSequences, PackedTrees, Vocabulary
from gramline.learners.errors import ConvergenceError, LabelError, LearnerError, LearnerParameterError, NotFittedError
from gramline.learners.zscore import emissions
from gramline.learners.zscore.labeler import ZScoreLabeler


def test_predicts_the_best_path_and_scores_labelings():
    packed, rows = example([4, 1, 0, 3], 3, 3)
    model = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)
    emitted = rows @ model.emission_.T
    assert_close(model.decision_scores(packed), emitted)
    names = packed.vocabulary.labels
    expected = [[names[p] for p in best_path(emitted[a:b], model.transition_)] for a, b in pairwise(packed.starts)]
    assert model.predict(packed) == expected
    best = model.score_paths(packed, expected)
    assert (best >= model.score_paths(packed) - 1e-12).all()
    z = model.z_scores(packed)
    for s, (a, b) in enumerate(pairwise(packed.starts)):
        mean, variance = oracle.score_moments(emitted[a:b], model.transition_)
        if variance > 0:
            np.testing.assert_allclose(z[s], (model.score_paths(packed)[s] - mean) / np.sqrt(variance), rtol=1e-9)
        else:
            assert z[s] == 0
    assert (model.p_values(packed, expected) <= 0.5).all()
    assert model.p_values(packed)[2] == 0.5  # nothing to tell of an empty sequence


def test_p_value_is_close_to_the_part_of_better_paths():
    packed, rows = example([9], 4, 2, seed=3)
    model = ZScoreLabeler(ridge=0.1, transition_ridge=None).fit(packed)
    emitted = rows @ model.emission_.T
    own = model.score_paths(packed)[0]
    values = [
        sum(emitted[k, p] for k, p in enumerate(path)) + sum(model.transition_[a, b] for a, b in pairwise(path))
        for path in np.ndindex(*[2] * 9)
    ]
    assert abs(model.p_values(packed)[0] - np.mean(np.array(values) >= own - 1e-12)) < 0.05


def test_unknown_features_are_ignored_and_columns_are_matched_by_name():
    packed, rows = example([4, 3], 3, 2)
    model = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)
    order = [2, 0, 1]
    wider = np.column_stack([rows[:, order], np.ones(7)])
    other = packed_from(wider, [4, 3], packed.labels, 2)
    renamed = Vocabulary(features=("f2", "f0", "f1", "new"), labels=packed.vocabulary.labels)
    other = PackedSequences(other.starts, other.symbols, other.features, other.labels, renamed)
    assert_close(model.decision_scores(other), model.decision_scores(packed))
    longer = Vocabulary(features=("f0", "f1", "f2", "new"), labels=packed.vocabulary.labels)
    extended = packed_from(np.column_stack([rows, np.ones(7)]), [4, 3], packed.labels, 2)
    extended = PackedSequences(extended.starts, extended.symbols, extended.features, extended.labels, longer)
    assert_close(model.decision_scores(extended), model.decision_scores(packed))


def test_a_packed_corpus_without_names_must_not_have_more_features():
    packed, rows = example([4, 3], 3, 2)
    model = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)
    wider = packed_from(np.column_stack([rows, np.ones(7)]), [4, 3], packed.labels, 2)
    nameless = PackedSequences(wider.starts, wider.symbols, wider.features, wider.labels)
    with pytest.raises(LearnerError, match="at least 4 features, but the model was trained with 3"):
        model.predict(nameless)
    narrow = PackedSequences(packed.starts, packed.symbols, packed.features, packed.labels)
    assert model.predict(narrow) == model.predict(packed)


def with_missing(packed, positions):
    labels = packed.labels.copy()
    labels[positions] = MISSING
    return PackedSequences(packed.starts, packed.symbols, packed.features, labels, packed.vocabulary)


def test_missing_labels_are_an_error_or_left_out():
    packed, rows = example([4, 3, 2], 3, 2)
    holed = with_missing(packed, [5])
    with pytest.raises(LabelError) as error:
        ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(holed)
    assert str(error.value) == (
        "structure 1, position 1: there is no label, but chains learn from whole label paths; remove such structures, "
        "or set unlabeled to drop, which leaves them out of the training"
    )
    kept = np.r_[0:4, 7:9]
    expected = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(
        packed_from(rows[kept], [4, 2], packed.labels[kept], 2)
    )
    assert_close(flat(ZScoreLabeler(unlabeled="drop", ridge=1e-3, transition_ridge=None).fit(holed)), flat(expected))
    with pytest.raises(LabelError, match="nothing is left"):
        ZScoreLabeler(unlabeled="drop", ridge=1e-3, transition_ridge=None).fit(with_missing(packed, [0, 5, 8]))


def test_bad_input_is_refused(monkeypatch):
    packed, _ = example([3], 2, 2)
    with pytest.raises(NotFittedError):
        ZScoreLabeler(ridge=1e-3, transition_ridge=None).predict(packed)
    with pytest.raises(LearnerError, match="no positions"):
        ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed.structures(0, 0))
    trees = PackedTrees(packed.starts, packed.symbols, packed.features, packed.labels, packed.vocabulary)
    with pytest.raises(LearnerError, match="labels sequences, but the corpus holds trees"):
        ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(trees)
    monkeypatch.setattr(emissions, "HEAD", 1)  # else it is a factorisation
    with pytest.raises(ConvergenceError) as error:
        ZScoreLabeler(solver="cg", max_iterations=1, ridge=1e-3, transition_ridge=None).fit(example([9, 8], 6, 3)[0])
    assert (error.value.status, error.value.iterations) == ("max_iterations", 1)
    assert error.value.problem.startswith("the Z-score's emission system did not converge")
    model = ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed)
    with pytest.raises(LabelError) as unknown:
        model.score_paths(packed, [["L0", "L7", "L1"]])
    assert str(unknown.value) == "structure 0, position 1: the model does not know 'L7'; it knows L0, L1"
    with pytest.raises(LabelError) as short:
        model.score_paths(packed, [["L0"]])
    assert (short.value.structure, short.value.problem) == (0, "1 labels for 3 positions")
    large = packed_from(np.eye(3000), [3000], np.arange(3000) % 2, 2)
    with pytest.raises(LearnerParameterError) as dynamic:
        ZScoreLabeler(moments="dynamic", ridge=1e-3, transition_ridge=None).fit(large)
    assert dynamic.value.key == "moments"
    assert dynamic.value.problem == "dynamic moments would form a covariance of 6004 x 6004"
    with pytest.raises(LearnerParameterError) as direct:
        ZScoreLabeler(moments="sampled", solver="direct", ridge=1e-3, transition_ridge=None).fit(large)
    assert (direct.value.key, direct.value.advice) == ("solver", "set a ridge above 0 and solver to cg")
    monkeypatch.setattr(emissions, "DENSE_LIMIT", 1)
    with pytest.raises(LearnerParameterError) as dense:
        ZScoreLabeler(solver="direct", ridge=1e-3, transition_ridge=None).fit(example([9, 8], 3, 2)[0])
    assert (dense.value.key, dense.value.problem) == ("solver", "a direct solve would need a dense 3 x 3 matrix")


def test_state_and_parameters():
    packed, _ = example([4, 3], 3, 2)
    model = ZScoreLabeler(ridge=0.2, loss="hamming", transition_ridge=None).fit(packed)
    again = ZScoreLabeler.from_state(*model.to_state())
    assert again.predict(packed) == model.predict(packed)
    assert again.z_ == model.z_
    assert clone(model).get_params() == model.get_params()


def test_one_label_and_no_features():
    packed, _ = example([3, 2], 2, 1)
    assert ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(packed).predict(packed) == [["L0"] * 3, ["L0"] * 2]
    bare = packed_from(np.zeros((5, 0)), [3, 2], np.array([0, 1, 0, 0, 1]), 2)
    assert ZScoreLabeler(ridge=1e-3, transition_ridge=None).fit(bare).predict(bare) == [
        ["L0", "L1", "L0"],
        ["L0", "L1"],
    ]
