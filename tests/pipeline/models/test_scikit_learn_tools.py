"""The tools of scikit-learn and pickle handle a `KernelLabeler` as one of their own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from labeler_samples import NEW, WHOLE_Y, X, Y, labeler
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.positions import PositionKernel
from gramline.learners.errors import NotFittedError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.models.labeler import KernelLabeler


def test_scikit_learn_can_handle_it() -> None:
    original = labeler(block_rows=8).fit(X, Y)
    copy = clone(original)
    assert copy.block_rows == 8
    assert copy.kernel == original.kernel
    assert copy.learner is not original.learner
    with pytest.raises(NotFittedError):
        copy.predict(NEW)
    scores = cross_val_score(labeler(), X, Y, cv=3)
    assert scores.shape == (3,)
    assert (scores > 0.4).all()
    search = GridSearchCV(labeler(), {"kernel__c": [0.1, 0.7], "learner__rounds": [1, 5]}, cv=2).fit(X, Y)
    assert search.best_estimator_.learner.rounds in (1, 5)
    assert search.predict(NEW)[0] == ["D", "N", "V"]


def described_words(lines: list[list[str]]) -> list[list[dict[str, Any]]]:
    return [[{"word": word, "end": word[-1]} for word in line] for line in lines]


@pytest.mark.parametrize("make", [labeler, KernelLabeler], ids=["given", "recommended"])
def test_scikit_learn_tools_take_it(make: Callable[[], KernelLabeler]) -> None:
    predicted = cross_val_predict(make(), X, WHOLE_Y, cv=3)
    assert [len(line) for line in predicted] == [len(line) for line in X]
    by_hand = [
        make().fit(X[2:], WHOLE_Y[2:]).predict(X[:2]),
        make().fit(X[:2] + X[4:], WHOLE_Y[:2] + WHOLE_Y[4:]).predict(X[2:4]),
    ]
    assert list(map(list, predicted[:4])) == [line for part in by_hand for line in part]
    assert cross_val_score(make(), X, WHOLE_Y, cv=3).shape == (3,)
    steps = Pipeline([("features", FunctionTransformer(described_words)), ("labeler", make())]).fit(X, WHOLE_Y)
    assert steps.predict(X) == WHOLE_Y
    assert steps.score(X, WHOLE_Y) == 1.0
    assert steps.predict([]) == []


def test_a_grid_over_the_recommended_pair() -> None:
    grid = {"features": ["token", "spelling"], "learner": [LabelingPerceptron(rounds=3), None]}
    search = GridSearchCV(KernelLabeler(), grid, cv=2).fit(X, WHOLE_Y)
    assert search.best_params_["features"] in ("token", "spelling")
    assert len(search.predict(NEW)) == 2
    inside = {"labeler__learner__rounds": [1, 5], "labeler__kernel__observation__degree": [1, 2]}
    made = KernelLabeler(PositionKernel(Polynomial(2, normalized=True, unit=True)), LabelingPerceptron())
    piped = Pipeline([("features", FunctionTransformer(described_words)), ("labeler", made)])
    inner = GridSearchCV(piped, inside, cv=2).fit(X, WHOLE_Y)
    best = inner.best_estimator_.named_steps["labeler"]
    assert best.kernel_.observation.degree == inner.best_params_["labeler__kernel__observation__degree"]
    assert inner.predict(X) == best.predict(described_words(X))


@pytest.mark.parametrize("learner", [None, GaussianProcessLabeler(), HiddenMarkovPerceptron(dual=False)], ids=str)
def test_a_fitted_labeler_is_pickled(learner: Any, tmp_path: Path) -> None:
    fitted = KernelLabeler(learner=learner).fit(X, WHOLE_Y)
    expected = fitted.predict(NEW)
    fresh_size = len(pickle.dumps(KernelLabeler(learner=learner).fit(X, WHOLE_Y)))
    joblib.dump(fitted, tmp_path / "labeler.joblib")
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "labeler.joblib")):
        assert again.predict(NEW) == expected
        assert again.recipe_ == fitted.recipe_
        assert again.classes_ == fitted.classes_
    assert len(pickle.dumps(fitted)) == fresh_size, "an index of the vocabulary is not pickled"
    parts = joblib.Parallel(n_jobs=1)(joblib.delayed(fitted.predict)([line]) for line in NEW)
    assert [part[0] for part in parts] == expected


@pytest.mark.parametrize("lengths", [(2, 2), (1, 3), (1, 1)])
def test_predictions_of_any_lengths_are_an_array_of_lists(lengths: tuple[int, int]) -> None:
    predicted = labeler().fit(X, Y).predict([["cat"] * length for length in lengths])
    assert np.concatenate([predicted, predicted]).tolist() == [*predicted, *predicted]
    assert np.asarray(predicted).shape == (2,)
