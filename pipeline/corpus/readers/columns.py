"""Columns of strings over all positions of a corpus: what column files hold and feature sets read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gramline.kernels.packing import Ints, Offsets
from gramline.pipeline.corpus.flat import NameCodes, Names, ranked
from gramline.pipeline.corpus.notes import Note
from gramline.pipeline.corpus.textfile import read_lines
from gramline.pipeline.errors import CorpusError

DOCUMENT_MARK = "-DOCSTART-"
COMMENT = "# "
SKIP_COMMENTS = "leave comments out (--skip-comments)"
SKIP_MARKS = "leave document marks out (--skip-document-marks)"


@dataclass(frozen=True)
class ColumnTable:
    """Sentences in columns; `columns[k][p]` is column k at flat position p."""

    starts: Offsets  # shape (n_structures + 1,)
    columns: tuple[Sequence[str], ...]
    lines: tuple[int, ...] = ()  # the line each sentence begins on
    source: str = "columns"
    notes: tuple[Note, ...] = ()  # on lines that were perhaps not meant as tokens

    def place(self, number: int) -> int:
        """The number of a column from 0, where a negative one counts from the end."""
        if not -len(self.columns) <= number < len(self.columns):
            raise CorpusError(f"{self.source} has {len(self.columns)} columns; there is no column {number}")
        return number % len(self.columns)

    def column(self, number: int) -> Sequence[str]:
        """Column by number, negative from the end."""
        return self.columns[self.place(number)]

    def sentences(self, number: int) -> list[list[str]]:
        """A column as one list per sentence."""
        column = self.column(number)
        return [list(column[first:last]) for first, last in zip(self.starts[:-1], self.starts[1:], strict=True)]


def encode(column: Sequence[str]) -> Names:
    """Distinct strings of a column, sorted, and the code of each position."""
    codes = NameCodes()
    flat = np.fromiter(map(codes.__getitem__, column), np.int32, len(column))
    names, ranks = ranked(list(codes), flat)
    return Names(names, ranks)


def shifted(codes: Ints, starts: Offsets, offset: int, outside: int) -> Ints:
    """codes[p + offset] within each structure; beyond its ends a code for every distance on either side.

    k places before the structure: outside + k - 1; k places behind it: outside + |offset| + k - 1.
    """
    positions = np.arange(len(codes), dtype=np.int64)
    lengths = np.diff(starts)
    first = np.repeat(starts[:-1], lengths)
    last = np.repeat(starts[1:], lengths)
    target = positions + offset
    before = first - target  # 1, 2, ... where the target lies before the structure
    after = target - last + 1  # 1, 2, ... where it lies behind it
    inside = codes[np.clip(target, 0, len(codes) - 1)]
    result = np.where(before > 0, outside + before - 1, np.where(after > 0, outside + abs(offset) + after - 1, inside))
    return result.astype(np.int32)


def read_columns(path: str | Path, *, skip_document_marks: bool = False, skip_comments: bool = False) -> ColumnTable:
    """A file with one token per line and blank lines between sentences; columns split at ASCII space and tab only."""
    flat: list[list[str]] = []
    starts, lines = [0], []
    width, width_line = 0, 0
    marks, comments = list[int](), list[int]()  # lines that look so and were read as tokens
    text = read_lines(path)
    for number, line in enumerate(text, start=1):
        if skip_comments and line.startswith(COMMENT):
            continue
        fields = [field for field in line.replace("\t", " ").split(" ") if field]
        if not fields or (skip_document_marks and fields[0] == DOCUMENT_MARK):
            if len(flat) > starts[-1]:
                starts.append(len(flat))
            continue
        if not width:
            width, width_line = len(fields), number
        if len(fields) != width:
            raise _uneven((text[width_line - 1], width_line, width), (line, number, len(fields))).at(path=str(path))
        if len(flat) == starts[-1]:
            lines.append(number)
            if line.startswith(COMMENT):
                comments.append(number)
        if fields[0] == DOCUMENT_MARK:
            marks.append(number)
        flat.append(fields)
    if len(flat) > starts[-1]:
        starts.append(len(flat))
    if not flat:
        advice = "expected one token per line, blank lines between sentences"
        raise CorpusError(f"{path} has no tokens", advice=advice)
    columns = tuple(tuple(column) for column in zip(*flat, strict=True))
    ordinary = {fields[-1] for fields in flat if fields[0] != COMMENT.strip()}
    comments = [number for number in comments if text[number - 1].split()[-1] not in ordinary]  # else # is a word
    notes = [
        Note(kind, f"{_lines(found)} {looks} and {_read(found)}", advice)
        for kind, looks, found, advice in (
            ("document marks", f"{_begins(marks)} with {DOCUMENT_MARK}", marks, SKIP_MARKS),
            ("comments", f"{_begins(comments)} a sentence with #", comments, SKIP_COMMENTS),
        )
        if found
    ]
    located = tuple(replace(note, path=str(path)) for note in notes)
    return ColumnTable(np.array(starts, np.int64), columns, tuple(lines), str(path), located)


def _lines(numbers: Sequence[int]) -> str:
    return f"line {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} lines (the first is line {numbers[0]})"


def _begins(numbers: Sequence[int]) -> str:
    return "begins" if len(numbers) == 1 else "begin"


def _read(numbers: Sequence[int]) -> str:
    return "was read as a token" if len(numbers) == 1 else "were read as tokens"


def _uneven(first: tuple[str, int, int], here: tuple[str, int, int]) -> CorpusError:
    """The error for two lines (text, number, columns) that have not the same columns, told of the odd one."""
    odd, other = (first, here) if first[0].startswith("#") and not here[0].startswith("#") else (here, first)
    line, number, width = odd
    problem = f"{width} columns, but line {other[1]} has {other[2]}"
    advice = "every token needs the same"
    if line.startswith("#"):
        advice = SKIP_COMMENTS
    elif line.startswith(DOCUMENT_MARK):
        advice = SKIP_MARKS
    return CorpusError(problem, advice=advice, line=number)
