"""The Z-score on random hidden Markov models, and these models."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from oracles.viterbi import best_path

from gramline.pipeline.crossval.crf import has_crf
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.zscore_artificial import CRFS, HiddenMarkovModel


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
    assert (set(CRFS) <= errors.keys()) == has_crf()
    for method, found in errors.items():
        for error, least in zip(found, best, strict=True):
            assert isinstance(error, float)
            assert isinstance(least, float)
            assert least - 3 < error < 67, method
    (row,) = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["exact error %"] == pytest.approx(cells["100 paths error %"], abs=3)
    assert (cells["paper exact %"], cells["paper MM (H) s"]) == (15.82, 5.63)
    assert 0.9 < float(cells["Z ratio"] or 0) <= 1 + 1e-9  # the exact weights maximise Z
