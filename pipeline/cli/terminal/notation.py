"""Records on a command line: `polynomial:degree=2,normalized=true` as the small dictionary of a record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gramline.kernels.parameters import plain_value
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import system_reason
from gramline.pipeline.settings_file import Size


def in_bytes(_context: click.Context, option: click.Parameter, size: Any) -> Any:
    """The callback of an option that takes a size such as 2GiB."""
    return None if size is None else plain_value(option.opts[0], Size(), size, InputError)


def parse_record(
    text: str, what: str, folder: Path = Path(), read: Callable[[str, str], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """`name:key=value,...` as {"name": name, key: value, ...}; `file=x.json` takes the keys of a JSON object.

    A relative file is looked for in `folder`, and read by `read`, `read_object` unless somebody wants to know of it.
    """
    name, _, rest = text.partition(":")
    if not name:
        raise InputError(f"{what} {text!r} has no name; write it like polynomial:degree=2,normalized=true")
    record: dict[str, Any] = {"name": name}
    for part in rest.split(",") if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{what} {text!r}: {part!r} is not of the form key=value")
        if key == "file":
            record |= (read or read_object)(str(folder / value), what)
        else:
            record[key.strip().replace("-", "_")] = parse_setting(value.strip())
    return record


def parse_setting(text: str) -> Any:
    """A number, true, false, null or a list such as [-1, 1] as JSON reads them; anything else is the text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict | str) else value


def parse_settings(text: str) -> list[Any]:
    """Values to try, separated by commas; those inside of brackets belong to a list."""
    return [parse_setting(part) for part in re.split(r",(?![^\[]*\])", text)]


def read_matrix(path: str, what: str) -> Any:
    """A matrix in a JSON file: a list of rows, or an object with a "matrix"."""
    content = read_json(path, what)
    if isinstance(content, dict):
        content = content.get("matrix")
    if not isinstance(content, list):
        raise InputError(f'{path}: {what} must be a list of rows, such as [[1, 0.5], [0.5, 1]], or {{"matrix": ...}}')
    return content


def read_json(path: str, what: str) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {what} cannot be read: {system_reason(error)}") from None
    except ValueError as error:
        raise InputError(f"{path}: {what} is not valid JSON: {error}") from None


def read_object(path: str, what: str) -> dict[str, Any]:
    """The parameters of a record in a JSON file."""
    content = read_json(path, what)
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: {what} must be a JSON object with the parameters by name, "
            'such as {"symbols": ["A", "C"], "matrix": [[4, 0], [0, 9]]}'
        )
    return content
