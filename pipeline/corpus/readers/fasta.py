"""FASTA files to a corpus of letters: labels from a second FASTA file, from a line below each sequence, or none.

A record is `>id description`, then its letters in one or more lines. In the three-line format the second line below the
name holds one label per letter. A label is one letter as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.choices import LowerCase, UnusualLetters
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.notes import Note, label_notes, repeated_ids
from gramline.pipeline.corpus.readers.columns import ColumnTable
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.textfile import excerpt, located, read_lines
from gramline.pipeline.errors import CorpusError

UNUSUAL = frozenset("XBZUOJ-.*")  # residues that are unknown, ambiguous, rare or missing
UNKNOWN = "X"


@dataclass(frozen=True)
class LetterRules:
    """What becomes of small letters and of X, B, Z, U, O, J, -, . and *."""

    lower_case: LowerCase = "keep"
    unusual_letters: UnusualLetters = "keep"

    def apply(self, letters: Sequence[str]) -> tuple[list[str], list[int]]:
        """The letters as they are read, and the place of each among the given ones."""
        kept, places = list[str](), list[int]()
        for place, given in enumerate(letters):
            letter = given
            if letter.islower() and self.lower_case != "keep":
                letter = letter.upper() if self.lower_case == "upper" else UNKNOWN
            if letter.upper() in UNUSUAL and self.unusual_letters != "keep":
                if self.unusual_letters == "drop":
                    continue
                letter = UNKNOWN
            kept.append(letter)
            places.append(place)
        return kept, places

    def options(self) -> dict[str, Any]:
        """What differs from reading letters as they are."""
        return {name: value for name, value in vars(self).items() if value != "keep"}


@dataclass
class Entry:
    """One record: its name, the line of the name, and the lines below it."""

    name: str
    line: int
    rows: list[str] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)


def read_fasta(
    path: str | Path,
    *,
    label_file: str | Path | None = None,
    label_lines: bool = False,
    features: str = "token",
    window: int | None = None,
    lower_case: LowerCase = "keep",
    unusual_letters: UnusualLetters = "keep",
    missing_label: str | None = None,
    labels: Iterable[str] | None = None,
) -> Corpus:
    """Sequences of letters of a FASTA file (plain or gzip).

    Parameters
    ----------
    path : the file.
    label_file : a FASTA file with one label per letter under the same names.
    label_lines : the three-line format: name, letters, labels.
    features, window : as for `read_conll`; a letter is a word.
    lower_case : "keep", "upper", or "unknown" for X.
    unusual_letters : of X, B, Z, U, O, J, -, . and *: "keep", "drop" with their labels, or "unknown" for X.
    missing_label : this label means that there is none.
    labels : the label names in the order that breaks ties.

    >>> from pathlib import Path
    >>> _ = Path("train.fasta").write_text(">a helix\\nMKV\\nHHC\\n>b\\nAV\\nCC\\n")
    >>> corpus = read_fasta("train.fasta", label_lines=True)
    >>> corpus.ids, corpus.tokens[0], corpus.labels[0]
    (['a', 'b'], ['M', 'K', 'V'], ['H', 'H', 'C'])
    """
    if label_lines and label_file is not None:
        raise CorpusError("labels come from a label file or from lines of their own", advice="give only one of the two")
    entries = list(_entries(path))
    if not entries:
        raise CorpusError(f"{path} has no sequences", advice="expected >name and its letters below")
    given = [_sequence(entry, path, label_lines) for entry in entries]
    labeled: list[str | None] = [below for _, below in given]
    notes: list[Note] = []
    if label_file is not None:
        labeled, notes = _from_label_file(entries, [letters for letters, _ in given], label_file, path)
    elif not label_lines and all(_is_labeled(entry) for entry in entries):
        advice = "if the second one holds labels, give --label-lines"
        notes = [
            Note("label lines", "every record has two lines of the same length, read as letters", advice, str(path))
        ]
    rules = LetterRules(lower_case, unusual_letters)
    X, y = list[list[str]](), list[list[str | None] | None]()
    for entry, (letters, _), marks in zip(entries, given, labeled, strict=True):
        kept, places = rules.apply(letters)
        if not kept:
            problem = f"no letter of {excerpt(entry.name)} is left"
            raise CorpusError(problem, advice="leave the record out", path=str(path), line=entry.line)
        X.append(kept)
        named = None if marks is None else [None if marks[k] == missing_label else marks[k] for k in places]
        y.append(named)
    has_labels = any(row is not None for row in y)
    table = ColumnTable(offsets_from_lengths([len(row) for row in X]), ([letter for row in X for letter in row],))
    options: dict[str, Any] = rules.options() | {"label_lines": label_lines, "missing_label": missing_label}
    recipe = Recipe.of("fasta", "sequences", features, window, **options)
    columns = observe(table, features, window)
    ids, lines = [entry.name for entry in entries], [entry.line for entry in entries]
    try:
        corpus = Corpus.assembled("sequences", table.starts, columns, y if has_labels else None, labels=labels)
    except CorpusError as error:
        raise located(error, path, lines) from None
    notes += [*_letter_notes(X, path), *repeated_ids(ids, path, lines), *label_notes(corpus.label_counts(), path)]
    return corpus.with_column("id", ids).described(recipe, notes)


def has_label_lines(path: str | Path) -> bool:
    """Whether every record of a file has two lines of the same length."""
    return all(_is_labeled(entry) for entry in _entries(path))


def _is_labeled(entry: Entry) -> bool:
    return len(entry.rows) == 2 and len(entry.rows[0]) == len(entry.rows[1])


def _entries(path: str | Path) -> Iterator[Entry]:
    current: Entry | None = None
    for number, raw in enumerate(read_lines(path), start=1):
        line = raw.strip(" \t")
        if not line or line.startswith(";"):
            continue
        if line.startswith(">"):
            if current is not None:
                yield current
            current = Entry((line[1:].split() or [str(number)])[0], number)
        elif current is None:
            problem = f"letters before the first name: {excerpt(line)}"
            raise CorpusError(problem, advice="begin with >name", path=str(path), line=number)
        else:
            current.rows.append(line)
            current.row_lines.append(number)
    if current is not None:
        yield current


def _sequence(entry: Entry, path: str | Path, label_lines: bool) -> tuple[str, str | None]:
    """The letters of a record, and its labels in the three-line format."""
    if not entry.rows:
        raise CorpusError(
            f"{excerpt(entry.name)} has no letters", advice="leave it out", path=str(path), line=entry.line
        )
    rows = entry.rows[:1] if label_lines else entry.rows
    for row, line in zip(rows, entry.row_lines, strict=False):
        odd = next((letter for letter in row if not (letter.isalpha() or letter in UNUSUAL)), None)
        if odd is not None:
            problem = f"a sequence is made of letters, got {odd!r}"
            advice = "give --label-lines if this line holds labels" if len(entry.rows) == 2 else "remove it"
            raise CorpusError(problem, advice=advice, path=str(path), line=line)
    if not label_lines:
        return "".join(rows), None
    if len(entry.rows) != 2:
        problem = f"{excerpt(entry.name)} has {len(entry.rows)} lines, where one of letters and one of labels belong"
        raise CorpusError(problem, advice="write both in one line each", path=str(path), line=entry.line)
    letters, marks = entry.rows
    if len(letters) != len(marks):
        problem = f"{len(marks)} labels for {len(letters)} letters"
        raise CorpusError(problem, advice="give one label per letter", path=str(path), line=entry.row_lines[1])
    return letters, marks


def _from_label_file(
    entries: Sequence[Entry], sequences: Sequence[str], label_file: str | Path, path: str | Path
) -> tuple[list[str | None], list[Note]]:
    """The labels of every record by its name."""
    known: dict[str, tuple[str, int]] = {}
    for entry in _entries(label_file):
        if entry.name in known:
            problem = f"the labels of {excerpt(entry.name)} are in line {known[entry.name][1]} already"
            raise CorpusError(problem, advice="give each name once", path=str(label_file), line=entry.line)
        known[entry.name] = ("".join(entry.rows), entry.line)
    labeled = list[str | None]()
    for entry, letters in zip(entries, sequences, strict=True):
        if entry.name not in known:
            problem = f"{label_file} has no labels of {excerpt(entry.name)}"
            raise CorpusError(problem, advice="give them there", path=str(path), line=entry.line)
        marks, line = known[entry.name]
        if len(marks) != len(letters):
            problem = f"{len(marks)} labels for the {len(letters)} letters of {excerpt(entry.name)}"
            raise CorpusError(problem, advice="give one label per letter", path=str(label_file), line=line)
        labeled.append(marks)
    unused = sorted(known.keys() - {entry.name for entry in entries})
    problem = f"{len(unused)} of its names are not in {path}, such as {unused[0]!r}" if unused else ""
    return labeled, [Note("unused labels", problem, path=str(label_file))] if unused else []


def _letter_notes(X: Sequence[Sequence[str]], path: str | Path) -> Iterator[Note]:
    counts = Counter(letter for row in X for letter in row)
    lower = sum(number for letter, number in counts.items() if letter.islower())
    if lower and any(letter.isupper() for letter in counts):
        problem = f"{lower:,} small letters are letters of their own"
        yield Note("lower case", problem, "--lower-case upper or unknown reads them otherwise", str(path))
    unusual = {letter: number for letter, number in sorted(counts.items()) if letter.upper() in UNUSUAL - {UNKNOWN}}
    if unusual:
        listed = ", ".join(f"{letter} {number:,}" for letter, number in unusual.items())
        advice = "--unusual-letters drop or unknown reads them otherwise"
        yield Note("unusual letters", f"unusual letters are kept ({listed})", advice, str(path))
