"""The Z-score experiments end to end on small data of our own."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from oracles.viterbi import best_path

from gramline.pipeline.experiments import zscore_artificial, zscore_ner
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.crf import MISSING_NOTE, crf_predictions, has_crf
from gramline.pipeline.experiments.zscore_artificial import HiddenMarkovModel

PLACES = ["Madrid", "Lima", "Quito", "Cuzco"]
PEOPLE = ["Ana", "Luis", "Eva", "Juan"]
VERBS = ["visita", "ve", "deja", "busca"]


def test_counting_many_sequences_finds_the_model() -> None:
    rng = np.random.default_rng(0)
    model = HiddenMarkovModel.random(3, 4, rng)
    counted = HiddenMarkovModel.counted(model.draw(20000, 5, rng))
    for true, found in zip(vars(model).values(), vars(counted).values(), strict=True):
        np.testing.assert_allclose(found, true, atol=0.02)
        np.testing.assert_allclose(found.sum(axis=-1), 1.0)


def test_the_model_decodes_the_likeliest_path() -> None:
    rng = np.random.default_rng(1)
    model = HiddenMarkovModel.random(3, 4, rng)
    drawn = model.draw(6, 5, rng)
    assert (drawn.symbols == drawn.features.indices).all()
    found = model.decode(drawn)
    for first, last in pairwise(drawn.starts.tolist()):
        scores = np.log(model.emission.T)[drawn.symbols[first:last]]
        scores[0] += np.log(model.initial)
        assert found[first:last].tolist() == list(best_path(scores, np.log(model.transition)))


def test_artificial_sequences(tmp_path: Path) -> None:
    figure, table = find_experiment("zscore-artificial").run(Run(tmp_path, quick=True))
    errors = {str(row[0]): row[1:3] for row in figure.rows}
    best = errors.pop("HMM, the true one")
    assert {"Z-score", "Z-score, Hamming", "HM perceptron", "HMM, counted"} <= errors.keys()
    for method, found in errors.items():
        for error, least in zip(found, best, strict=True):
            assert isinstance(error, float)
            assert isinstance(least, float)
            assert least - 3 < error < 67, method
    (row,) = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["exact error %"] == pytest.approx(cells["100 paths error %"], abs=3)
    assert 0.9 < float(cells["Z ratio"] or 0) <= 1 + 1e-9  # the exact weights maximise Z


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    sentences = []
    for _ in range(18):
        person, verb, place = rng.choice(PEOPLE), rng.choice(VERBS), rng.choice(PLACES)
        sentences.append(f"{person} NP B-PER\n{verb} V O\na SP O\n{place} NP B-LOC\n. F O\n")
    (tmp_path / "conll2002_es").mkdir()
    (tmp_path / "conll2002_es" / "esp.train.first300").write_text("\n".join(sentences))
    return tmp_path


def test_named_entities(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    first, second = find_experiment("zscore-ner").run(Run(data, quick=True, say=told.append))
    assert (first.title[:10], second.title[:13]) == ("S1 (words,", "S2 (spelling,")
    assert f"S2: {next(iter(zscore_ner.METHODS))}" in told
    for table, papers in ((first, (11.66, 11.07, 20.99, 12.01)), (second, (8.01, 7.89, 13.78, 8.29))):
        rows = {row[0]: row[1:] for row in table.rows}
        assert rows["most frequent label"][0] == pytest.approx(40)  # two names in five words
        for name in ("Z-score, both ridges", "Z-score, Hamming", "kernel Z-score, Polynomial(2)"):
            assert rows[name][0] == pytest.approx(0, abs=3)
        expected = papers if has_crf() else papers[:3]
        assert tuple(row[3] for row in table.rows if row[3] is not None) == expected
    for module in (zscore_ner, zscore_artificial):
        monkeypatch.setattr(module, "has_crf", lambda: False)
    monkeypatch.setattr(
        zscore_ner, "METHODS", {name: m for name, m in zscore_ner.METHODS.items() if name[:3] in ("mos", "CRF")}
    )
    without = zscore_ner.zscore_ner(Run(data, quick=True))
    assert [[row[0] for row in table.rows] for table in without] == [["most frequent label"]] * 2
    assert MISSING_NOTE in without[0].notes


@pytest.mark.skipif(not has_crf(), reason="python-crfsuite is not installed")
def test_the_crf_reads_names_of_features_and_labels() -> None:
    rng = np.random.default_rng(2)
    model = HiddenMarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), np.array([[0.98, 0.02], [0.02, 0.98]]))
    train, test = model.draw(30, 6, rng), model.draw(20, 6, rng)
    predicted = np.array(crf_predictions(train, test)).ravel()
    assert (predicted == np.array(test.vocabulary.labels)[test.labels]).mean() > 0.9
