"""What an experiment is: a name, what it needs from the data folder, and a function that gives tables.

Notes below a table say where the protocol differs from the paper; the paper's numbers have columns of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError

Cell = str | int | float | None
Row = tuple[Cell, ...]
Say = Callable[[str], None]
TIME = re.compile(r"\b(s|seconds)\b")  # in the name of a column


@dataclass(frozen=True)
class ResultTable:
    """Rows of one table of results; `notes` are what a reader must know beside the numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    picture: str | None = None  # an SVG of the same numbers

    def to_dict(self) -> dict[str, Any]:
        """Everything but the picture."""
        return {key: value for key, value in asdict(self).items() if key != "picture"}

    def texts(self) -> list[list[str]]:
        """Every cell as people read it."""
        return [[cell_text(cell) for cell in row] for row in self.rows]

    def text_columns(self) -> list[int]:
        """Columns that hold words, or nothing at all; the others hold numbers."""
        kinds = [{type(row[column]) for row in self.rows} - {type(None)} for column in range(len(self.columns))]
        return [column for column, kind in enumerate(kinds) if str in kind or not kind]

    def without_times(self) -> ResultTable | None:
        """The table without what a clock measured; None where that is all."""
        if "in seconds" in self.title:
            return None
        kept = [k for k, column in enumerate(self.columns) if not TIME.search(column)]
        rows = tuple(tuple(row[k] for k in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[k] for k in kept), rows=rows)

    @classmethod
    def from_dict(cls, content: dict[str, Any], picture: str | None = None) -> ResultTable:
        """The inverse of `to_dict`."""
        rows = tuple(tuple(row) for row in content["rows"])
        return cls(content["title"], tuple(content["columns"]), rows, tuple(content["notes"]), picture)


@dataclass(frozen=True)
class Run:
    """What an experiment is given: the data folder, how much of it to use, a seed, and where to report progress."""

    data: Path
    quick: bool = False  # a small version, for a first look and for tests
    seed: int = 0
    say: Say = field(default=lambda _line: None)
    scratch: Path = Path()  # for large files that are removed at the end
    loads: list[float] = field(default_factory=list)  # of the machine before each part, of whoever keeps parts

    def file(self, name: str) -> Path:
        """A file of the data folder."""
        path = self.data / name
        if not path.is_file():
            raise InputError(f"{path} is not there; --data must name the folder that holds {name}")
        return path

    def part(self, corpus: Corpus, n_quick: int) -> Corpus:
        """The corpus, or its first structures in a quick run."""
        return corpus.select(range(min(n_quick, len(corpus)))) if self.quick else corpus


@dataclass(frozen=True)
class Experiment:
    """One entry of the catalogue; loaded when it is run."""

    name: str
    title: str
    home: str  # "module:function" of a function Run -> sequence of tables
    needs: tuple[str, ...] = ()  # files of the data folder
    by_name_only: bool = False  # too large to run with all the others

    def missing(self, folder: Path | None) -> list[str]:
        """Files that it needs and the folder does not hold."""
        return [name for name in self.needs if folder is None or not (folder / name).is_file()]

    def run(self, run: Run) -> Sequence[ResultTable]:
        for name in self.needs:
            run.file(name)
        function: Callable[[Run], Sequence[ResultTable]] = resolve_name(self.home)
        return function(run)


def cell_text(cell: Cell) -> str:
    """A cell for people: four digits, nothing for a value that is not there."""
    if cell is None or cell != cell:
        return ""
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else str(cell)
    size = abs(cell)
    if 0 < size < 5e-5:
        return f"{cell:.0e}"
    return f"{cell:,.{4 if size < 1 else 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0}f}"
