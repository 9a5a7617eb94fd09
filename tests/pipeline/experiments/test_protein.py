"""The protein experiment end to end on made-up chains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramline.pipeline.crossval import crf
from gramline.pipeline.crossval.crf import DECODINGS, MISSING_NOTE, has_crf
from gramline.pipeline.experiments import protein
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment

LETTERS = {"h": "AELMQK", "e": "VIYFWT", "_": "GNPDS"}  # structures that prefer letters of their own


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    (tmp_path / "protein_ss").mkdir()
    for name, n_chains in (("train", 12), ("test", 4)):
        chains = []
        for _ in range(n_chains):
            segments = [str(label) for label in rng.choice(list(LETTERS), 6) for _ in range(5)]
            chains.append("".join(f"{rng.choice(list(LETTERS[label]))}\t{label}\n" for label in segments))
        (tmp_path / "protein_ss" / f"{name}.tsv").write_text("\n".join(chains))
    return tmp_path


def test_letters_tell_the_structure(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(tmp_path.iterdir())
    (table,) = find_experiment("protein").run(Run(data, quick=True, scratch=tmp_path))
    found = {str(row[0]): row for row in table.rows}
    for family in protein.families(quick=True):
        q3 = found[family.name][1]
        assert isinstance(q3, float)
        assert q3 > 75, family.name
    assert found["coil everywhere"][2:5] == (0.0, 0.0, 100.0)
    assert found["published, neural networks"][1] == protein.PUBLISHED_Q3
    for decoding in DECODINGS:
        assert (f"{protein.CRF}, {decoding}" in found) == has_crf()
    assert set(tmp_path.iterdir()) == before  # the stores are gone
    monkeypatch.setattr(crf, "pycrfsuite", None)
    monkeypatch.setattr(protein, "families", lambda _quick: [])
    (without,) = protein.protein(Run(data, quick=True, scratch=tmp_path))
    assert MISSING_NOTE in without.notes
    assert not any(str(row[0]).startswith(protein.CRF) for row in without.rows)


def test_test_chains_have_no_say_in_the_choice(data: Path, tmp_path: Path) -> None:
    family = protein.families(quick=True)[2]
    assert len(family.parameters) > 1
    train = protein.read_conll(data / "protein_ss" / "train.tsv", features="token")
    kernel, parameters = protein._chosen(family, train, Run(tmp_path, quick=True))
    assert kernel in family.kernels
    assert parameters in family.parameters
