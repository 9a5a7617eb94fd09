"""Small data of our own, in the files that the experiments read."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

PLACES = ["Madrid", "Lima", "Quito", "Cuzco"]
PEOPLE = ["Ana", "Luis", "Eva", "Juan"]
VERBS = ["visita", "ve", "deja", "busca"]
N_SENTENCES = 36


@pytest.fixture
def spanish_data(tmp_path: Path) -> Path:
    """Eighteen sentences of five words, two of them names."""
    rng = np.random.default_rng(0)
    sentences = []
    for _ in range(18):
        person, verb, place = rng.choice(PEOPLE), rng.choice(VERBS), rng.choice(PLACES)
        sentences.append(f"{person} NP B-PER\n{verb} V O\na SP O\n{place} NP B-LOC\n. F O\n")
    (tmp_path / "conll2002_es").mkdir()
    (tmp_path / "conll2002_es" / "esp.train.first300").write_text("\n".join(sentences))
    return tmp_path


@pytest.fixture
def gpsl_data(tmp_path: Path) -> Path:
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
