"""What every chain learner of two forms does the same: its doors, and what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.kernels import SequenceLabeling
from gramline.learners import DenseGram, HiddenMarkovPerceptron, KernelCRF, StructuredSVM
from gramline.learners.chains.two_forms import TwoFormLabeler
from gramline.learners.errors import LearnerError
from gramline.pipeline.corpus.corpus import Corpus

CORPUS = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
GRAM = DenseGram.of(SequenceLabeling(c=0.5), CORPUS)
KINDS: dict[type[Any], str] = {
    HiddenMarkovPerceptron: "hidden Markov perceptron",
    StructuredSVM: "structured support vector machine",
    KernelCRF: "conditional random field",
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_learns_from_a_gram_or_from_a_corpus(kind: type[Any]) -> None:
    dual, primal = kind(dual=True), kind(dual=False)
    assert issubclass(kind, TwoFormLabeler)
    assert (dual.reads_corpus, dual.resumes) == (False, True)
    assert (primal.reads_corpus, primal.resumes) == (True, False)
    dual.fit(GRAM, CORPUS.labels)
    primal.fit(CORPUS)
    assert dual.predict(GRAM) == primal.predict(CORPUS) == CORPUS.labels
    assert "emission_" not in dual.fitted()
    assert "dual_" not in primal.fitted()
    # The form is a parameter: what the other one left is gone.
    assert "dual_" not in dual.set_params(dual=False).fit(CORPUS).fitted()


@every_kind
def test_says_what_it_reads(kind: type[Any]) -> None:
    name = KINDS[kind]
    for call in (
        lambda: kind(dual=True).fit(CORPUS, CORPUS.labels),
        lambda: kind(dual=True).fit(GRAM, CORPUS.labels).predict(CORPUS),
    ):
        with pytest.raises(LearnerError) as caught:
            call()
        assert str(caught.value) == (
            f"the dual {name} reads a Gram matrix, but was given a corpus; set dual to false for a corpus"
        )
    for call in (lambda: kind(dual=False).fit(GRAM), lambda: kind(dual=False).fit(CORPUS).predict(GRAM)):
        with pytest.raises(LearnerError) as caught:
            call()
        assert str(caught.value) == (
            f"the primal {name} reads a corpus, but was given a Gram matrix; set dual to true for a Gram matrix"
        )
    with pytest.raises(LearnerError, match="the dual form learns from a Gram and labels; call fit"):
        kind(dual=True).fit(GRAM)
    with pytest.raises(LearnerError, match="a corpus carries its labels; call fit"):
        kind(dual=False).fit(CORPUS, CORPUS.labels)
