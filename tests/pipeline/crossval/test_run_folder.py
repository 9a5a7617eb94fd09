"""Run folders: units come back as they were written, a damaged or busy folder is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gram_samples import corpus

from gramline.pipeline.cost import Cost, meter
from gramline.pipeline.crossval.job import JobData
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.events import TileReport


def data() -> JobData:
    found = corpus(4)
    return JobData(found.fingerprint, found.ids, found.tokens, found.labels, "sample", found)


def test_outcomes_come_back_as_they_were_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    first = HeldOut([["B"], ["O", "B"]], [[0.9], [0.5, 0.25]], {"bound": [-3.0, -2.0]})
    second = HeldOut([["O"]], None, {"mistakes": [4.0]})
    with folder.begun(data(), {}):
        folder.write_unit({"a": first}, {"seconds": 1.0})
        folder.write_unit({"b": second}, {})
    found = folder.outcomes()
    for digest, expected in (("a", first), ("b", second)):
        assert found[digest].predicted == expected.predicted
        assert found[digest].confidence == expected.confidence
        assert found[digest].traces == expected.traces
    assert folder.finished() == {"a", "b"}
    assert sorted(unit.get("seconds", 0) for unit in folder.unit_details()) == [0, 1.0]


def test_a_writer_that_was_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.begun(data(), {}):
        (folder.path / "units" / ".x.parquet.1234.partial").write_bytes(b"PAR1")
        assert folder.finished() == set()


def test_tile_timings_of_several_sessions_add_up(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.begun(data(), {}):
        folder.write_tiles("g", [TileReport(0, 0, 0.1, 0.2, 0.3, 80, "h:1")])
        folder.write_tiles("g", [])
        folder.write_tiles("g", [TileReport(0, 1, 0.1, 0.2, 0.3, 80, "h:2")])
    assert {(row["i"], row["j"], row["worker"]) for row in folder.tiles()} == {(0, 0, "h:1"), (0, 1, "h:2")}


def _spend_and_stop(folder: RunFolder) -> None:
    with folder.spending():
        meter.add(tiles_read=3)
        raise KeyboardInterrupt


def test_what_sessions_cost_adds_up_also_of_one_that_was_stopped(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.begun(data(), {}):
        assert folder.cost() is None
        with folder.spending():
            meter.add(tiles_read=2)
        with pytest.raises(KeyboardInterrupt):
            _spend_and_stop(folder)
    cost = folder.cost()
    assert cost is not None
    assert cost.tiles_read == 5
    assert cost.wall_seconds > 0
    for damaged in ("{", "[]", '{"tiles_read": -1}'):
        (folder.path / "cost.json").write_text(damaged)
        with pytest.raises(StoreError, match=r"cost\.json does not tell a cost .*; remove it"):
            folder.cost()
    (folder.path / "cost.json").unlink()
    with folder.begun(data(), {}), folder.spending():
        pass
    assert isinstance(folder.cost(), Cost)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    folder = RunFolder(tmp_path / "run")
    with folder.begun(data(), {}):
        for name, begun, existing in (
            ("other", "something else than a run", "is not a run"),
            ("run", rf"belongs to a job that is running \(process {os.getpid()} on ", "has no results yet"),
        ):
            with pytest.raises(InputError, match=begun), RunFolder(tmp_path / name).begun(data(), {}):
                pytest.fail("a folder was taken that belongs to somebody else")
            with pytest.raises(InputError, match=existing):
                RunFolder.existing(tmp_path / name)
    (folder.path / "results.json").write_text("{")
    with pytest.raises(StoreError, match=r"results\.json cannot be read"):
        RunFolder.existing(tmp_path / "run").read_json("results.json")
