"""Paths on a command line: every answer from one look, and never an exception of the system's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.errors import InputError
from gramline.pipeline.files import (
    LONGEST,
    require_file,
    require_folder_or_nothing,
    require_new_file,
    require_no_folder,
    require_path,
    require_writable_folder,
)

CHECKS: dict[str, Callable[[str], Any]] = {
    "file": lambda path: require_file(path, "a corpus"),
    "path": lambda path: require_path(path, "a corpus"),
    "no folder": require_no_folder,
    "new file": require_new_file,
    "folder or nothing": require_folder_or_nothing,
    "writable folder": require_writable_folder,
}
MISSING = "does not exist; give the path of a corpus"
REFUSED = {
    "nothing": {"file": MISSING, "path": MISSING},
    "loop": {"file": MISSING, "path": MISSING},
    "dangling": {"file": MISSING, "path": MISSING},
    "notes.txt/below": {
        "file": MISSING,
        "path": MISSING,
        "new file": "cannot be written: there is no folder",
        "writable folder": "cannot be a folder: ",
    },
    "nowhere/new": {"file": MISSING, "path": MISSING, "new file": "cannot be written: there is no folder"},
    "notes.txt": dict.fromkeys(("folder or nothing", "writable folder"), "is a file; give the path of a folder"),
    "link": dict.fromkeys(("folder or nothing", "writable folder"), "is a file; give the path of a folder"),
    "folder": {
        "file": "is not a corpus but a folder; give the path of a file",
        "no folder": "is a folder; give the path of a file",
        "new file": "is a folder; give the path of a file",
    },
    "x" * 300: dict.fromkeys(CHECKS, "cannot be looked for: file name too long; give another path"),
}


@pytest.fixture
def places(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    return tmp_path


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", REFUSED, ids=lambda name: name[:20])
def test_what_is_there_decides(places: Path, name: str, check: str) -> None:
    path = str(places / name)
    if check not in REFUSED[name]:
        CHECKS[check](path)
        return
    with pytest.raises(InputError, match=f"^{re.escape(path[:LONGEST])} {re.escape(REFUSED[name][check])}"):
        CHECKS[check](path)


@pytest.mark.parametrize("check", CHECKS)
def test_the_system_is_asked_once_about_a_path(places: Path, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    look = Path.stat

    def counted(self: Path, **more: Any) -> Any:
        asked.append(self)
        return look(self, **more)

    monkeypatch.setattr(Path, "stat", counted)
    path = places / ("folder" if check in ("folder or nothing", "writable folder") else "notes.txt")
    CHECKS[check](str(path))
    assert asked == ([path, places] if check == "new file" else [path])


@pytest.mark.parametrize("check", ["no folder", "new file", "folder or nothing", "writable folder"])
def test_urls_are_for_what_is_read(check: str) -> None:
    with pytest.raises(InputError, match="is a url, but this is kept on this machine"):
        CHECKS[check]("s3://bucket/name")
    for reading in ("file", "path"):
        CHECKS[reading](f"s3://bucket/{'x' * 300}")
    with pytest.raises(InputError, match="does not exist"):
        CHECKS["file"]("a\0b")


@pytest.mark.parametrize("check", [require_new_file, require_writable_folder])
def test_a_folder_that_takes_no_file_is_refused_and_nothing_is_left(check: Callable[[str], None], places: Path) -> None:
    with pytest.raises(InputError, match=r"^/proc/new cannot be written: "):
        check("/proc/new")
    before = sorted(places.iterdir())
    check(str(places / "new"))
    assert sorted(places.iterdir()) == before
