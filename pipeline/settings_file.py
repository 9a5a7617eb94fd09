"""Settings files (TOML) as typed records: one loader for job files and clusters, whose errors name file, line and key.

A table is a dataclass whose fields declare what they take (`gramline.kernels.parameters`), which of them are paths,
relative to the file, too.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from gramline.kernels.errors import LocatedError
from gramline.kernels.parameters import checked, parameters_of, refuse_unknown, require_all
from gramline.kernels.value_kinds import Kind, Refused, Words
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import system_reason
from gramline.pipeline.storage.object_store import refuse_secrets

_HEADER = re.compile(r"(\[\[?)([^\[\]#]+)\]\]?\s*(?:#.*)?")  # of a stripped line: linear in its length
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=""")
_LONG = re.compile(r"\"\"\"|'''")
_SIZE = re.compile(r"(\d{1,16}(?:\.\d{0,16})?|\.\d{1,16}) *(?:([kmgt])(i?))?b?", re.IGNORECASE)
_NUMBER = r"(\d{1,12}(?:\.\d{0,12})?)"
_DURATION = re.compile(
    rf"(?:{_NUMBER} *d)? *(?:{_NUMBER} *h)? *(?:{_NUMBER} *m(?:in)?)? *(?:{_NUMBER} *s?)?", re.IGNORECASE
)
T = TypeVar("T")
E = TypeVar("E", bound=LocatedError)


