"""Paths that IOB2 allows: decoding against all paths enumerated, and the same for every learner that has the option."""

from itertools import pairwise, product

import numpy as np
import pytest

from gramline.kernels import PositionKernel
from gramline.learners import (
    DenseGram,
    GaussianProcessLabeler,
    HiddenMarkovPerceptron,
    KernelZScoreLabeler,
    LabelingPerceptron,
    ZScoreLabeler,
)
from gramline.learners.chains.constraints import AllowedSteps, allowed_steps, follows_iob2
from gramline.learners.chains.viterbi import viterbi
from gramline.pipeline import Corpus

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")


def is_valid(path):
    return all(
        not label.startswith("I-") or (previous[:2] in ("B-", "I-") and previous[2:] == label[2:])
        for previous, label in zip(["", *path], path, strict=False)
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_best_valid_path(seed):
    rng = np.random.default_rng(seed)
    scores, transition = rng.normal(size=(6, 5)), rng.normal(size=(5, 5))
    starts = np.array([0, 4, 4, 6])
    path, totals = viterbi(scores, transition, starts, allowed=AllowedSteps.iob2(NAMES))
    for number, (first, last) in enumerate(pairwise(starts)):
        best = max(
            (
                sum(scores[first + k, y] for k, y in enumerate(codes))
                + sum(transition[a, b] for a, b in pairwise(codes))
                for codes in product(range(5), repeat=int(last - first))
                if is_valid([NAMES[y] for y in codes])
            ),
            default=0.0,
        )
        assert totals[number] == pytest.approx(best)
        assert is_valid([NAMES[y] for y in path[first:last]])


def test_without_constraints_nothing_is_forbidden():
    assert allowed_steps("none", NAMES) is None


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        ([["B-x", "I-x", "O"]], True),
        ([["O", None, "B-x"]], True),
        ([["I-x", "O"]], False),
        ([["B-y", "I-x"]], False),
        ([["B-x", None, "I-x"]], False),
        ([["O", "O"], []], False),
        ([["N", "V"]], False),
    ],
)
def test_which_labels_follow_iob2(labels, answer):
    assert follows_iob2(labels) == answer


X = [["the", "old", "bank"], ["bank", "of", "spain"], ["spain", "old"]] * 3
Y = [["O", "O", "B-x"], ["B-x", "I-x", "I-x"], ["B-y", "I-y"]] * 3
NEW = [["spain", "of", "spain", "old"], ["of", "bank"], ["of", "of", "old", "spain"]]


@pytest.mark.parametrize(
    "learner",
    [
        LabelingPerceptron(),
        HiddenMarkovPerceptron(dual=True),
        HiddenMarkovPerceptron(),
        KernelZScoreLabeler(ridge=0.1, transition_ridge=None),
        ZScoreLabeler(ridge=0.1, transition_ridge=None),
        GaussianProcessLabeler(bound="jensen", scale=1.0),
        GaussianProcessLabeler(offsets=(-1,), decoding="viterbi", bound="jensen", scale=1.0),
    ],
    ids=repr,
)
def test_every_learner_predicts_valid_paths(learner):
    train = Corpus.from_sequences(X, Y)
    new = Corpus.from_sequences(NEW)
    if learner.reads_corpus:
        learner.fit(train)
        evidence = new
    else:
        kernel = PositionKernel()
        learner.fit(DenseGram.of(kernel, train), train.labels)
        evidence = DenseGram.of(kernel, train, new)
    free = learner.predict(evidence)
    learner.set_params(constraints="iob2")
    paths = learner.predict(evidence)
    assert all(map(is_valid, paths))
    assert [path for path, other in zip(free, paths, strict=True) if is_valid(path) and path != other] == []
