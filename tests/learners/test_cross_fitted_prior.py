from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels import SequenceLabeling, SubsetTree, TabulatedPrior
from gramline.learners.cross_fitted_prior import CrossFittedPrior
from gramline.learners.errors import LabelError, LearnerError, LearnerParameterError, NotFittedError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.pipeline.corpus.corpus import Corpus

WORDS = [
    ["the", "cat", "sat"],
    ["a", "dog", "ran", "off"],
    ["cat", "ran"],
    ["the", "dog"],
    ["a", "cat", "sat", "off"],
    ["dog", "sat"],
    ["the", "cat"],
]
LABELS: list[list[str | None] | None] = [
    ["D", "N", "V"],
    ["D", "N", "V", "P"],
    ["N", "V"],
    ["D", "N"],
    ["D", None, "V", "P"],
    None,
    ["D", "N"],
]
TRAIN = Corpus.from_sequences(WORDS, LABELS)
NEW = Corpus.from_sequences([["the", "dog", "ran"], ["a", "bird"]])
KERNEL = SequenceLabeling(c=0.7)
PRIORS = [
    CrossFittedPrior(KernelCRF(penalty=0.3, dual=False), folds=3),
    CrossFittedPrior(KernelCRF(penalty=0.3), folds=3, kernel=KERNEL),
    CrossFittedPrior(GaussianProcessLabeler(), folds=2, kernel=KERNEL),
]

every_prior = pytest.mark.parametrize("prior", PRIORS, ids=repr)


def evidence(prior: CrossFittedPrior, train: Corpus, new: Corpus) -> tuple[Any, Any]:
    """What the learner trains on, and what it predicts from."""
    if prior.kernel is None:
        return (train,), new.packed(like=train.packed())
    return (DenseGram.of(prior.kernel, train), train.labels), DenseGram.of(prior.kernel, train, new)


@every_prior
def test_new_structures_get_what_a_learner_of_everything_says(prior: CrossFittedPrior) -> None:
    given, cross = evidence(prior, TRAIN, NEW)
    learner: Any = prior.learner.fresh().fit(*given)
    fitted = prior.fresh().fit(TRAIN)
    new = fitted.transform(NEW)
    assert_close(new.packed(like=TRAIN.packed()).table, learner.predict_proba(cross))
    assert new.label_names == TRAIN.label_names
    unlabeled = TRAIN.select([5])  # which training saw, but not its labels
    given, cross = evidence(prior, TRAIN, unlabeled)
    assert_close(fitted.transform(unlabeled).packed(like=TRAIN.packed()).table, learner.predict_proba(cross))


@every_prior
def test_labeled_structures_get_what_a_learner_of_the_other_folds_says(prior: CrossFittedPrior) -> None:
    fitted = prior.fresh().fit(TRAIN)
    assert fitted.folds_.tolist() == [0, 1, 2 % prior.folds, 3 % prior.folds, 4 % prior.folds, -1, 5 % prior.folds]
    table = fitted.transform(TRAIN).packed().table
    assert table is not None
    assert_close(table, fitted.marginals_)
    for fold in range(prior.folds):
        held = np.flatnonzero(fitted.folds_ == fold)
        rest = TRAIN.with_labels([None if k in held else own for k, own in enumerate(TRAIN.labels)])
        given, cross = evidence(prior, rest, TRAIN.select(held))
        expected = prior.learner.fresh().fit(*given).predict_proba(cross)  # type: ignore[attr-defined]
        np.testing.assert_allclose(_rows(TRAIN, table, held), expected, atol=1e-5)


def _rows(corpus: Corpus, table: Any, structures: Any) -> Any:
    return np.concatenate([corpus.by_structure(table)[k] for k in structures])


@every_prior
def test_no_structure_sees_its_own_labels(prior: CrossFittedPrior) -> None:
    before = TRAIN.by_structure(prior.fresh().fit(TRAIN).marginals_)
    for structure in (0, 1, 4):
        changed = [list(own) for own in TRAIN.labels]
        changed[structure] = ["P"] * len(changed[structure])
        after = TRAIN.by_structure(prior.fresh().fit(TRAIN.with_labels(changed)).marginals_)
        assert_close(after[structure], before[structure])
        assert any(np.abs(after[k] - before[k]).max() > 1e-3 for k in range(len(TRAIN)) if k != structure)


