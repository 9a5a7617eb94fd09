"""The house stays as docs/house.md draws it: its rooms, how many modules they have, and how long those are."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = (ROOT / "docs" / "house.md").read_text("utf-8")
PAGES = HOUSE + (ROOT / "CONTRIBUTING.md").read_text("utf-8")  # which says what to touch to add something
PACKAGES = ("kernels", "learners", "pipeline")
INSIDE = {"pipeline/corpus/readers", "pipeline/cli/terminal", "pipeline/cli/job_file"}  # told with their room
LONGEST, MEDIAN = 350, 150  # lines of a module


def modules() -> dict[Path, int]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT): len(path.read_text("utf-8").splitlines()) for path in files}


def test_every_room_is_in_the_table() -> None:
    rooms = {str(path.parent) for path in modules() if path.name == "__init__.py"}
    table = HOUSE.partition("## Rooms")[2].partition("Outside libraries")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE) for name in row.split("`")[1::2]}
    assert listed == rooms - INSIDE - {"pipeline"}


def test_modules_are_short() -> None:
    lengths = modules()
    assert len(lengths) > 200
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}
    assert median(lengths.values()) <= MEDIAN


@pytest.mark.parametrize(("package", "most"), [("pipeline", 12), ("learners", 14)])
def test_few_modules_lie_outside_of_rooms(package: str, most: int) -> None:
    assert len([path for path in modules() if path.parent == Path(package)]) <= most


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_]+/[a-z_/]+\.(?:pyi?|json))`", PAGES))))
def test_the_files_they_name_are_there(path: str) -> None:
    assert (ROOT / path).is_file()
