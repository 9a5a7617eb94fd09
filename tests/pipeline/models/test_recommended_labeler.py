"""A `KernelLabeler` without a kernel or a learner takes the recommended ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from labeler_samples import WHOLE_Y, X, Y

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.positions import PositionKernel
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LearnerParameterError
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.models.labeler import KernelLabeler

RECOMMENDED = PositionKernel(Polynomial(2, normalized=True, unit=True))


def test_without_a_kernel_and_a_learner_the_recommended_pair_is_taken() -> None:
    fitted = KernelLabeler().fit(X, WHOLE_Y)
    assert fitted.kernel_ == RECOMMENDED
    assert isinstance(fitted.learner_, HiddenMarkovPerceptron)
    assert fitted.learner_.dual
    assert fitted.recipe_ == Recipe("lists", features="spelling", window=1)
    assert fitted.kernel is None, "parameters stay what they were"
    assert fitted.learner is None
    assert fitted.predict([["the", "cat", "ran"], ["the", "bat"]]) == [["D", "N", "V"], ["D", "N"]]
    assert fitted.score(X, WHOLE_Y) == 1.0


@pytest.mark.parametrize(
    "observe",
    [
        lambda word: {"word": word, "end": word[-1]},
        lambda word: [f"word={word}", f"end={word[-1]}"],
    ],
    ids=["dictionaries", "lists"],
)
def test_features_that_are_given_stay_as_they_are(observe: Callable[[str], Any]) -> None:
    observed = [[observe(word) for word in line] for line in X]
    fitted = KernelLabeler().fit(observed, WHOLE_Y)
    assert fitted.kernel_ == RECOMMENDED
    assert fitted.recipe_ == Recipe("lists")
    assert {"word=cat", "end=t"} <= set(fitted.model_.support.vocabulary.features)
    assert fitted.predict(observed) == WHOLE_Y


def test_half_a_pair_is_completed() -> None:
    with_learner = KernelLabeler(learner=LabelingPerceptron(rounds=5)).fit(X, Y)
    assert with_learner.kernel_ == RECOMMENDED
    assert with_learner.recipe_ is not None
    assert with_learner.recipe_.features == "spelling"
    with_kernel = KernelLabeler(SequenceLabeling(c=0.7)).fit(X, WHOLE_Y)
    assert isinstance(with_kernel.learner_, LabelingPerceptron), "a kernel that sees neighbours needs no chain"
    assert with_kernel.kernel_ == SequenceLabeling(c=0.7)
    assert with_kernel.recipe_ == Recipe("lists"), "a kernel that was chosen sees the words themselves"
    on_features = KernelLabeler(learner=HiddenMarkovPerceptron(dual=False)).fit(X, WHOLE_Y)
    assert on_features.kernel_ is None
    assert on_features.recipe_ == Recipe("lists")


def test_words_are_described_as_asked() -> None:
    fitted = KernelLabeler(learner=HiddenMarkovPerceptron(dual=False), features="spelling").fit(X, WHOLE_Y)
    assert fitted.recipe_ == Recipe("lists", features="spelling", window=1)
    plain = KernelLabeler(features="token").fit(X, WHOLE_Y)
    assert set(plain.model_.support.vocabulary.features) == {word for line in X for word in line}
    with pytest.raises(CorpusError) as caught:
        KernelLabeler(features="spelling").fit([[{"a": 1.0}, {"b": 1.0}]], [["A", "B"]])
    assert str(caught.value) == "features='spelling' describes words, but these tokens have features already"
    with pytest.raises(LearnerParameterError) as wrong:
        KernelLabeler(features="letters").fit(X, Y)  # type: ignore[arg-type]
    assert wrong.value.key == "features"


def test_trees_get_their_own_pair() -> None:
    children: list[Any] = [[[], [0, 2], []], [[], [0, 2], []]]
    words = [["Ann", "saw", "Bob"], ["Eve", "met", "Ann"]]
    corpus = Corpus.from_trees(words, children, [["S", "V", "O"], ["S", "V", "O"]])
    fitted = KernelLabeler().fit(corpus)
    assert type(fitted.kernel_).__name__ == "TreeLabeling"
    assert isinstance(fitted.learner_, LabelingPerceptron)
    assert fitted.recipe_ is not None
    assert fitted.recipe_.kind == "trees"
    assert fitted.predict(corpus) == corpus.labels
    with pytest.raises(CorpusError) as caught:
        fitted.predict(words)
    assert str(caught.value) == "the model labels trees; give a Corpus of them, not lists"
