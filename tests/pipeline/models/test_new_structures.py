"""Raw sentences and corpora in front of a model that knows how its own corpus was made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forged import resealed

from gramline.kernels.observations.features import Linear
from gramline.kernels.positions import PositionKernel
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.errors import CorpusError, InputError
from gramline.pipeline.models.labeler import KernelLabeler
from gramline.pipeline.models.model import Model
from gramline.pipeline.storage.groups import read_attributes

TRAIN = "Ann NNP B\nsaw VBD O\nBob NNP B\n\nthey PRP O\nran VBD O\n\nEve NNP B\nran VBD O\n"
TEMPLATE = "U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,1]/%x[0,1]\nB\n"
NEW = [[("Bob", "NNP"), ("ran", "VBD")], [("they", "PRP"), ("met", "VBD"), ("Zoe", "NNP")]]


def trained(folder: Path, learner: Any = None, **options: Any) -> Model:
    (folder / "train.conll").write_text(TRAIN)
    corpus = Corpus.read(folder / "train.conll", **options)
    kernel = None if learner is not None and learner.reads_corpus else PositionKernel(Linear(normalized=True))
    return KernelLabeler(kernel, learner or LabelingPerceptron()).fit(corpus).model_


def columns(folder: Path) -> Path:
    path = folder / "new.conll"
    path.write_text("\n\n".join("\n".join(" ".join(row) for row in line) for line in NEW) + "\n")
    return path


@pytest.mark.parametrize(
    "learner", [LabelingPerceptron(), HiddenMarkovPerceptron(dual=False)], ids=["gram", "features"]
)
@pytest.mark.parametrize("features", ["words", "spelling", "template", "frequent"])
def test_raw_sentences_a_file_and_a_corpus_get_the_same_labels(tmp_path: Path, features: str, learner: Any) -> None:
    options: dict[str, Any] = {"features": features}
    if features in ("template", "frequent"):
        (tmp_path / "template").write_text(TEMPLATE)
        options = {"template": tmp_path / "template", "minimum_count": 2 if features == "frequent" else 1}
    model = trained(tmp_path, learner, **options)
    model.save(tmp_path / "model.zarr")
    model = Model.load(tmp_path / "model.zarr")
    assert model.recipe == Corpus.read(tmp_path / "train.conll", **options).recipe
    path = columns(tmp_path)
    training = Corpus.read(tmp_path / "train.conll", **options)
    like = {"like": training} if features == "frequent" else {}
    corpus = Corpus.read(path, no_labels=True, **options, **like)
    expected = model.predict(corpus.packed(like=model.support))
    assert model.predict(corpus) == expected
    assert model.predict(NEW) == expected
    assert model.predict(model.read(path)) == expected
    assert [len(labels) for labels in expected] == [2, 3]


def test_a_corpus_made_otherwise_is_refused_with_both_descriptions(tmp_path: Path) -> None:
    model = trained(tmp_path, features="spelling", window=1)
    path = columns(tmp_path)
    with pytest.raises(InputError) as caught:
        model.predict(Corpus.read(path, no_labels=True, features="spelling", window=2))
    assert str(caught.value) == (
        "the structures were made otherwise than those the model learned from: window 2 instead of 1; they are conll, "
        "2 columns a token, spelling features with a window of 2, no labels True, the model needs conll, 2 columns a "
        "token, spelling features with a window of 1; give raw text, or import it so"
    )
    with pytest.raises(InputError, match="features token instead of spelling"):
        model.predict(Corpus.read(path, no_labels=True))
    with pytest.raises(CorpusError, match="the token 'Bob' has 1 column, where a row of 2 columns is expected"):
        model.predict([["Bob", "ran"]])
    with pytest.raises(InputError, match="features token instead of spelling"):
        model.predict(Corpus.from_sequences([["Bob", "ran"]]))


def test_bare_words_get_the_features_of_the_model() -> None:
    fitted = KernelLabeler().fit([["Ann", "saw", "Bob"], ["they", "ran"]], [["B", "O", "B"], ["O", "O"]])
    raw = [["Eve", "ran"]]
    expected = fitted.model_.predict(Corpus.from_sequences(raw).with_features("spelling", 1))
    assert expected == fitted.predict(raw) == fitted.predict(Corpus.from_sequences(raw))
    for wrong in (7, "Ann", {"Ann": 1}):
        with pytest.raises(CorpusError, match="a model labels a list of sentences or a Corpus, got"):
            fitted.predict(wrong)  # type: ignore[arg-type]


def test_a_model_without_a_recipe_loads_and_predicts_as_before(tmp_path: Path) -> None:
    model = KernelLabeler(PositionKernel(), LabelingPerceptron()).fit([["a", "b"]], [["A", "B"]]).model_
    replace(model, recipe=None).save(tmp_path / "m.zarr")
    assert "recipe" not in read_attributes(str(tmp_path / "m.zarr"))[0], "what 0.1.0 wrote"
    old = Model.load(tmp_path / "m.zarr")
    assert old.recipe is None
    assert old.describe()["recipe"] is None
    assert old.predict([["b", "a"]]) == [["B", "A"]]
    raw = tmp_path / "new.conll"
    raw.write_text("a\n", "utf-8")
    with pytest.raises(InputError, match="does not know how its corpus was made, so it cannot read"):
        old.read(str(raw))


def test_a_recipe_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    model = KernelLabeler(PositionKernel(), LabelingPerceptron()).fit([["a", "b"]], [["A", "B"]]).model_
    model.save(tmp_path / "m.zarr")
    resealed(tmp_path / "m.zarr", {"recipe": {"colour": "red"}})
    with pytest.raises(InputError, match="is a damaged model"):
        Model.load(tmp_path / "m.zarr")
    assert model.recipe == Recipe("lists")
