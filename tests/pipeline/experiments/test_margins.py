"""Support vector machines and random fields on made-up sentences in the files of the segmentation set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gramline.pipeline.crossval.crf import has_crf
from gramline.pipeline.experiments import margins
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.gpsl import CRFS
from gramline.pipeline.experiments.gpsl_sets import SETS
from gramline.pipeline.experiments.margin_families import typical
from gramline.pipeline.experiments.margin_times import Training


def test_every_method_stands_beside_its_printed_number(gpsl_data: Path) -> None:
    losses, trainings = find_experiment("margins").run(Run(gpsl_data, quick=True))
    printed = {row[1]: row[5] for row in losses.rows}
    assert printed["labeling SVM"] == printed["structured SVM, zero-one"] == 23.46
    assert printed["kernel CRF, marginals"] == 24.10
    assert (printed["GPSL1, means"], printed["GPSL4"], printed["GPstruct, as printed"]) == (23.45, 23.53, 23.55)
    assert printed[margins.BEST] is None
    if has_crf():
        assert {printed[name] for name in CRFS.values()} == {24.10}
    rows = {row[1:3]: row for row in losses.rows if row[3] is not None}
    assert all(float(row[3] or 0) < 10 and row[-1] for row in rows.values())
    assert {kernel for name, kernel in rows if name == "kernel CRF, Viterbi"} == {"linear", "cosine"}
    assert "(" in str(rows[margins.BEST, ""][-1])
    for _, name, kernel, on_gram, on_features, passes in trainings.rows:
        assert (on_gram is None) == (passes is None) == (name in CRFS.values())
        if name in CRFS.values() or (kernel == "linear" and str(name).startswith("structured SVM")):
            assert float(on_features or 0) > 0
        if kernel == "cosine" or str(name).startswith(("labeling SVM", "GPSL")):
            assert on_features is None


def test_the_cosine_is_the_linear_kernel_with_a_unit_diagonal(gpsl_data: Path) -> None:
    read = SETS[0].read(Run(gpsl_data), 1, 0)
    (fold,) = read.folds
    (square, across), linear = read.grams(fold, is_cosine=True), read.grams(fold)
    roots = [np.sqrt(gram.diagonal() if gram is linear[0] else gram.col_diagonal) for gram in linear]
    for cosine, plain, other in ((square, linear[0], roots[0]), (across, linear[1], roots[1])):
        scale = np.outer(roots[0], other)
        expected = np.divide(plain.matrix, scale, out=np.zeros_like(scale), where=scale > 0)
        np.testing.assert_allclose(cosine.matrix, expected, rtol=1e-12)
    assert set(square.diagonal().round(12)) | set(across.col_diagonal) <= {0.0, 1.0}
    assert typical(square) == pytest.approx(1.0)


def test_the_step_with_the_fewest_wrong_labels_is_chosen_and_the_first_of_equals(gpsl_data: Path) -> None:
    read = SETS[0].read(Run(gpsl_data), 1, 0)
    family = margins.FAMILIES["labeling SVM"]
    for steps, expected in (((1e-9, 10.0), 10.0), ((10.0, 1e-9), 10.0), ((10.0, 10.0001), 10.0)):
        (found,) = margins.choose(replace(family, steps=steps), read, read.folds[0], is_cosine=True).values()
        assert found[0] == expected
        assert found[1] < 0.1


def test_the_penalty_is_the_constant_of_the_same_loss() -> None:
    parameters = {name: family.constant(10.0, 4.0) for name, family in margins.FAMILIES.items()}
    assert parameters["structured SVM"] == {"C": 2.5}
    assert 1 / (2 * parameters["kernel CRF"]["penalty"]) == 2.5


def test_an_interrupted_run_goes_on_with_the_folds_that_are_missing(
    gpsl_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(task: margins.FoldTask) -> margins.Outcomes:
        if len(measured) == stops_after:
            raise KeyboardInterrupt
        measured.append(int(task.fold.test[0]))
        loss = float(len(measured))
        return {(margins.BEST, ""): margins.Outcome(loss, "labeling SVM (linear)", 0.25)}

    measured: list[int] = []
    monkeypatch.setattr(margins, "_measure_fold", measure)
    monkeypatch.setattr(
        margins, "timed", lambda _data, chosen: {("kernel CRF", "linear"): [Training(len(chosen), None, 3)]}
    )
    monkeypatch.setattr(margins, "quiet_load", lambda _say: 0.25)
    monkeypatch.setattr(margins, "side_by_side", lambda function, tasks, **_: map(function, tasks))
    run = Run(gpsl_data, scratch=tmp_path)
    lines: list[str] = []
    stops_after = 2
    with pytest.raises(KeyboardInterrupt):
        margins.margins(run)
    assert len(list((tmp_path / margins.KEPT).glob("*.json"))) == 2
    stops_after = 100
    losses, trainings = margins.margins(replace(run, say=lines.append))
    n_folds = len(measured)
    assert lines[0].endswith(f"2 of {n_folds} folds are known from an earlier start")
    assert trainings.rows[0][3:] == (n_folds, None, 3)
    assert run.loads == [0.25]  # before the trainings that were timed
    assert losses.rows[0][3] == pytest.approx(100 * (n_folds + 1) / 2)
    assert not (tmp_path / margins.KEPT).exists()
