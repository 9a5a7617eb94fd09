"""The reranking experiment end to end on a small treebank of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment

SUBJECTS = ["I", "you", "we"]
VERBS = ["saw", "met", "heard"]
NOUNS = ["man", "dog", "friend", "park", "telescope"]


def sentence(rng: np.random.Generator) -> str:
    """Attachment is to the noun after 'met', to the verb otherwise: a fragment that holds both words knows it."""
    verb, first, second = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    phrase = f"(PP (P with) (NP (D a) (N {second})))"
    noun = f"(NP (D the) (N {first}))"
    objects = f"(NP {noun} {phrase})" if verb == "met" else f"{noun} {phrase}"
    return f"(TOP (S (NP (PRP {rng.choice(SUBJECTS)})) (VP (V {verb}) {objects})))"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    (tmp_path / "atis").mkdir()
    for name, n in (("train", 40), ("dev", 10)):
        (tmp_path / "atis" / f"{name}.trees").write_text("\n".join(sentence(rng) for _ in range(n)) + "\n")
    return tmp_path


def test_reranking_finds_what_the_grammar_cannot_know(data: Path) -> None:
    (table,) = find_experiment("tree-reranking").run(Run(data, quick=True))
    scores = {row[:2]: row[2] for row in table.rows}
    grammar, oracle = scores["PCFG", ""], scores["oracle of 5-best", ""]
    assert isinstance(grammar, float)
    assert isinstance(oracle, float)
    reranked = [score for (method, _), score in scores.items() if method.startswith("decay")]
    assert grammar < oracle == 1.0
    assert all(isinstance(score, float) and grammar < score <= oracle for score in reranked)
