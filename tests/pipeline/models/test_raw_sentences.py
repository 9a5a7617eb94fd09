"""The short way of a few raw sentences gives the arrays and the labels of the long one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelWarning
from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.features import Gaussian, Linear, Polynomial
from gramline.kernels.packing import Packed
from gramline.kernels.positions import PositionKernel
from gramline.kernels.priors import EmpiricalPrior
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.estimator import Learner
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.models.labeler import KernelLabeler
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.raw_sentences import Needs, RawSentences

WORDS = ["Ann", "Bob", "saw", "ran", "the", "U-2", "3rd", "été", "NATO", "a"]
TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nU2:%x[2,1]\nU3:%x[0,0]\nB"
words = st.sampled_from([*WORDS, "new", "Zoë", "x-Y", " ", "\x1f0"]) | st.text(min_size=1, max_size=4)
names = st.sampled_from(["f", "g", "h", "f=a"]) | st.text(max_size=3)
numbers = st.sampled_from([1.0, 0.0, -2.5, 1, True]) | st.floats(-1e6, 1e6)
tokens = (
    words | st.lists(names, max_size=4) | st.dictionaries(names.filter(lambda n: "=" not in n), numbers, max_size=3)
)


def sentences(token: Any) -> Any:
    return st.lists(st.lists(token, min_size=1, max_size=5), min_size=1, max_size=3)


RECIPES = {
    "given": (Recipe("lists"), tokens),
    "columns": (Recipe("conll", columns=2), words),
    "spelling": (Recipe("lists", features="spelling", window=1), words),
    "wide": (Recipe("conll", features="words", window=3, columns=2), st.tuples(words, words)),
    "template": (Recipe("conll", features="template", template=TEMPLATE, columns=2), st.tuples(words, words)),
    "frequent": (
        Recipe("conll", features="template", template=TEMPLATE, minimum_count=2, columns=2),
        st.tuples(words, words),
    ),
}


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_arrays_are_those_of_a_corpus(name: str, data: st.DataObject) -> None:
    recipe, token = RECIPES[name]
    X, new = data.draw(sentences(token)), data.draw(sentences(token))
    keep = ["U0:Ann", "U2:a", "U1:_B-1/saw"] if name == "frequent" else None
    try:
        support = recipe.corpus_of(X, keep=keep).packed()
    except CorpusError:
        return
    kept = frozenset(support.vocabulary.features) if keep else None
    answer = RawSentences(support, recipe, Needs(symbols=True, new_features=True)).pack(new)
    try:
        expected = recipe.corpus_of(new, keep=kept).packed(like=support)
    except CorpusError:
        assert answer is None, "what a corpus refuses is left to it"
        return
    assert answer is not None
    assert_equal_arrays(answer.packed, expected)
    known = RawSentences(support, recipe, Needs(symbols=False, new_features=False)).pack(new)
    assert known is not None
    is_known = expected.features.indices < len(support.vocabulary.features)
    assert (known.packed.features.indices == expected.features.indices[is_known]).all()
    assert known.is_strange == answer.is_strange == (is_known.size > 0 and not is_known.any())


def assert_equal_arrays(packed: Packed, expected: Packed) -> None:
    assert packed.arrays().keys() == expected.arrays().keys()
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(packed.arrays()[name], array, err_msg=name, strict=True)


def test_a_new_feature_of_value_0_is_none() -> None:
    support, new = Recipe("lists").corpus_of([["Ann"]]).packed(), [[{"f": 1.0, "": 0.0, "Ann": 0}]]
    answer = RawSentences(support, Recipe("lists"), Needs(symbols=True, new_features=True)).pack(new)
    assert answer is not None
    assert_equal_arrays(answer.packed, Recipe("lists").corpus_of(new).packed(like=support))


PAIRS: dict[str, tuple[Kernel | None, Learner | None]] = {
    "recommended": (None, None),
    "gap": (SequenceLabeling(c=0.5, gap=0.5, observation=Polynomial(2, normalized=True)), LabelingPerceptron()),
    "identity": (SequenceLabeling(c=0.7, observation=Identity(), prior=EmpiricalPrior()), LabelingPerceptron()),
    "distance": (PositionKernel(Gaussian(0.3)), LabelingPerceptron(average=False)),
    "gaussian-process": (PositionKernel(Linear(normalized=True)), GaussianProcessLabeler()),
    "features": (None, HiddenMarkovPerceptron(dual=False)),
    "zscore": (None, ZScoreLabeler()),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    draw = np.random.default_rng(3)
    X = [[str(word) for word in draw.choice(WORDS, size=draw.integers(1, 7))] for _ in range(30)]
    y = [
        ["B" if word[0].isupper() else "I" if k and line[k - 1][0].isupper() else "O" for k, word in enumerate(line)]
        for line in X
    ]
    with warnings.catch_warnings(action="ignore", category=KernelWarning):  # identity on feature sets
        return {
            name: KernelLabeler(kernel, learner, features="spelling").fit(X, y).model_
            for name, (kernel, learner) in PAIRS.items()
        }


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=25, deadline=None)
@given(new=sentences(words))
def test_the_labels_are_those_of_the_long_way(models: dict[str, Model], name: str, new: list[list[str]]) -> None:
    model = models[name]
    try:
        corpus = model.corpus_of(new)
    except CorpusError:
        with pytest.raises(CorpusError):
            model.predict(new)
        return
    assert model.predict(new) == model.predict(corpus, block_rows=16)
    np.testing.assert_allclose(
        model.decision_scores(new), model.decision_scores(corpus, block_rows=16), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", PAIRS)
def test_the_short_way_is_taken(models: dict[str, Model], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = models[name].predict([["Ann", "saw", "xyz"]])
    monkeypatch.setattr(Corpus, "assembled", None)
    assert models[name].predict([["Ann", "saw", "xyz"]]) == expected


@pytest.mark.parametrize("wrong", [[[]], [["a"], "b"], [[1]], [["a", b"b"]], [[{"f": "x", "g": np.nan}]], [["\ud800"]]])
def test_what_is_wrong_is_said_by_the_corpus(wrong: Any, tmp_path: Path) -> None:
    model = KernelLabeler(PositionKernel(), LabelingPerceptron()).fit([["a", "b"]], [["A", "B"]]).model_
    model.save(tmp_path / "m.zarr")
    with pytest.raises(CorpusError):
        Model.load(tmp_path / "m.zarr").predict(wrong)
