"""Corpora, stores, models, runs and caches that earlier versions wrote are read by this one, and say the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from snapshot_parts import golden
from snapshot_parts.recording import differences

WRITTEN = sorted(path for path in (Path(__file__).parents[1] / "golden").glob("written-*"))


@pytest.fixture(scope="module", params=WRITTEN, ids=lambda folder: folder.name)
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: looking at a run or a cache leaves traces."""
    return Path(shutil.copytree(request.param, tmp_path_factory.mktemp("written") / "copy"))


def test_there_are_some() -> None:
    assert WRITTEN
    for folder in WRITTEN:
        assert (folder / "PROVENANCE.md").is_file()


@pytest.mark.parametrize("name", golden.LOOKS)
def test_what_was_written_is_read(copied: Path, name: str) -> None:
    expected = json.loads((copied / "expected.json").read_text("utf-8"))
    found = golden.look(copied, [name]).sections
    assert expected[name]
    assert differences(expected, found) == []
