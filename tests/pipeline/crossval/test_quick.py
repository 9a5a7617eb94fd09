"""The short cross-validation that `gramline fit` makes by itself."""

import numpy as np
import pytest

from gramline.kernels import PositionKernel
from gramline.learners import DenseGram, HiddenMarkovPerceptron, LabelingPerceptron
from gramline.learners.metrics import evaluate
from gramline.pipeline import Corpus, cross_validate
from gramline.pipeline.crossval import quick
from gramline.pipeline.crossval.quick import quick_folds, quick_score

WORDS = [["the", "dog"], ["a", "cat", "ran"], ["the", "cat"], ["dog", "ran"], ["a", "dog", "sat"], ["cat", "sat"]]
TAGS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "ran": "V", "sat": "V"}
CORPUS = Corpus.from_sequences(WORDS, [[TAGS[word] for word in sentence] for sentence in WORDS])


def test_every_structure_is_held_out_once_by_models_that_did_not_see_it():
    gram = DenseGram.of(PositionKernel(), CORPUS)
    score = quick_score(LabelingPerceptron(), gram, CORPUS.labels)
    folds = quick_folds(CORPUS.labels)
    assert sorted(k for part in folds.held_out for k in part.tolist()) == list(range(len(WORDS)))
    separate = cross_validate(LabelingPerceptron(), gram, CORPUS.labels, folds)
    n_wrong = sum(result.evaluation.n_wrong for result in separate.results)
    assert (score.n_folds, score.learned.n_wrong) == (3, n_wrong)


def test_the_majority_label_stands_beside_it():
    score = quick_score(HiddenMarkovPerceptron(), CORPUS, CORPUS.labels)
    assert score.majority_label == "N"
    assert score.majority.n_wrong == evaluate(CORPUS.labels, [["N"] * len(s) for s in WORDS]).n_wrong
    assert score.is_better == (score.learned.n_wrong < score.majority.n_wrong)
    assert score.to_dict()["majority"]["wrong"] == score.majority.n_wrong


def test_a_labeler_that_learned_nothing_is_not_better():
    gram = DenseGram(np.zeros((CORPUS.n_positions, CORPUS.n_positions)), CORPUS.lengths)
    assert not quick_score(LabelingPerceptron(), gram, CORPUS.labels).is_better


def test_of_many_positions_a_fifth_is_held_out(monkeypatch):
    monkeypatch.setattr(quick, "LARGE", 10)
    folds = quick_folds([["A"] * 3] * 20)
    assert [len(part) for part in folds.held_out] == [4]


@pytest.mark.parametrize("n_structures", [1, 4])
def test_too_few_structures_have_no_score(n_structures):
    part = CORPUS.select(range(n_structures))
    assert quick_score(HiddenMarkovPerceptron(), part, part.labels) is None
