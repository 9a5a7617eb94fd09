"""Rows of other libraries as lists: data frames by their columns, and rows of tokens with numbered tags.

Neither pandas nor `datasets` is needed: a frame gives its columns by name, a row is a mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from gramline.kernels.errors import did_you_mean
from gramline.learners.estimator import is_listed
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError

IGNORED = -100  # the tag that token classifiers leave out of their loss

TokenLists = Sequence[Sequence[Any]]
TagLists = Sequence[Sequence[Any] | None]


@dataclass(frozen=True)
class FrameColumns:
    """The names of the columns that are read: tokens, labels, sentence ids and further columns of a token."""

    tokens: str
    labels: str | None = None
    sentence: str | None = None
    further: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sentences:
    """Tokens (words, rows of columns or feature sets) and tags, one list per structure; what is absent is None."""

    tokens: TokenLists
    tags: TagLists | None = None
    ids: list[str] | None = None


def from_frame(frame: Any, names: FrameColumns) -> Sentences:
    """A frame with one row per token and a column of sentence ids, or one row per sentence and columns of lists."""
    wanted = [names.tokens, *names.further]
    columns = [_column(frame, name) for name in wanted]
    tags = None if names.labels is None else _column(frame, names.labels)
    sentence = None if names.sentence is None else _column(frame, names.sentence)
    others = zip((*names.further, names.labels, names.sentence), (*columns[1:], tags, sentence), strict=True)
    for name, column in others:
        if column is not None and len(column) != len(columns[0]):
            problem = f"the column {name!r} has {len(column)} rows, but {names.tokens!r} has {len(columns[0])}"
            raise CorpusError(problem, advice="give columns of one length")
    if names.sentence is not None and sentence is not None:
        starts, ids = _sentence_starts(sentence, names.sentence)
        flat = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        ranges = list(zip(starts, [*starts[1:], len(flat)], strict=True))
        cut = None if tags is None else [_present(tags[first:last]) for first, last in ranges]
        return Sentences([flat[first:last] for first, last in ranges], cut, ids)
    cells = [
        [_cell(cell, name, row) for row, cell in enumerate(column)]
        for name, column in zip(wanted, columns, strict=True)
    ]
    tokens = (
        cells[0]
        if len(cells) == 1
        else [_rows(parts, wanted, row) for row, parts in enumerate(zip(*cells, strict=True))]
    )
    if tags is None or names.labels is None:
        return Sentences(tokens)
    label = names.labels
    given = [None if _is_missing(cell) else _present(_cell(cell, label, row)) for row, cell in enumerate(tags)]
    return Sentences(tokens, given)


def from_mappings(rows: Iterable[Any], tokens: str, labels: str | None) -> Sentences:
    """Rows that are mappings with a list of tokens each, and a list of tags."""
    if isinstance(rows, Mapping) or not is_listed(rows):
        raise CorpusError(f"rows must be a list of mappings, got {type(rows).__name__}")
    for key, name in (("tokens", tokens), ("labels", labels)):
        if not isinstance(name, str | None):
            raise CorpusError(f"{key} must be the key of a row, got {name!r}", key=key)
    words, tags = list[Sequence[Any]](), list[Sequence[Any] | None]()
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            problem = f"a row is a mapping with the key {tokens!r}, got {type(row).__name__}"
            raise CorpusError(problem, structure=number)
        for name in (tokens, *([] if labels is None else [labels])):
            if name not in row:
                raise CorpusError(
                    f"the row has no {name!r}", advice=did_you_mean(name, map(str, row)), structure=number
                )
        words.append(listed(row[tokens], number, "tokens"))
        if labels is not None:
            tags.append(None if row[labels] is None else _present(listed(row[labels], number, "tags")))
    return Sentences(words, None if labels is None else tags)


def tag_names(rows: Any, labels: str | None) -> list[str] | None:
    """The names of numbered tags that a data set of rows declares itself; None where it does not."""
    declared = getattr(rows, "features", None)
    if labels is None or not isinstance(declared, Mapping) or labels not in declared:
        return None
    names = getattr(getattr(declared[labels], "feature", declared[labels]), "names", None)
    return None if names is None else [str(name) for name in names]


def named_tags(tags: TagLists | None, names: Sequence[str] | None) -> TagLists | None:
    """Tags as labels: numbers by their names, -100 as no label; strings stay."""
    if tags is None:
        return None
    return [
        None if row is None else [_named(tag, names, k, p) for p, tag in enumerate(row)] for k, row in enumerate(tags)
    ]


def _named(tag: Any, names: Sequence[str] | None, structure: int, position: int) -> str | None:
    if tag is None or isinstance(tag, str):
        return tag
    try:
        number = int(tag) if isinstance(tag, float) and tag.is_integer() else index(tag)  # frames with gaps hold floats
    except TypeError:
        problem = f"a tag is a string or a whole number, got {tag!r}"
        raise CorpusError(problem, structure=structure, position=position) from None
    if number == IGNORED:
        return None
    if names is None:
        advice = "give label_names, such as data.features['ner_tags'].feature.names"
        raise CorpusError(f"the tag {number} has no name", advice=advice, structure=structure, position=position)
    if not 0 <= number < len(names):
        problem = f"the tag {number} is not among the {len(names)} label names"
        raise CorpusError(problem, advice="count them from 0", structure=structure, position=position)
    return names[number]


def _column(frame: Any, name: str) -> list[Any]:
    """A column by its name; whatever has `tolist` gives Python values."""
    if not (hasattr(frame, "columns") or isinstance(frame, Mapping)):
        advice = "use Corpus.from_sequences for lists of tokens, Corpus.from_rows for rows"
        raise CorpusError(f"expected a data frame with named columns, got {type(frame).__name__}", advice=advice)
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", frame)  # an Arrow table has both
    known = [str(column) for column in names]
    if name not in known:
        raise CorpusError(f"the frame has no column {name!r}", advice=did_you_mean(name, known))
    column = frame[name]
    values = column.tolist() if hasattr(column, "tolist") else column
    if not is_listed(values):
        raise CorpusError(f"the column {name!r} must be a list, got {values!r}")
    return list(values)


def _cell(cell: Any, name: str, row: int) -> Sequence[Any]:
    """The list in a cell; a frame of one row per token has words there."""
    if isinstance(cell, str):
        problem = f"the column {name!r} holds the string {cell!r} where a list is expected"
        advice = "name the column of sentence ids (sentence=) if a row is one token"
        raise CorpusError(problem, advice=advice, structure=row)
    return listed(cell.tolist() if hasattr(cell, "tolist") else cell, row, f"the column {name!r}")


def _rows(parts: Sequence[Sequence[Any]], names: Sequence[str], structure: int) -> list[tuple[Any, ...]]:
    """Columns of one sentence side by side."""
    for name, part in zip(names, parts, strict=True):
        if len(part) != len(parts[0]):
            problem = f"the column {name!r} has {len(part)} entries for {len(parts[0])} tokens"
            raise CorpusError(problem, structure=structure)
    return list(zip(*parts, strict=True))


def _sentence_starts(ids: Sequence[Any], name: str) -> tuple[list[int], list[str]]:
    """Where sentences begin, and their ids; an empty cell continues the sentence above it."""
    starts, seen = list[int](), dict[str, int]()
    current: str | None = None
    for row, cell in enumerate(ids):
        text = current if _is_missing(cell) else str(cell)
        if text is None:
            raise CorpusError(f"row 0 has no {name!r}", advice="begin with the id of a sentence")
        if text == current:
            continue
        if text in seen:
            problem = f"the sentence {text!r} begins in row {seen[text]} and comes back in row {row}"
            raise CorpusError(problem, advice=f"sort the frame by {name!r}, or give sentences distinct ids")
        seen[text] = row
        starts.append(row)
        current = text
    return starts, list(seen)


def _is_missing(cell: Any) -> bool:
    """None and NaN."""
    return cell is None or (isinstance(cell, float) and cell != cell)


def _present(tags: Sequence[Any]) -> list[Any]:
    return [None if _is_missing(tag) else tag for tag in tags]
