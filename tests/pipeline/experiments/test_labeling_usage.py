from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.experiments import labeling_usage
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment


def test_the_tree_kernel_finds_the_distant_verb() -> None:
    accuracies, differences = find_experiment("labeling-usage").run(Run(Path("nowhere"), quick=True, seed=1))
    scores = {row[1]: row for row in accuracies.rows}
    assert list(scores) == ["HM perceptron", "sequence", "gappy sequence", "tree"]
    for name, row in scores.items():
        assert row[7:] == labeling_usage.PRINTED.get(str(name), labeling_usage.NOT_PRINTED)
    tree, sequence = scores["tree"], scores["sequence"]
    assert isinstance(tree[4], float)
    assert isinstance(sequence[4], float)
    assert tree[4] > sequence[4]
    assert differences.rows[0][4] == pytest.approx(tree[4] - sequence[4])


def test_treebanks_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labeling_usage, "SALESLOG_SENTENCES", 10)
    monkeypatch.setattr(labeling_usage, "WEIGHTS", (2.0,))
    table = find_experiment("labeling-usage").run(Run(tmp_path))[0]
    assert {row[0] for row in table.rows} == {"saleslog"}
    assert sum("is not in the data folder: left out" in note for note in table.notes) == 2
