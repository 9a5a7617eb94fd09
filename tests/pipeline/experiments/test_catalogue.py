"""The frame around experiments: the catalogue, missing files and cells of tables."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pytest

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import ResultTable, Run, cell_text
from gramline.pipeline.experiments.catalogue import EXPERIMENTS, find_experiment


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train\.trees is not there; --data must name the folder"):
        find_experiment("tree-reranking").run(Run(tmp_path))


def test_an_unknown_experiment_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'tree-reranking'"):
        find_experiment("tree-rerankin")


def test_every_experiment_can_be_loaded() -> None:
    assert all(callable(resolve_name(experiment.home)) for experiment in EXPERIMENTS.values())


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        ("word", "word"),
        (12345, "12,345"),
        (0.12345, "0.1235"),
        (-1.23456, "-1.235"),
        (88.4, "88.40"),
        (123.45, "123.5"),
        (12345.6, "12,346"),
        (0.00001234, "1e-05"),
        (0.0, "0.0000"),
    ],
)
def test_cells_have_four_digits(cell: float | str | None, text: str) -> None:
    assert cell_text(cell) == text


def test_columns_without_numbers_hold_words() -> None:
    table = ResultTable("T", ("name", "value", "empty", "both"), (("a", 1.5, None, 1), ("b", None, None, "many")))
    assert table.text_columns() == [0, 2, 3]


def test_a_quick_run_takes_the_first_structures(tmp_path: Path) -> None:
    corpus = Corpus.from_sequences([["a"], ["b"], ["c"]])
    assert len(Run(tmp_path).part(corpus, 2)) == 3
    assert Run(tmp_path, quick=True).part(corpus, 2).tokens == [["a"], ["b"]]
    assert len(Run(tmp_path, quick=True).part(corpus, 9)) == 3
