from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.crossval.crf import has_crf
from gramline.pipeline.experiments import gpsl, gpsl_choice
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.gpsl_sets import SETS
from gramline.pipeline.experiments.record import ExperimentRecord, save_record


def test_the_quick_version_learns_what_the_features_say(gpsl_data: Path, tmp_path: Path) -> None:
    tables = find_experiment("gpsl").run(Run(gpsl_data, quick=True))
    losses, seconds, decoding, missing, calibration = tables
    papers = {row[1]: row[6] for row in losses.rows}
    printed = {name: loss for name, loss in papers.items() if str(name).endswith("as printed")}
    assert printed == {"CRF, as printed": 24.10, "SSVM, as printed": 23.46, "GPstruct, as printed": 23.55}
    assert {name: papers[name] for name in gpsl.MODELS} == {"GPSL1": 23.45, "GPSL2": 23.51, "GPSL4": 23.53}
    trained = [
        name + bound + reading for name in gpsl.MODELS for bound in ("", gpsl.JENSEN) for reading in ("", gpsl.MEANS)
    ]
    assert papers.keys() - printed.keys() == {*trained, gpsl.LEARNED, *(gpsl.CRFS.values() if has_crf() else [])}
    assert all(isinstance(row[3], float) and row[3] < 10 for row in losses.rows if row[1] not in printed)
    assert [row[4:] for row in seconds.rows if row[4]] == [(17, 2.5)]
    assert decoding.rows[0][2] == losses.rows[0][3]
    assert missing.rows[0][1] == 0.5
    assert all(0 <= float(row[5] or 0) < 0.5 for row in calibration.rows)
    written = save_record(ExperimentRecord("gpsl", "", "", 0.0, {}, tuple(tables)), tmp_path / "out")
    assert [path.name for path in written if path.suffix == ".svg"] == ["gpsl-4.svg"]
    assert "picture" not in (tmp_path / "out" / "gpsl.json").read_text()


def test_the_full_version_draws_more_folds_and_names_what_is_missing(
    gpsl_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpsl, "FRACTIONS", (0.2,))
    monkeypatch.setattr(gpsl, "DRAWN_FOLDS", 1)
    losses, _, _, missing, _ = find_experiment("gpsl").run(Run(gpsl_data))
    assert losses.rows[0][2] == 6
    assert missing.rows[0][2] == 5
    assert sum("is not in the data folder: left out" in note for note in losses.notes) == 3


@pytest.mark.parametrize("name", ["gpsl-bound", "margins"])
def test_settings_are_chosen_on_training_sentences_only(gpsl_data: Path, name: str) -> None:
    """Labels of the held-out sentences, all made wrong, change the loss and not the choice."""
    table = find_experiment(name).run(Run(gpsl_data, quick=True))[0]
    loss = table.columns.index("loss")
    (choice,) = (place for place, column in enumerate(table.columns) if "chosen" in column)
    assert all(row[choice] and float(row[loss] or 0) < 10 for row in table.rows if row[loss] is not None)
    order = np.array((gpsl_data / "gpstruct" / "splits_36.txt").read_text().splitlines()[0].split(), int) - 1
    held_out = set(order[20:].tolist())
    path = gpsl_data / "gpstruct" / "segmentation.tok.gz"
    sentences = gzip.decompress(path.read_bytes()).decode().rstrip("\n").split("\n\n")
    turned = [_turned(text) if number in held_out else text for number, text in enumerate(sentences)]
    path.write_bytes(gzip.compress(("\n\n".join(turned) + "\n").encode()))
    other = find_experiment(name).run(Run(gpsl_data, quick=True))[0]
    assert [row[choice] for row in other.rows] == [row[choice] for row in table.rows]
    assert all(float(row[loss] or 0) > 90 for row in other.rows if row[loss] is not None)


def test_the_candidate_with_the_fewest_wrong_tokens_is_chosen_and_the_first_of_equals(gpsl_data: Path) -> None:
    read = SETS[0].read(Run(gpsl_data), 1, 0)
    good, bad = gpsl.LABELERS["GPSL1"], GaussianProcessLabeler(scale=1e-9)
    choices = [{"a": bad, "b": good}, {"a": good, "b": bad}, {"a": good, "b": good}]
    assert [gpsl_choice.fewest_wrong(labelers, read, read.folds[0], 3) for labelers in choices] == ["b", "a", "a"]


def _turned(sentence: str) -> str:
    return "\n".join(f"{1 - int(line[0])}{line[1:]}" for line in sentence.split("\n"))
