"""Paths on a command line: what is not there, or of another kind, is refused before anything reads it."""

from __future__ import annotations

from pathlib import Path

from gramline.pipeline.errors import InputError


def require_file(path: str, what: str) -> None:
    """Refuse a path where no file is; `what` names the file that is wanted."""
    if Path(path).is_dir():
        raise InputError(f"{path} is not {what} but a folder; give the path of a file")
    require_path(path, what)


def require_path(path: str, what: str) -> None:
    """Refuse a path that does not exist; `what` names what is wanted there. Other places are asked when opened."""
    if "://" not in path and not Path(path).exists():
        raise InputError(f"{path} does not exist; give the path of {what}")
