from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments import gpsl
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.crf import has_crf
from gramline.pipeline.experiments.gpsl_sets import Source
from gramline.pipeline.experiments.record import ExperimentRecord, save_record

N_SENTENCES = 36


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Sentences whose label hangs on one of their features, in the files of the segmentation set."""
    random = np.random.default_rng(3)
    folder = tmp_path / "gpstruct"
    folder.mkdir()
    sentences = []
    for _ in range(N_SENTENCES):
        words = random.integers(0, 6, 4)
        sentences.append("".join(f"{word % 2}\t{4 + 2 * word} {40 + 2 * (word // 2)}\n" for word in words))
    sentences[0] = sentences[0].replace("\n", "\n0\t\n", 1)  # a token without any feature
    (folder / "segmentation.tok.gz").write_bytes(gzip.compress(("\n".join(sentences) + "\n").encode()))
    (folder / "segmentation.labels.tsv").write_text("0\tB\n1\tI\n")
    orders = [1 + random.permutation(N_SENTENCES) for _ in range(5)]
    (folder / "splits_36.txt").write_text("".join(" ".join(map(str, order)) + "\n" for order in orders))
    return tmp_path


def test_the_quick_version_learns_what_the_features_say(data: Path, tmp_path: Path) -> None:
    tables = find_experiment("gpsl").run(Run(data, quick=True))
    losses, seconds, decoding, missing, calibration = tables
    papers = {row[1]: row[6] for row in losses.rows}
    assert {name: papers[name] for name in gpsl.MODELS} == {"GPSL1": 23.45, "GPSL2": 23.51, "GPSL4": 23.53}
    assert {row[1] for row in losses.rows} - set(gpsl.MODELS) == {
        "GPSL1, Jensen's bound",
        "GPSL2, Jensen's bound",
        "GPSL4, Jensen's bound",
        gpsl.LEARNED,
        *([gpsl.CRF] if has_crf() else []),
    }
    assert all(isinstance(row[3], float) and row[3] < 10 for row in losses.rows)
    assert [row[4:] for row in seconds.rows if row[4]] == [(17, 2.5)]
    assert decoding.rows[0][2] == losses.rows[0][3]
    assert missing.rows[0][1] == 0.5
    assert all(0 <= float(row[5] or 0) < 0.5 for row in calibration.rows)
    written = save_record(ExperimentRecord("gpsl", "", "", 0.0, {}, tuple(tables)), tmp_path / "out")
    assert [path.name for path in written if path.suffix == ".svg"] == ["gpsl-4.svg"]
    assert "picture" not in (tmp_path / "out" / "gpsl.json").read_text()


def test_the_full_version_draws_more_folds_and_names_what_is_missing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpsl, "FRACTIONS", (0.2,))
    monkeypatch.setattr(gpsl, "DRAWN_FOLDS", 1)
    losses, _, _, missing, _ = find_experiment("gpsl").run(Run(data))
    assert losses.rows[0][2] == 6
    assert missing.rows[0][2] == 5
    assert sum("is not in the data folder: left out" in note for note in losses.notes) == 3


@pytest.mark.parametrize("name", ["gpsl-scale", "gpsl-bound"])
def test_settings_are_chosen_on_training_sentences_only(data: Path, name: str) -> None:
    """Labels of the held-out sentences, all made wrong, change the loss and not the choice."""
    (table,) = find_experiment(name).run(Run(data, quick=True))
    loss = table.columns.index("loss")
    (choice,) = (place for place, column in enumerate(table.columns) if column.endswith("chosen"))
    assert all(row[choice] and float(row[loss] or 0) < 10 for row in table.rows)
    order = np.array((data / "gpstruct" / "splits_36.txt").read_text().splitlines()[0].split(), int) - 1
    held_out = set(order[20:].tolist())
    path = data / "gpstruct" / "segmentation.tok.gz"
    sentences = gzip.decompress(path.read_bytes()).decode().rstrip("\n").split("\n\n")
    turned = [_turned(text) if number in held_out else text for number, text in enumerate(sentences)]
    path.write_bytes(gzip.compress(("\n\n".join(turned) + "\n").encode()))
    (other,) = find_experiment(name).run(Run(data, quick=True))
    assert [row[choice] for row in other.rows] == [row[choice] for row in table.rows]
    assert all(float(row[loss] or 0) > 90 for row in other.rows)


def test_the_candidate_with_the_fewest_wrong_tokens_is_chosen_and_the_first_of_equals(data: Path) -> None:
    read = Source("segmentation", "splits_36.txt", 20).read(Run(data), 1, 0)
    good, bad = gpsl.labeler("GPSL1"), GaussianProcessLabeler(scale=1e-9)
    choices = [[bad, good], [good, bad], [good, good]]
    chosen = [gpsl.fewest_wrong([model.fresh for model in models], read, read.folds[0], 3) for models in choices]
    assert chosen == [1, 0, 0]


def _turned(sentence: str) -> str:
    return "\n".join(f"{1 - int(line[0])}{line[1:]}" for line in sentence.split("\n"))


def test_folds_are_the_published_ones_first(data: Path) -> None:
    source = Source("segmentation", "splits_36.txt", 20)
    read = source.read(Run(data, seed=7), 5, 2)
    line = (data / "gpstruct" / "splits_36.txt").read_text().splitlines()[1]
    assert [*read.folds[1].train, *read.folds[1].test] == [int(word) - 1 for word in line.split()]
    assert len(read.folds[6].train) == 20
    again, other = source.read(Run(data, seed=7), 5, 2), source.read(Run(data, seed=8), 5, 2)
    assert np.array_equal(read.folds[6].test, again.folds[6].test)
    assert not np.array_equal(read.folds[6].test, other.folds[6].test)
    gram, cross = read.grams(read.folds[0])
    assert cross.shape == (gram.shape[0], int(read.lengths.sum()) - gram.shape[0])


def test_the_linear_kernel_counts_shared_features(data: Path) -> None:
    read = Source("segmentation", "splits_36.txt", 20).read(Run(data), 1, 0)
    tokens = [set(token) for sentence in read.sentences for token in sentence]
    assert read.gram.tolist() == [[len(one & other) for other in tokens] for one in tokens]
    assert read.gram[1, 1] == 0  # the token without features


def test_bad_files_are_named(data: Path, tmp_path: Path) -> None:
    splits = data / "gpstruct" / "splits_36.txt"
    source = Source("segmentation", "splits_36.txt", 20)
    splits.write_text("1 2 2\n")
    with pytest.raises(InputError, match="line 1 is not a permutation of 1 to 3"):
        source.read(Run(data), 5, 0)
    splits.write_text(" ".join(str(k) for k in range(1, 40)))
    with pytest.raises(InputError, match="holds 36 sentences, but its splits name 39"):
        source.read(Run(data), 5, 0)
    splits.write_text("1 2 3\n")
    (data / "gpstruct" / "segmentation.labels.tsv").write_text("0\tB\n")
    with pytest.raises(InputError, match="label number '1', which has no name"):
        source.read(Run(data), 5, 0)
    with pytest.raises(InputError, match="holds none of"):
        gpsl.gpsl(Run(tmp_path / "empty"))


def test_calibration_error_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.55, 1.0])
    right = np.array([True, False, True, True])
    # last bin: 2.9 said, 2 right; sixth bin: 0.55 said, 1 right
    assert gpsl.calibration_error(confidence, right) == pytest.approx((0.9 + 0.45) / 4)
