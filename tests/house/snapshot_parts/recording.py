"""What a run computed, as a small document of checksums, and the comparison of two such documents."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from gramline.pipeline.cli.main import run

TOLERANCE = 1e-8  # of probes, relative to the sum of absolute values: rounding of BLAS stays far below it
SINGLE = 1e-4  # of probes of what was computed in single precision, which a name says where the array does not
TIMED_KEY = re.compile(r"seconds|^created$|^versions$|^times_faster$|^cost$")  # keys that differ from run to run
UNORDERED = ("units",)  # lists whose order is by chance
# Words of texts and pages that do: times and speeds, sizes of pages (with times in them), and the order of units.
CHANGING = [
    (r"(?m)^cost {4,5}\S[^\n]*(?:\n {8,9}\S[^\n]*)*", "COST"),
    (r"\d[\d,.]* [kMGT]?B of memory", "SIZE of memory"),
    (r"\bseconds to (\w+) [\d.]+", r"seconds to \1 TIME"),
    (r"(?<![\w.])\d[\d,.]* (?:ms|s|min|h|minutes?|seconds?|hours?|days?)\b(?: ago)?", "TIME"),
    (r"\d[\d,.]* times (?:faster|slower)", "FACTOR times faster"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?|\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: UTC)?", "DATE"),
    (r"\.html \([\d.,]+ [kM]?B\)", ".html (SIZE)"),
    (r"tiles by milliseconds per tile .*? To repeat this", "TILES To repeat this"),
    (r"Versions program version .*", "VERSIONS"),
    (r"date [\d-]+, load [\d.]+ before and [\d.]+ at the end, cores \d+(?:, [\w-]+ [\w.]*\w)+", "MACHINE"),
    (r"(exact s paths s (?:[\d.]+ ){7})[\d.]+ [\d.]+", r"\1TIME TIME"),
]


@dataclass
class Record:
    """Sections of named values. The full text of what is kept as a checksum is written below `folder`, to compare."""

    folder: Path
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)

    def exact(self, section: str, name: str, values: Any) -> None:
        """An array whose every bit counts; probes tell on another machine whether the numbers are the same."""
        array = np.ascontiguousarray(values)
        checksum = hashlib.sha256(array.tobytes()).hexdigest()[:24]
        self._add(section, name, _probed(array) | {"sha256": checksum})

    def numbers(self, section: str, name: str, values: Any) -> None:
        """An array that may differ by rounding."""
        self._add(section, name, _probed(np.asarray(values)))

    def document(self, section: str, name: str, value: Any) -> None:
        """A JSON value without times and places, as a checksum."""
        written = json.dumps(self.cleaned(value), indent=1, sort_keys=True, ensure_ascii=False)
        self._write(section, name, written)
        self._add(section, name, hashlib.sha256(written.encode()).hexdigest()[:24])

    def text(self, section: str, name: str, text: str) -> None:
        """A text without times and places, as it is."""
        cleaned = self.cleaned(text)
        self._write(section, name, cleaned)
        self._add(section, name, cleaned)

    def cleaned(self, value: Any) -> Any:
        """Without what differs from run to run: times, versions, absolute paths; floats with ten digits."""
        if isinstance(value, dict):
            kept = {str(key): one for key, one in value.items() if not TIMED_KEY.search(str(key))}
            return {key: self.cleaned(sorted(one, key=str) if key in UNORDERED else one) for key, one in kept.items()}
        if isinstance(value, (list, tuple)):
            return [self.cleaned(one) for one in value]
        if isinstance(value, (float, np.floating)):
            return float(f"{value:.10g}")
        if isinstance(value, str):
            text = value.replace(str(self.folder), "OUT")
            for pattern, word in CHANGING:
                text = re.sub(pattern, word, text)
            return text
        return value

    def _add(self, section: str, name: str, value: Any) -> None:
        values = self.sections.setdefault(section, {})
        if name in values:
            raise ValueError(f"{section}: {name} is recorded twice")
        values[name] = value

    def _write(self, section: str, name: str, text: str) -> None:
        target = self.folder / "records" / section
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{re.sub(r'[^A-Za-z0-9.=_-]+', '_', name)[:150]}.txt").write_text(text, "utf-8")


def _probed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Shape and a few weighted sums: they tell arrays apart, and differ by little where the arrays do."""
    flat = np.asarray(array, np.float64).ravel()
    finite = np.where(np.isfinite(flat), flat, 0.0)
    steps = np.arange(1, len(flat) + 1)
    sums = [float(np.abs(finite).sum()), *(float(finite @ np.cos(steps * angle)) for angle in (0.7, 1.9))]
    shape = "x".join(map(str, array.shape))
    odd = int(len(flat) - np.isfinite(flat).sum())
    return {
        "array": f"{array.dtype} {shape}" + (f" {odd} not finite" if odd else ""),
        "probes": [float(f"{one:.12g}") for one in sums],
    }


# ---- the command line


@dataclass(frozen=True)
class Answer:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


def gramline(line: str) -> Answer:
    """Run one command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(shlex.split(line))
    return Answer(code, out.getvalue(), err.getvalue())


def succeed(line: str) -> str:
    """What a command wrote, which must have done well."""
    answer = gramline(line)
    if answer.code:
        raise RuntimeError(f"gramline {line}: exit code {answer.code}\n{answer.out}{answer.err}")
    return answer.out


# ---- pages


class _VisibleText(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.extend(data.split())


def visible_text(page: str) -> str:
    """The words of an HTML page, one space between them."""
    parser = _VisibleText()
    parser.feed(page)
    return " ".join(parser.words)


# ---- comparison


def differences(
    recorded: dict[str, Any], found: dict[str, Any], *, other_machine: bool = False, is_whole: bool = True
) -> list[str]:
    """One line per value that is missing (from a whole record), new or another.

    With `other_machine`, the last bits of arrays do not count.
    """
    lines = []
    for section in found:
        before, now = recorded.get(section, {}), found[section]
        lines += [f"{section}: missing: {name}" for name in before if is_whole and name not in now]
        lines += [f"{section}: new: {name}" for name in now if name not in before]
        for name in before:
            if name in now and (reason := _difference(name, before[name], now[name], other_machine)):
                lines.append(f"{section}: changed: {name}: {reason}")
    return lines


def written(sections: dict[str, Any]) -> str:
    """The document with one value a line."""
    parts = []
    for section, values in sections.items():
        lines = [f"{_dumped(name)}: {_dumped(values[name])}" for name in sorted(values)]
        parts.append(f"{_dumped(section)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _difference(name: str, before: Any, now: Any, other_machine: bool) -> str | None:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return None if before == now else f"\n    was {before}\n    is  {now}"
    if before["array"] != now["array"]:
        return f"was {before['array']}, is {now['array']}"
    tolerance = SINGLE if "float32" in before["array"] or " single" in name else TOLERANCE
    size = before["probes"][0] + 1e-300
    error = max(abs(a - b) for a, b in zip(before["probes"], now["probes"], strict=True)) / size
    if error > tolerance:
        return f"numbers differ by {error:.1e} of their sum"
    if not other_machine and before.get("sha256") != now.get("sha256"):
        return f"bits differ (numbers by {error:.1e} of their sum)"
    return None
