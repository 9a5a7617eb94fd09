"""Records on a command line: `polynomial:degree=2,normalized=true` as the small dictionary of a record.

`linear:normalized=true + 0.5 * polynomial:degree=2` is a sum, `substitution:blosum62` a record with its main parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gramline.kernels.catalogue import EVERYTHING, find
from gramline.kernels.parameters import Record, plain_value
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import system_reason
from gramline.pipeline.settings_file import Duration, Size

NUMBER = r"[-+0-9.][-+0-9.eE]*"
FACTOR = re.compile(rf"\s*{NUMBER}\s*\*")  # of something that is added
# A plus is one before the name of a record; neither that of 1e+5 nor that of file=a+b.json.
PLUS = re.compile(rf"\s*\+(?=(?:\s*{NUMBER}\s*\*)?\s*[A-Za-z][-\w]*\s*(?:[:+]|$))")
ReadObject = Callable[[str, str], dict[str, Any]]


def in_bytes(_context: click.Context, option: click.Parameter, size: Any) -> Any:
    """The callback of an option that takes a size such as 2GiB."""
    return None if size is None else plain_value(option.opts[0], Size(), size, InputError)


def in_seconds(_context: click.Context, option: click.Parameter, time: Any) -> Any:
    """The callback of an option that takes a time such as 3h."""
    return None if time is None else plain_value(option.opts[0], Duration(), time, InputError)


def parse_sum(text: str, what: str, folder: Path = Path(), read: ReadObject | None = None) -> dict[str, Any]:
    """`A + B` or `A + 0.5 * B` as the record of a sum, from left to right; a text without + is one record."""
    terms = PLUS.split(text)
    total = parse_record(terms[0], what, folder, read)
    for term in terms[1:]:
        factor, _, kernel = term.rpartition("*") if FACTOR.match(term) else ("", "", term)
        total = {"name": "sum", "first": total, "second": parse_record(kernel, what, folder, read)}
        if factor:
            total["weight"] = parse_setting(factor.strip())
    return total


def parse_record(text: str, what: str, folder: Path = Path(), read: ReadObject | None = None) -> dict[str, Any]:
    """`name:key=value,...` as {"name": name, key: value, ...}; `file=x.json` takes the keys of a JSON object.

    A word without = is the parameter that the record names as its `shorthand`. A JSON object is a record, too.
    A relative file is looked for in `folder`, and read by `read`, `read_object` unless somebody wants to know of it.
    """
    text = text.strip()
    if text.startswith("{"):
        return _json_record(text, what)
    name, _, rest = text.partition(":")
    name = name.strip()
    if FACTOR.match(text):
        advice = "write it second: A + 0.5 * B; or take a larger c"
        raise InputError(f"{what} {text!r} begins with a factor, and only what is added has one", advice=advice)
    if not name:
        raise InputError(f"{what} {text!r} has no name; write it like polynomial:degree=2,normalized=true")
    record: dict[str, Any] = {"name": name}
    for part in split_at_commas(rest) if rest else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and (shorthand := _shorthand(name)):
            key, equals, value = shorthand, "=", key
        key = key.replace("-", "_")
        if not equals or not key:
            raise InputError(f"{what} {text!r}: {part!r} is not of the form key=value")
        if key in record:
            raise InputError(f"{what} {text!r} has {key!r} twice", advice="leave one of them out")
        record |= (read or read_object)(str(folder / value), what) if key == "file" else {key: parse_setting(value)}
    return record


def _shorthand(name: str) -> str:
    """The parameter of a record that a word alone means; nothing where there is none, or no such record."""
    return find(name, Record).shorthand if name in EVERYTHING else ""


def _json_record(text: str, what: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} {text!r} begins like a JSON object but is none: {error}") from None
    if not isinstance(record.get("name"), str):
        advice = 'write it like {"name": "polynomial", "degree": 2}'
        raise InputError(f'{what} {text!r} has no "name"', advice=advice)
    return record


def split_at_commas(text: str) -> list[str]:
    """The parts between commas; those inside of brackets belong to a list or an object."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts if depth <= 0 else text.split(",")  # a bracket that is never closed is a part of a word


def parse_setting(text: str) -> Any:
    """A number, true, false, null or a list such as [-1, 1] as JSON reads them; anything else is the text itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict | str) else value


def parse_settings(text: str) -> list[Any]:
    """Values to try, separated by commas; those inside of brackets belong to a list."""
    return [parse_setting(part) for part in split_at_commas(text)]


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
