"""The line of every table and key of a TOML file, for error messages.

TOML readers drop line numbers. This one reads only headers and keys at the beginning of a line; any other key gets the
line of its table.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_HEADER = re.compile(r"(\[\[?)([^\[\]#]+)\]\]?\s*(?:#.*)?")  # of a stripped line: linear in its length
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=""")
_LONG = re.compile(r"\"\"\"|'''")


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
