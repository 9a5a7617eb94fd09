"""Saved runs, and runs that are read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import ResultTable, Run
from gramline.pipeline.experiments.record import ExperimentRecord, command_line, load_record, load_records, save_record

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><title>p</title></svg>'
TABLE = ResultTable("T & U", ("name", "value"), (("a|b", 1.5), ("c", None)), ("a note",), PICTURE)
RECORD = ExperimentRecord("one", "The first", "gramline reproduce one", 1.26, {"cores": "2"}, (TABLE,))


def test_a_run_is_saved_and_read_again(tmp_path: Path) -> None:
    written = save_record(RECORD, tmp_path / "out")
    assert [path.name for path in written] == ["one-1.parquet", "one-1.svg", "one.json"]
    assert pq.read_table(written[0]).to_pylist() == [{"name": "a|b", "value": 1.5}, {"name": "c", "value": None}]
    assert load_record(tmp_path / "out", "one") == replace(RECORD, seconds=1.3)
    assert load_records(tmp_path / "out", ["none", "one"]) == [replace(RECORD, seconds=1.3)]
    save_record(replace(RECORD, tables=(replace(TABLE, picture=None),)), tmp_path / "out")
    assert not written[1].exists()


def test_a_number_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    path = save_record(RECORD, tmp_path)[-1]
    content = json.loads(path.read_text("utf-8"))
    content["tables"][0]["rows"][0][1] = 2.5
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match=r"one\.json was changed after it was written"):
        load_record(tmp_path, "one")
    save_record(RECORD, tmp_path)[1].write_text("<svg></svg>", "utf-8")
    with pytest.raises(InputError, match=r"one-1\.svg is not the picture that was written"):
        load_record(tmp_path, "one")


def test_columns_of_one_name_and_of_mixed_types_are_kept(tmp_path: Path) -> None:
    table = ResultTable("T", ("x", "dev.", "dev."), ((1, 2.0, "many"), ("no", 3.0, 4)))
    path = save_record(replace(RECORD, tables=(table,)), tmp_path)[0]
    read = pq.read_table(path)
    assert read.column_names == ["x", "dev.", "dev. 2"]
    assert read.column(0).to_pylist() == ["1", "no"]


def test_the_command_that_repeats_a_run() -> None:
    assert command_line("x", Run(Path("data"), seed=3)) == "gramline reproduce x --data data --seed 3"
    assert command_line("x", Run(Path(), quick=True)) == "gramline reproduce x --quick"


def test_times_are_shown_only_of_runs_that_were_alone() -> None:
    mixed = ResultTable("M", ("set", "error", "seconds of choosing", "s per fit"), (("a", 1.0, 2.0, 3.0),))
    clock = ResultTable("Time in seconds", ("set", "mean"), (("a", 2.0),))
    old = replace(RECORD, tables=(clock, mixed))
    assert {number: table.columns for number, table in old.published.items()} == {2: ("set", "error")}
    assert "left out" in old.published_line
    busy = replace(old, machine={"load": "0.9 before and 1.0 at the end"})
    assert busy.published == old.published
    assert replace(busy, tables=(TABLE,)).published_line == "load 0.9 before and 1.0 at the end."
    new = replace(old, machine={"load": "0.1 before and 1.0 at the end"})
    assert new.published == {1: clock, 2: mixed}
    assert new.published_line == new.machine_line == "Took 1 s; load 0.1 before and 1.0 at the end."
