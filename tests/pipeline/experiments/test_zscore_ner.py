"""The Z-score on named entities end to end on small data of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.crossval import crf
from gramline.pipeline.crossval.crf import MISSING_NOTE, has_crf
from gramline.pipeline.experiments import zscore_ner
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment


def test_named_entities(spanish_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    first, second = find_experiment("zscore-ner").run(Run(spanish_data, quick=True, say=told.append))
    assert (first.title[:10], second.title[:13]) == ("S1 (words,", "S2 (spelling,")
    assert f"S2: {next(iter(zscore_ner.METHODS))}" in told
    for set_name, table, papers in (
        ("S1", first, (11.66, 11.07, 20.99, 12.01)),
        ("S2", second, (8.01, 7.89, 13.78, 8.29)),
    ):
        rows = {row[0]: row[1:] for row in table.rows}
        assert rows["most frequent label"][0] == pytest.approx(40)  # two names in five words
        for name in ("Z-score, both ridges", "Z-score, Hamming", "kernel Z-score, Polynomial(2)"):
            assert rows[name][0] == pytest.approx(0, abs=3)
        printed = tuple(errors[set_name] for errors in zscore_ner.PRINTED_ALONE.values())
        expected = (papers if has_crf() else papers[:3]) + printed
        assert tuple(row[3] for row in table.rows if row[3] is not None) == expected
    monkeypatch.setattr(crf, "pycrfsuite", None)
    monkeypatch.setattr(
        zscore_ner, "METHODS", {name: m for name, m in zscore_ner.METHODS.items() if name[:3] in ("mos", "CRF")}
    )
    without = zscore_ner.zscore_ner(Run(spanish_data, quick=True))
    assert [[row[0] for row in table.rows] for table in without] == [
        ["most frequent label", *zscore_ner.PRINTED_ALONE]
    ] * 2
    assert MISSING_NOTE in without[0].notes
