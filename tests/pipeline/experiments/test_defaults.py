"""The defaults beside a CRF and a grid, on generated sentences alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.experiments import defaults, defaults_sets
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.defaults_sets import SOURCES


def test_the_generated_set_needs_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults_sets, "QUICK_STRUCTURES", 24)
    zero, learners = find_experiment("defaults").run(Run(tmp_path, quick=True))
    assert [row[0] for row in zero.rows] == ["sales log", "geometric mean"]
    _, _, error, _, ratio, majority = zero.rows[0]
    assert isinstance(error, float)
    assert isinstance(majority, float)
    assert error < majority
    assert ratio is None or zero.rows[1][4] == pytest.approx(ratio)
    assert len(learners.rows) == len(defaults.families(quick=True))
    for _, _, default, best, own_ratio, _ in learners.rows:
        assert isinstance(default, float)
        assert isinstance(best, float)
        assert own_ratio == pytest.approx(default / best)
    assert f"{SOURCES[0].title} is not in the data folder: left out" in zero.notes


def test_trained_together_is_trained_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults_sets, "QUICK_STRUCTURES", 8)
    (part,) = SOURCES[-1].parts(Run(tmp_path, quick=True))
    trial = defaults.Trial.of(part)
    for family in defaults.families(quick=True)[:8]:
        learners = [family.learner.fresh().set_params(**setting) for setting in family.grid[:2]]
        assert trial.errors(learners) == [trial.errors([learner])[0] for learner in learners]
