"""CRF++ feature templates over columns: `U05:%x[-1,0]/%x[0,0]` names one binary feature per position.

%x[row,col] reads column `col` at the position `row` away; before the sentence it reads `_B-1`, `_B-2`, ..., behind
it `_B+1`, `_B+2`, ... A line that begins with B asks for label bigrams: it is noted, and gives no feature.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from gramline.kernels.packing import Features, Ints, Offsets
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.arrow import dictionary_array, lists
from gramline.pipeline.corpus.flat import Names
from gramline.pipeline.corpus.readers.columns import ColumnTable, encode, shifted
from gramline.pipeline.corpus.readers.features import feature_column
from gramline.pipeline.corpus.textfile import excerpt, read_lines
from gramline.pipeline.errors import CorpusError

FARTHEST = 1000  # rows away; every one of them has names of its own beyond both ends of a sentence
_MACRO = re.compile(r"%x\[ *(-?\d+) *, *(\d+) *\]")


@dataclass(frozen=True)
class Pattern:
    """One U line: literal pieces around macros, literals[0] macro[0] literals[1] ... literals[-1]."""

    literals: tuple[str, ...]
    macros: tuple[tuple[int, int], ...]  # (row, column)


@dataclass(frozen=True)
class FeatureTemplate:
    """The U lines of a CRF++ template, and whether it asks for label bigrams.

    Attributes
    ----------
    patterns : one per U line.
    bigram : whether there is a B line.

    >>> template = FeatureTemplate.parse(["U0:%x[-1,0]/%x[0,0]", "B"])
    >>> template.patterns[0].macros, template.bigram
    (((-1, 0), (0, 0)), True)
    """

    patterns: tuple[Pattern, ...]
    bigram: bool = False

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """A template file."""
        return cls.parse(read_lines(path), str(path))

    @classmethod
    def parse(cls, lines: list[str], source: str = "template") -> Self:
        """The lines of a template; comments begin with #."""
        patterns, bigram = [], False
        for number, raw in enumerate(lines, start=1):
            line = raw.strip(" \t")
            if not line or line.startswith("#"):
                continue
            if line[0] == "B":
                bigram = True
            elif line[0] == "U":
                rest = _MACRO.sub("", line)
                if "%" in rest:
                    problem = f"cannot read the macro in {excerpt(line)}"
                    raise CorpusError(problem, advice="write %x[row,column]", path=source, line=number)
                pieces = _MACRO.split(line)
                macros = tuple(zip(map(_whole, pieces[1::3]), map(_whole, pieces[2::3]), strict=True))
                if any(abs(row) > FARTHEST or column > FARTHEST for row, column in macros):
                    problem = f"{excerpt(line)} reaches farther than {FARTHEST} rows or columns"
                    raise CorpusError(problem, path=source, line=number)
                patterns.append(Pattern(tuple(pieces[::3]), macros))
            else:
                problem = f"a template line begins with U, B or #, got {excerpt(line)}"
                raise CorpusError(problem, path=source, line=number)
        if not patterns:
            raise CorpusError("the template has no U line, so it gives no features", path=source)
        return cls(tuple(patterns), bigram)

    @property
    def text(self) -> str:
        """The template as lines that `parse` reads back to an equal one; comments are gone."""
        lines = []
        for pattern in self.patterns:
            macros = [f"%x[{row},{column}]" for row, column in pattern.macros]
            lines.append("".join(part for pair in zip(pattern.literals, [*macros, ""], strict=True) for part in pair))
        return "\n".join([*lines, *(["B"] if self.bigram else [])])

    def expand(self, table: ColumnTable) -> tuple[Features, list[str], Offsets]:
        """All features of all positions: codes per position, the name of each code, and how often each occurs."""
        encoded = [encode(column) for column in table.columns]
        names: list[str] = []
        codes = np.empty((int(table.starts[-1]), len(self.patterns)), np.int32)
        for k, pattern in enumerate(self.patterns):
            for row, column in pattern.macros:
                if column >= len(encoded):
                    raise CorpusError(
                        f"the template reads %x[{row},{column}], but {table.source} has {len(encoded)} columns besides "
                        "the label, counted from the word"
                    )
            expanded, distinct = _expand_one(pattern, encoded, table.starts)
            codes[:, k] = expanded + len(names)
            names += distinct
        if len(set(names)) < len(names):  # two U lines may spell the same feature: it is one
            names, codes = _merged(names, codes)
        counts = np.bincount(codes.ravel(), minlength=len(names)).astype(np.int64)
        indptr = np.arange(len(codes) + 1, dtype=np.int64) * len(self.patterns)
        return Features(indptr, codes.ravel(), None), names, counts

    def observe(
        self, table: ColumnTable, *, minimum_count: int = 1, keep: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Corpus columns with the features that are in `keep`, or else occur `minimum_count` times in `table`."""
        rows, names, counts = self.expand(table)
        if keep is None:
            wanted = counts >= minimum_count
        else:
            kept = set(keep)
            wanted = np.fromiter((name in kept for name in names), bool, len(names))
        chosen = wanted[rows.indices]
        lengths = np.add.reduceat(chosen.astype(np.int64), rows.indptr[:-1])
        indptr = offsets_from_lengths(lengths)
        text = encode(table.columns[0])
        return {
            "tokens": lists(table.starts, dictionary_array(text.names, text.codes)),
            "features": feature_column(table.starts, Features(indptr, rows.indices[chosen], None), names),
        }


def _whole(digits: str) -> int:
    """A number as written; one that nobody means is just as far beyond every limit."""
    return int(digits) if len(digits) < 10 else FARTHEST + 1


def _expand_one(pattern: Pattern, columns: list[Names], starts: Offsets) -> tuple[Ints, list[str]]:
    """The code of the expanded pattern at every position, and the distinct expansions."""
    n_positions = int(starts[-1])
    keys = np.zeros(n_positions, np.int64)
    strings = [pattern.literals[0]]
    for (row, number), literal in zip(pattern.macros, pattern.literals[1:], strict=True):
        column = columns[number]
        edges = [f"_B-{k}" for k in range(1, abs(row) + 1)] + [f"_B+{k}" for k in range(1, abs(row) + 1)]
        values = [*column.names, *edges]
        here = shifted(column.codes, starts, row, outside=len(column.names))
        distinct, keys = np.unique(keys * len(values) + here, return_inverse=True)
        strings = [f"{strings[key // len(values)]}{values[key % len(values)]}{literal}" for key in distinct.tolist()]
    return keys.astype(np.int32), strings


def _merged(names: list[str], codes: Ints) -> tuple[list[str], Ints]:
    code = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return list(code), np.array([code[name] for name in names], np.int32)[codes]