def test_equal_structures_do_not_see_each_other() -> None:
    twice = Corpus.from_sequences([*WORDS, WORDS[0], WORDS[5]], [*LABELS, ["D", "N", "V"], ["N", "V"]])
    changed = twice.with_labels([*LABELS, ["V", "V", "V"], ["N", "V"]])
    one, other = (PRIORS[0].fresh().fit(corpus) for corpus in (twice, changed))
    assert one.folds_[0] == one.folds_[7]
    assert one.folds_[5] == one.folds_[8] >= 0, "it has no label, but an equal one has"
    first = TRAIN.by_structure(one.marginals_[: TRAIN.n_positions])[0]
    assert_close(TRAIN.by_structure(other.marginals_[: TRAIN.n_positions])[0], first)


@every_prior
def test_labels_of_what_is_transformed_play_no_part(prior: CrossFittedPrior) -> None:
    fitted = prior.fresh().fit(TRAIN)
    expected = fitted.transform(TRAIN).packed().table
    assert_close(fitted.transform(TRAIN.without_labels()).packed().table, expected)
    some = TRAIN.select([3, 1])
    assert_close(fitted.transform(some).packed().table, _rows(TRAIN, expected, (3, 1)))
    packed = TRAIN.packed()
    assert_close(fitted.transform(replace(packed, labels=np.zeros_like(packed.labels))).table, expected)


def test_labels_in_another_order_keep_their_columns() -> None:
    fitted = PRIORS[0].fresh().fit(TRAIN)
    given = Corpus.from_sequences([["the", "dog"]], labels=["V", "X"])
    new = fitted.transform(given)
    assert new.label_names[:2] == ["V", "X"]
    assert set(new.label_names) == {"D", "N", "P", "V", "X"}
    plain = fitted.transform(Corpus.from_sequences([["the", "dog"]]))
    assert_close(new.packed(like=TRAIN.packed()).table, plain.packed(like=TRAIN.packed()).table)


def test_is_what_a_tabulated_prior_reads() -> None:
    prior = PRIORS[0].fresh()
    train = prior.fit_transform(TRAIN)
    kernel = SequenceLabeling(c=0.7, prior=TabulatedPrior())
    learner = LabelingPerceptron().fit(DenseGram.of(kernel, train), train.labels)
    predicted = learner.predict(DenseGram.of(kernel, train, prior.transform(NEW)))
    assert predicted[0] == ["D", "N", "V"]


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (
            CrossFittedPrior(LabelingPerceptron(), kernel=KERNEL),
            "LabelingPerceptron cannot tell probabilities, which a prior is made of; KernelCRF and "
            "GaussianProcessLabeler can",
        ),
        (
            CrossFittedPrior(KernelCRF()),
            "KernelCRF learns from a Gram matrix, but there is no kernel to make it with; give CrossFittedPrior a "
            "kernel, or take KernelCRF(dual=False), which reads features",
        ),
        (CrossFittedPrior(KernelCRF(dual=False), kernel=KERNEL), "KernelCRF reads features and has no kernel; leave"),
        (CrossFittedPrior(KernelCRF(), kernel=SubsetTree()), "the kernel 'subset-tree' compares whole structures, but"),
        (CrossFittedPrior(KernelCRF(dual=False), folds=1), "folds must be a whole number of at least 2, got 1"),
        (CrossFittedPrior("kernel-crf"), "learner must be a learner such as labeling-perceptron, got 'kernel-crf'"),  # type: ignore[arg-type]
        (CrossFittedPrior(KernelCRF(dual=False, penalty=0)), "penalty must be a number above 0, or auto, got 0"),
    ],
)
def test_refuses_what_it_cannot_be_made_with(prior: CrossFittedPrior, sentence: str) -> None:
    with pytest.raises(LearnerParameterError) as caught:
        prior.fit(TRAIN)
    assert sentence in str(caught.value)


def test_refuses_corpora_it_cannot_learn_from_or_transform() -> None:
    prior = PRIORS[0].fresh()
    with pytest.raises(NotFittedError):
        prior.transform(NEW)
    with pytest.raises(LearnerError, match="there are 2 different structures with labels, too few for 3 folds; give"):
        prior.fit(TRAIN.select([0, 6, 6, 5]))
    with pytest.raises(LabelError, match="no position has a label; a prior is learned from labeled structures"):
        prior.fit(TRAIN.without_labels())
    prior.fit(TRAIN)
    with pytest.raises(LearnerError, match="the packed corpus has other symbols than the training corpus"):
        prior.transform(NEW.packed())
    with pytest.raises(ValueError, match="expected a corpus, got list"):
        prior.transform(WORDS)
