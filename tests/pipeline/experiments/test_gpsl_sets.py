"""The CRF++ sets: folds, the linear kernel, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramline.pipeline.crossval.crf import named_features
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments import gpsl
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.gpsl_sets import SETS


def test_folds_are_the_published_ones_first(gpsl_data: Path) -> None:
    source = SETS[0]
    read = source.read(Run(gpsl_data, seed=7), 5, 2)
    line = (gpsl_data / "gpstruct" / "splits_36.txt").read_text().splitlines()[1]
    assert [*read.folds[1].train, *read.folds[1].test] == [int(word) - 1 for word in line.split()]
    assert len(read.folds[6].train) == 20
    again, other = source.read(Run(gpsl_data, seed=7), 5, 2), source.read(Run(gpsl_data, seed=8), 5, 2)
    assert np.array_equal(read.folds[6].test, again.folds[6].test)
    assert not np.array_equal(read.folds[6].test, other.folds[6].test)
    gram, cross = read.grams(read.folds[0])
    assert cross.shape == (gram.shape[0], read.corpus.n_positions - gram.shape[0])


def test_the_linear_kernel_counts_shared_features(gpsl_data: Path) -> None:
    read = SETS[0].read(Run(gpsl_data), 1, 0)
    tokens = [set(token) for sentence in named_features(read.corpus.packed()) for token in sentence]
    assert read.gram.tolist() == [[len(one & other) for other in tokens] for one in tokens]
    assert read.gram[1, 1] == 0  # the token without features


def test_bad_files_are_named(gpsl_data: Path, tmp_path: Path) -> None:
    splits = gpsl_data / "gpstruct" / "splits_36.txt"
    source = SETS[0]
    splits.write_text("1 2 2\n")
    with pytest.raises(InputError, match="line 1 is not a permutation of 1 to 3"):
        source.read(Run(gpsl_data), 5, 0)
    splits.write_text(" ".join(str(k) for k in range(1, 40)))
    with pytest.raises(InputError, match="holds 36 sentences, but its splits name 39"):
        source.read(Run(gpsl_data), 5, 0)
    splits.write_text("1 2 3\n")
    (gpsl_data / "gpstruct" / "segmentation.labels.tsv").write_text("0\tB\n")
    with pytest.raises(InputError, match="label number '1', which has no name"):
        source.read(Run(gpsl_data), 5, 0)
    with pytest.raises(InputError, match="holds none of"):
        gpsl.gpsl(Run(tmp_path / "empty"))
