"""Paths on a command line: what is not there, or of another kind, is refused before anything reads or writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramline.pipeline.errors import InputError

LONGEST = 200  # letters of a path that is told because it is too long


def _seen(path: str) -> Path:
    """The path, when the system can look for it: a name that is too long, say, is refused here."""
    try:
        Path(path).exists()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path[:LONGEST]} cannot be looked for: {why}; give another path") from None
    return Path(path)


def require_file(path: str, what: str) -> None:
    """Refuse a path where no file is; `what` names the file that is wanted."""
    if _seen(path).is_dir():
        raise InputError(f"{path} is not {what} but a folder; give the path of a file")
    require_path(path, what)


def require_path(path: str, what: str) -> None:
    """Refuse a path that does not exist; `what` names what is wanted there. Other places are asked when opened."""
    if "://" not in path and not _seen(path).exists():
        raise InputError(f"{path} does not exist; give the path of {what}")


def require_no_folder(path: str) -> None:
    """Refuse a path that cannot be a file."""
    _require_local(path)
    if _seen(path).is_dir():
        raise InputError(f"{path} is a folder; give the path of a file")


def require_new_file(path: str) -> None:
    """Refuse a path that no file can be written to, before the work that would fill it."""
    require_no_folder(path)
    if not Path(path).parent.is_dir():
        raise InputError(
            f"{path} cannot be written: there is no folder {Path(path).parent}; make it, or write elsewhere"
        )


def require_folder_or_nothing(path: str) -> None:
    """Refuse a path that cannot be a folder."""
    _require_local(path)
    if _seen(path).exists() and not Path(path).is_dir():
        raise InputError(f"{path} is a file; give the path of a folder")


def _require_local(path: str) -> None:
    if "://" in path:
        raise InputError(f"{path} is a url, but this is kept on this machine; give a path without ://")


def new_file(_context: click.Context, _option: click.Parameter, path: Any) -> Any:
    """The callback of an option that names a file to write."""
    if path is not None:
        require_new_file(path)
    return path


def folder(_context: click.Context, _option: click.Parameter, path: Any) -> Any:
    """The callback of an option that names a folder to write to."""
    if path is not None:
        require_folder_or_nothing(path)
    return path
