"""Every fold of a cross-validation equals a separate fit, also where folds hide different labels.

A Gram matrix without label names takes the names of each fold from the labels that the fold does not hide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.crossval.training import hide
from gramline.pipeline.crossval.validate import CrossValidation, cross_validate

Labels = list[list[str | None]]
LEARNERS: list[Any] = [LabelingPerceptron(rounds=4), KernelZScoreLabeler(unlabeled="drop"), KernelZScoreLabeler()]

every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=repr)


def clusters() -> tuple[DenseGram, Labels]:
    """Three clusters A, B and C of four structures with one position each."""
    centres = np.repeat(np.eye(3), 4, axis=0)
    points = centres + 0.05 * np.random.default_rng(0).normal(size=centres.shape)
    return DenseGram(points @ points.T, [1] * 12), [[label] for label in "AAAABBBBCCCC"]


def require_separate_fits(result: CrossValidation, learner: Any, gram: DenseGram, labels: Labels) -> None:
    """Predictions of every setting and fold are those of a learner that is fitted on that fold alone."""
    for setting, of_setting in zip(result.settings, result.predictions, strict=True):
        for fold, predicted in enumerate(of_setting):
            masked = hide(labels, result.folds.hidden(fold))
            alone = learner.fresh().set_params(**setting)
            if "unlabeled" in alone.get_params():
                alone.set_params(unlabeled="drop")
            everything = alone.fit(gram, masked).predict(gram)
            assert predicted == [everything[k] for k in result.folds.held_out[fold]]
            seen = {label for structure in masked for label in structure}
            assert {label for structure in predicted for label in structure} <= seen


@every_learner
@pytest.mark.parametrize(
    "folds",
    [
        [[4, 5, 6, 7, 0, 8], [8, 9, 10, 11, 1, 4]],  # the first hides B, the second C: the same codes, other names
        [[8, 9, 10, 11], [0, 4, 8]],  # two labels, then three
        [[0, 4, 8], [8, 9, 10, 11]],
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
        [[4, 5, 6, 7, 8, 9, 10, 11], [0, 1, 2, 3, 8, 9, 10, 11]],  # one label each
        3,
    ],
    ids=str,
)
def test_folds_that_hide_different_labels_do_not_share_names(learner: Any, folds: Any) -> None:
    gram, labels = clusters()
    require_separate_fits(cross_validate(learner, gram, labels, folds), learner, gram, labels)


def test_a_fold_never_predicts_a_label_it_did_not_see() -> None:
    gram, labels = clusters()
    result = cross_validate(LabelingPerceptron(), gram, labels, [[4, 5, 6, 7, 0, 8], [8, 9, 10, 11, 1, 4]])
    first, second = result.predictions[0]
    assert [first[0], first[5]] == [["A"], ["C"]]
    assert [second[0], second[1]] == [["A"], ["B"]]


@pytest.mark.parametrize("gap_labels", [("A", "AA"), ("D", "E"), ("D", "B"), ("B", "D"), ("AA", "D")], ids=str)
def test_labels_of_structures_that_are_dropped_do_not_rename_those_of_another_fold(gap_labels: tuple[str, str]) -> None:
    """Two folds train on the same positions with the same codes, but a dropped structure gives them other names."""
    points = np.random.default_rng(3).normal(size=(10, 4))
    gram = DenseGram(points @ points.T, [2] * 5)
    labels: Labels = [["B", "C"], ["C", "B"], ["C", "C"], *([label, None] for label in gap_labels)]
    masked = [hide(labels, np.array(hidden)) for hidden in ([0, 3], [0, 4])]
    pair = [KernelZScoreLabeler(unlabeled="drop") for _ in masked]
    KernelZScoreLabeler.fit_many(pair, gram, masked)
    for beside, own in zip(pair, masked, strict=True):
        alone = KernelZScoreLabeler(unlabeled="drop").fit(gram, own)
        assert beside.label_names_ == alone.label_names_
        np.testing.assert_allclose(beside.dual_, alone.dual_, atol=1e-9)


@every_learner
def test_problems_with_equal_codes_and_other_names_are_kept_apart(learner: Any) -> None:
    gram, labels = clusters()
    renamed: Labels = [[{"A": "X", "B": "Y", "C": "Z"}[str(label)]] for (label,) in labels]
    pair = [learner.fresh(), learner.fresh()]
    first, second = type(learner).fit_many(pair, gram, [labels, renamed])
    assert (first, second) == (labels, renamed)
    assert [own.label_names_ for own in pair] == [("A", "B", "C"), ("X", "Y", "Z")]


@st.composite
def problems(draw: st.DrawFn) -> tuple[DenseGram, Labels, list[list[int]]]:
    """Structures in general position, labels of an alphabet that need not all occur, and folds that leave some."""
    n = draw(st.integers(3, 8))
    lengths = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    points: NDArray[np.float64] = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(sum(lengths), 4))
    alphabet = st.sampled_from("ABCD")
    labels = [draw(st.lists(alphabet, min_size=length, max_size=length)) for length in lengths]
    held = st.lists(st.integers(0, n - 1), min_size=1, max_size=n - 1, unique=True).map(sorted)
    folds = draw(st.lists(held, min_size=1, max_size=4, unique_by=tuple))
    block_rows = draw(st.sampled_from([None, max(lengths)]))
    return DenseGram(points @ points.T, lengths, block_rows=block_rows), labels, folds


@every_learner
@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_every_fold_equals_a_separate_fit(learner: Any, problem: tuple[DenseGram, Labels, list[list[int]]]) -> None:
    gram, labels, folds = problem
    varied = [{"rounds": 1}, {"average": True}] if isinstance(learner, LabelingPerceptron) else [{"ridge": 0.1}, {}]
    require_separate_fits(cross_validate(learner, gram, labels, folds, varied), learner, gram, labels)
