"""Callbacks of options that name files or folders to write; what cannot be written is refused before the work."""

from __future__ import annotations

from typing import Any

import click

from gramline.pipeline.files import require_folder_or_nothing, require_new_file


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
