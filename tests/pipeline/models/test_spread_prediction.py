"""Predictions by blocks as tasks: what the model itself says, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.kernels import Polynomial, SequenceLabeling
from gramline.learners import GaussianProcessLabeler, HiddenMarkovPerceptron, LabelingPerceptron
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.layout import BlockLayout
from gramline.pipeline.corpus.packed import vocabulary_to_arrays
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.models import spread_prediction as module
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.spread_prediction import _load, predict_on_workers
from gramline.pipeline.storage.letters import Letters

TRAIN = generate_saleslog(12, seed=1).with_features("spelling")
NEW = generate_saleslog(9, seed=2).with_features("spelling")
KERNEL = SequenceLabeling(reach=0.5, observation=Polynomial(2, normalized=True))


def trained(learner: Any) -> Model:
    return Model.of(learner.fit(DenseGram.of(KERNEL, TRAIN), TRAIN.labels), TRAIN, KERNEL)


def test_labels_are_those_of_the_model(tmp_path: Path) -> None:
    model = trained(LabelingPerceptron(rounds=3))
    predicted = predict_on_workers(model, NEW, InlineExecutor(), str(tmp_path / "m"), block_rows=64)
    assert predicted.labels == model.predict(NEW)
    assert predicted.table is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("average", [True, False])
def test_workers_are_sent_the_weights_that_predict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, average: bool
) -> None:
    loaded: list[Any] = []
    kept: Cache[int] = Cache(3)
    kept.get("of another kind of work", lambda: 1)

    def load(letters: Letters) -> Any:
        loaded.append(_load(letters))
        return loaded[-1]

    monkeypatch.setattr(module, "_load", load)
    model = trained(LabelingPerceptron(rounds=3, average=average))
    predicted = predict_on_workers(model, NEW, InlineExecutor(), str(tmp_path / "m"), block_rows=64)
    assert predicted.labels == model.predict(NEW)
    learner = loaded[0][0].learner
    n_rows = model.support.n_positions
    assert learner.alpha_.shape == (n_rows, 0 if average else len(model.label_names))
    assert learner.average_alpha_.shape == (n_rows, len(model.label_names) if average else 0)
    assert model.learner.alpha_.shape == model.learner.average_alpha_.shape
    assert kept.get("of another kind of work", lambda: 2) == 2


def test_probabilities_come_along(tmp_path: Path) -> None:
    model = trained(GaussianProcessLabeler(max_sweeps=2))
    predicted = predict_on_workers(
        model, NEW, InlineExecutor(), str(tmp_path / "m"), block_rows=64, question="probabilities"
    )
    labels, table = model.predict_with_proba(NEW)
    assert predicted.labels == labels
    np.testing.assert_allclose(predicted.table, table, rtol=1e-12)


def test_scores_are_those_of_the_model(tmp_path: Path) -> None:
    model = trained(LabelingPerceptron(rounds=3))
    predicted = predict_on_workers(model, NEW, InlineExecutor(), str(tmp_path / "m"), block_rows=64, question="scores")
    np.testing.assert_allclose(predicted.table, model.decision_scores(NEW), rtol=1e-12)


def test_nothing_is_predicted_of_nothing(tmp_path: Path) -> None:
    model = trained(LabelingPerceptron(rounds=1))
    assert predict_on_workers(model, [], InlineExecutor(), str(tmp_path / "m")).labels == []


def test_who_comes_after_the_end_leaves_nothing(tmp_path: Path) -> None:
    """A task that ran twice, and was the slower one."""
    model = trained(LabelingPerceptron(rounds=1))
    letters = Letters(str(tmp_path / "m.partial"))
    model.save(f"{letters.url}/{module.MODEL}")
    new = model.packed(NEW)
    letters.write(module.VOCABULARY, vocabulary_to_arrays(new.vocabulary))
    (task,) = module._tasks(letters, new, BlockLayout.of(KERNEL.row_lengths(new), None), "labels", None)
    module.predict_block(task)
    answers = letters.read(module._answer(0))
    letters.remove(module._block(0))  # as whoever waits does, once the first one has said that it is done
    with pytest.raises(RunError, match="was lost"):
        module.predict_block(task)
    assert np.array_equal(letters.read(module._answer(0))["codes"], answers["codes"])


def test_a_learner_on_features_labels_here(tmp_path: Path) -> None:
    model = Model.of(HiddenMarkovPerceptron(rounds=3).fit(TRAIN), TRAIN, None)
    assert predict_on_workers(model, NEW, InlineExecutor(), str(tmp_path / "m")).labels == model.predict(NEW)


def test_what_the_model_notes_is_noted(tmp_path: Path) -> None:
    model = trained(LabelingPerceptron(rounds=2))
    strange = generate_saleslog(3, seed=2)
    with pytest.raises(Exception, match="made otherwise"):
        predict_on_workers(model, strange.with_features("spelling", 2), InlineExecutor(), str(tmp_path / "m"))


def test_a_model_asks_the_workers_of_a_client(dask_client: Any) -> None:
    model = trained(GaussianProcessLabeler(max_sweeps=2))
    assert model.predict(NEW, client=dask_client) == model.predict(NEW)
    np.testing.assert_allclose(model.predict_proba(NEW, client=dask_client), model.predict_proba(NEW), rtol=1e-12)
    np.testing.assert_allclose(model.decision_scores(NEW, client=dask_client), model.decision_scores(NEW), rtol=1e-12)
    with pytest.raises(InputError, match="client must be a Dask client"):
        model.predict(NEW, client="tcp://127.0.0.1:8786")


def test_on_a_cluster(tmp_path: Path, dask_client: Any) -> None:
    model = trained(LabelingPerceptron(rounds=3))
    predicted = predict_on_workers(model, NEW, DaskExecutor(dask_client), str(tmp_path / "m"), block_rows=64)
    assert predicted.labels == model.predict(NEW)
