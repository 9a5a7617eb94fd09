"""Whole corpora: every method trains and labels, and the table has its row. The figures are made by the command."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Self

import pytest

from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.crf import DECODINGS, has_crf
from gramline.pipeline.experiments import full_corpora as module
from gramline.pipeline.experiments.base import Run


class HerePool:
    """Runs in this process what the experiment runs in one of its own."""

    def __init__(self, *_: Any) -> None:
        self._value: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: Any, *arguments: Any) -> Self:
        self._value = function(*arguments)
        return self

    def result(self) -> Any:
        return self._value


def write_columns(path: Path, seed: int) -> None:
    corpus = generate_saleslog(8, seed=seed)
    lines = [
        f"{word} NN {'O' if label == 'O' else 'B-' + str(label)}"
        for words, labels in zip(corpus.tokens, corpus.labels, strict=True)
        for word, label in [*zip(words, labels, strict=True), ("", "")]
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join("" if line.startswith(" ") else line for line in lines))


def test_every_method_has_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, data in enumerate(module.SETS):
        for number, name in enumerate((data.train, *data.tests.values())):
            write_columns(tmp_path / name, 10 * seed + number)
    monkeypatch.setattr(module, "ProcessPoolExecutor", HerePool)
    tables = module.full_corpora(Run(tmp_path, quick=True, scratch=tmp_path))
    assert [table.title.partition(":")[0] for table in tables] == [data.title for data in module.SETS]
    for table, data in zip(tables, module.SETS, strict=True):
        names = [str(row[0]) for row in table.rows]
        assert names[:5] == list(module.METHODS)[:5]
        for field in ("kernel CRF, features", *((f"{module.CRF}, c2 1",) if has_crf() else ())):
            assert {f"{field}, {decoding}" for decoding in DECODINGS} < set(names)
        for row in table.rows:
            named = dict(zip(table.columns, row, strict=True))
            assert all(0 <= float(named[f"{part} error"]) <= 100 for part in data.tests)  # type: ignore[arg-type]
            assert named["memory, MB"] > 0  # type: ignore[operator]
        values = {row[0]: row[-2] for row in table.rows}
        assert values["labeling perceptron, sequence kernel"] > 0  # type: ignore[operator]
        assert values["kernel Z-score, position kernel"] == 0  # by its features