@dataclass(frozen=True)
class TomlLines:
    """Line numbers of one file, by (table, its number among tables of that name, key or "")."""

    numbers: dict[tuple[str, int, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> TomlLines:
        numbers: dict[tuple[str, int, str], int] = {}
        seen: Counter[str] = Counter()
        table, index, is_inside = "", 0, False
        for number, line in enumerate(text.splitlines(), start=1):
            was_inside = is_inside
            is_inside ^= len(_LONG.findall(line)) % 2 == 1
            if was_inside:
                continue
            if header := _HEADER.fullmatch(line.strip()):
                name = _bare(header[2])
                table, _, inner = name.partition(".")
                if header[1] == "[[" and not inner:
                    index, seen[table] = seen[table], seen[table] + 1
                else:
                    index = max(0, seen[table] - 1)
                numbers.setdefault((table, index, inner.partition(".")[0]), number)
                numbers.setdefault((table, index, ""), number)
            elif key := _KEY.match(line):
                name = _bare(key[1]).partition(".")[0]
                where = (table, index, name) if table else (name, 0, "")
                numbers.setdefault(where, number)
        return cls(numbers)

    def line(self, table: str, key: str = "", index: int = 0) -> int | None:
        """The line of a key, else that of its table, else None."""
        return self.numbers.get((table, index, key)) or self.numbers.get((table, index, ""))


def line_of(error: Exception, content: bytes) -> int:
    """The line that a reader of TOML complains about: as it says, or where the bytes or digits it cannot read are."""
    if isinstance(error, UnicodeDecodeError):
        return content.count(b"\n", 0, error.start) + 1
    if line := re.search(r"\(at line (\d+)", str(error)):
        return int(line[1])
    if "Exceeds the limit" in str(error) and (digits := re.search(rb"[0-9_]{4000,}", content)):
        return content.count(b"\n", 0, digits.start()) + 1
    if isinstance(error, RecursionError) and (nested := re.search(rb"(\[|\{[^\n{]{0,20}){100}", content)):
        return content.count(b"\n", 0, nested.start()) + 1
    return content.rstrip(b"\n").count(b"\n") + 1  # at the end of the document


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


class Located(Words):
    """A path, relative to the settings file that names it; or a url without secrets."""

    def located(self, key: str, value: str, folder: Path) -> str:
        """The value of `key` as it is used, from a settings file in `folder`."""
        if "://" not in value:
            return str(folder / Path(value).expanduser())
        try:
            refuse_secrets(value)
        except InputError as error:
            raise error.at(key=key) from None
        return value


class Size(Kind):
    """A number of bytes, also as 2GiB or 500 MB; kept as a number."""

    words = "a size such as 2GiB or 500MB"

    def plain(self, value: Any) -> int:
        parts = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if parts is not None:
            value = int(float(parts[1]) * (1024 if parts[3] else 1000) ** " kmgt".index((parts[2] or " ").lower()))
        if type(value) is not int or value <= 0:
            raise Refused
        return value

    @property
    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": r"^[0-9.]+ *([kmgtKMGT]i?)?[bB]?$"}
        return {"anyOf": [{"type": "integer", "minimum": 1}, text]}


class Duration(Kind):
    """A number of seconds, also as 90s, 45min, 3h or 1h30min; kept as a number."""

    words = "a time such as 90s, 45min or 3h"

    def plain(self, value: Any) -> float:
        parts = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
        if parts is not None:
            value = sum(
                float(part) * unit for part, unit in zip(parts.groups(), (86400, 3600, 60, 1), strict=True) if part
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise Refused
        return float(value)


class TextList(Kind):
    """A list of strings that are not empty, kept as a tuple."""

    words = "a list of strings"
    depth = 1

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def plain(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
            raise Refused
        if len(value) < self.least:
            raise Refused(f"must name at least {self.least}")
        return tuple(value)


FilePath = Annotated[str, Located(may_be_empty=False)]
ByteSize = Annotated[int, Size()]


@dataclass(frozen=True)
class SettingsFile:
    """The tables of a file as they were read, and where they are; an empty one where there is no file."""

    path: str = ""
    tables: Mapping[str, Any] = field(default_factory=dict)
    lines: TomlLines = field(default_factory=TomlLines)

    @classmethod
    def read(cls, path: str, what: str) -> SettingsFile:
        """`what` names the file in errors, such as "job file"."""
        content = b""
        try:
            content = Path(path).read_bytes()
            text = content.decode("utf-8").replace("\r\n", "\n")
            return cls(path, tomllib.loads(text), TomlLines.of(text))
        except OSError as error:
            why = system_reason(error)
            raise InputError(f"the {what} cannot be read: {why}", path=path) from None
        except UnicodeDecodeError as error:
            advice = f"give the path of a {what} (TOML)"
            raise InputError("not UTF-8 text", advice=advice, path=path, line=line_of(error, content)) from None
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the {what} is not valid TOML: {error}", path=path, line=line_of(error, content)
            ) from None

    @property
    def folder(self) -> Path:
        return Path(self.path).parent

    def require_tables(self, known: Collection[str], repeated: Collection[str] = ()) -> None:
        """Refuse tables that are not `known`, and values in their place; those of `repeated` may be lists of them."""
        for name, table in self.tables.items():
            tables = table if name in repeated and isinstance(table, list) and table else [table]
            try:
                refuse_unknown([name], known, InputError)
                if not all(isinstance(one, dict) for one in tables):
                    raise InputError(f"{name!r} must be a table", advice=f"write [{name}] above its settings")
            except InputError as error:
                raise error.at(path=self.path, line=self.lines.line(name)) from None

    def table(self, name: str, kind: type[T], folder: Path | None = None) -> T:
        """The table of that name as a record, every value checked and every path in `folder`, that of the file."""
        values = self.tables.get(name, {})
        known = parameters_of(kind)
        try:
            refuse_unknown(values, known, InputError)
            require_all(kind, values, InputError)
            plain = checked(kind, values, InputError)
            for key, value in plain.items():
                if isinstance(path := known[key].kind, Located):
                    plain[key] = path.located(key, value, self.folder if folder is None else folder)
            return kind(**plain)
        except InputError as error:
            raise self.locate(error, name, error.key) from None

    def locate(self, error: E, table: str, key: str | None = None, index: int = 0) -> E:
        """The same error with the line of a key, or of its table; one that knows its file already stays as it is."""
        if error.path is None and self.path:
            line = self.lines.line(table, (key or "").partition(".")[0], index)
            error.at(path=self.path, line=line, table=table, key=key)
        return error
