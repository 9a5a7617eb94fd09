"""Built-in feature sets over columns (the first column is the word), as binary feature names such as `w[-1]=the`.

`token`: the word itself. `words` (S1): the word and every further column. `spelling` (S2): the word, its lower case,
prefixes and suffixes, capitalisation, digits, hyphen and further columns, here and for the neighbours in a window.
Attributes are worked out once per distinct word and gathered, so the cost hardly depends on the number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.packing import Features, Ints, Offsets
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.pipeline.corpus.arrow import dictionary_array, lists
from gramline.pipeline.corpus.flat import NameCodes, ranked
from gramline.pipeline.corpus.readers.columns import ColumnTable, encode, shifted
from gramline.pipeline.corpus.tokens import canonical_rows
from gramline.pipeline.errors import CorpusError

Attributes = Callable[[str], list[str]]  # a word -> its attributes, each "name=value" or a bare "name"

AFFIX_LENGTH = 4
FARTHEST = 1000  # neighbours on either side


def words(word: str) -> list[str]:
    """S1: the word alone."""
    return [f"w={word}"]


def spelling(word: str) -> list[str]:
    """S2: everything a word's letters say."""
    lower = word.lower()
    attributes = [f"w={word}", f"lower={lower}", f"shape={shape(word)}"]
    for length in range(1, min(AFFIX_LENGTH, len(word)) + 1):
        attributes += [f"prefix{length}={lower[:length]}", f"suffix{length}={lower[-length:]}"]
    if word[:1].isupper():
        attributes.append("capital")
        if word.isupper() and len(word) > 1:
            attributes.append("capitals")
    if any(letter.isupper() for letter in word[1:]) and not word.isupper():
        attributes.append("inner-capital")
    if any(letter.isdigit() for letter in word):
        attributes.append("digits" if word.isdigit() else "digit")
    if "-" in word:
        attributes.append("hyphen")
    return attributes


def shape(word: str) -> str:
    """The word with runs of capitals, small letters and digits written as A, a and 0: 'McRae-2' is 'AaAa-0'."""
    marks = ["A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in word]
    return "".join(mark for mark, before in zip(marks, ["", *marks], strict=False) if mark != before)


FEATURE_SETS: dict[str, tuple[Attributes | None, int]] = {  # attributes of a word, default window
    "token": (None, 0),
    "words": (words, 0),
    "spelling": (spelling, 1),
}


def window_of(features: str, window: int | None) -> int:
    """The neighbours on either side of a feature set: those given, or its own."""
    if not isinstance(features, str) or features not in FEATURE_SETS:
        advice = f"choose from {', '.join(FEATURE_SETS)}"
        raise CorpusError(f"there is no feature set {features!r}", advice=advice)
    attributes, default_window = FEATURE_SETS[features]
    reach = default_window if window is None else window
    if not isinstance(reach, int) or reach < 0:
        raise CorpusError(f"the window of a feature set is 0 or more neighbours, got {window!r}")
    if reach > FARTHEST:
        raise CorpusError(f"the window of a feature set is at most {FARTHEST} neighbours, got {window}")
    return reach if attributes else 0  # the word alone has no neighbours


def observe(table: ColumnTable, features: str, window: int | None = None) -> dict[str, Any]:
    """The corpus columns of a feature set: `tokens` with the words and, but for `token`, `features`."""
    reach, attributes = window_of(features, window), FEATURE_SETS[features][0]
    text = encode(table.columns[0])
    columns: dict[str, Any] = {"tokens": lists(table.starts, dictionary_array(text.names, text.codes))}
    if attributes is None:
        return columns
    named = [("w", attributes)] + [(column_name(k), None) for k in range(1, len(table.columns))]
    parts = [_column_features(table, k, name, function, reach) for k, (name, function) in enumerate(named)]
    columns["features"] = feature_column(table.starts, *_side_by_side(parts))
    return columns


def feature_column(starts: Offsets, rows: Features, names: Sequence[str]) -> pa.Array[Any]:
    """The Arrow column of binary features whose codes index `names`."""
    used, codes = ranked(names, rows.indices)
    offsets, codes, _ = canonical_rows(np.diff(rows.indptr), codes, None, len(used))
    return lists(starts, lists(offsets, dictionary_array(used, codes)))


def column_name(number: int) -> str:
    return "pos" if number == 1 else f"column{number}"


def _column_features(
    table: ColumnTable, number: int, name: str, attributes: Attributes | None, reach: int
) -> tuple[Features, list[str]]:
    """One column at every offset of the window: rows of codes into names like 'suffix2[1]=ng'."""
    column = encode(table.columns[number])
    codes = NameCodes()
    indptr, flat = [0], list[int]()
    for value in column.names:
        flat.extend(codes[item] for item in (attributes(value) if attributes else [f"{name}={value}"]))
        indptr.append(len(flat))
    for _ in range(2 * max(1, reach)):  # beyond either end of the sentence, at whatever distance
        flat.append(codes[f"{name}-edge"])
        indptr.append(len(flat))
    of_value = Features(np.array(indptr, np.int64), np.array(flat, np.int32), None)
    bare = list(codes)
    parts = []
    for offset in range(-reach, reach + 1):
        here = shifted(column.codes, table.starts, offset, outside=len(column.names))
        parts.append((of_value.take(here), [placed(item, offset) for item in bare]))
    return _side_by_side(parts)


def placed(item: str, offset: int) -> str:
    name, equals, value = item.partition("=")
    return f"{name}[{offset}]{equals}{value}"


def _side_by_side(parts: Sequence[tuple[Features, list[str]]]) -> tuple[Features, list[str]]:
    """Rows joined end to end, each part's codes shifted behind the names of the parts before it."""
    counts = [np.diff(rows.indptr) for rows, _ in parts]
    indptr = offsets_from_lengths(np.sum(counts, axis=0))
    indices: Ints = np.empty(int(indptr[-1]), np.int32)
    names: list[str] = []
    begin = indptr[:-1].copy()
    for (rows, part_names), count in zip(parts, counts, strict=True):
        indices[indices_of_ranges(begin, count)] = rows.indices + len(names)
        names += part_names
        begin += count
    return Features(indptr, indices, None), names
