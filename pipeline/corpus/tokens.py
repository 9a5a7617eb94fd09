"""What a user calls a token, as Arrow columns.

A token is a string (its single binary feature has the same name), a mapping from feature name to value, or an
iterable of feature names. A value is a number or a string; a list of names or a further mapping is spelled out as
crfsuite does: {"a": {"b": 2}} is the feature "a:b", {"tags": ["x", "y"]} the features "tags:x" and "tags:y".

Columns: `tokens` (text, null where there is none), `features` (names, null where the token itself is the feature),
`values` (only when some value is not 1). Rows of features are sorted by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.arrow import NONE, dictionary_array, lists, number_array
from gramline.pipeline.corpus.flat import NameCodes, ranked
from gramline.pipeline.corpus.textfile import excerpt
from gramline.pipeline.errors import CorpusError

NESTED = ":"  # between the names of nested features
DEEPEST = 20  # mappings in mappings


def listed(structure: Any, index: int, what: str) -> Sequence[Any]:
    """A structure's tokens or labels as a sequence; a bare string is refused since it would fall into characters."""
    if isinstance(structure, (list, tuple)):
        return structure
    if isinstance(structure, str):
        problem = f"{what} must be a list, got the string {structure!r}"
        advice = "give each its own entry"
        if what == "tokens":
            advice = "split it into words, or read every letter as a token (letters)"
        raise CorpusError(problem, advice=advice, structure=index)
    if isinstance(structure, (Mapping, Set)):
        problem = f"{what} must be a list, got a {type(structure).__name__} ({excerpt(repr(structure))})"
        advice = "a mapping or a set is one token" if what == "tokens" else "give them in the order of the positions"
        raise CorpusError(
            problem, advice=f"{advice}; put it into a list" if what == "tokens" else advice, structure=index
        )
    try:
        return list(structure)
    except TypeError:
        raise CorpusError(f"{what} must be a list, got {type(structure).__name__}", structure=index) from None


class TokenColumns:
    """Collects tokens structure by structure; `columns` gives the Arrow columns."""

    def __init__(self) -> None:
        self._starts = [0]
        self._texts = NameCodes()
        self._text_codes: list[int] = []
        self._counts: list[int] = []  # features per position, NONE where the token itself is the feature
        self._names = NameCodes()
        self._codes: list[Ints] = []  # feature codes, one array per structure
        self._values: list[Floats] = []  # feature values alike
        self._all_one = True

    def add(self, structure: Iterable[Any], texts: Sequence[str] | None = None) -> None:
        """One more structure; `texts` are the words behind tokens that are feature sets."""
        index = len(self._starts) - 1
        tokens = listed(structure, index, "tokens")
        if not tokens:
            raise CorpusError("no positions", advice="leave empty structures out", structure=index)
        names: list[str] = []
        values: dict[int, Any] = {}  # by place in `names`; the rest is 1
        for position, token in enumerate(tokens):
            if isinstance(token, str):
                self._text_codes.append(self._texts[token])
                self._counts.append(NONE)
                continue
            self._text_codes.append(NONE if texts is None else self._texts[texts[position]])
            before = len(names)
            if isinstance(token, Mapping):
                numbers = feature_values(token, index, position)
                names.extend(numbers)
                values.update((before + k, value) for k, value in enumerate(numbers.values()) if value != 1.0)
            else:
                names.extend(feature_names(token, index, position))
            self._counts.append(len(names) - before)
        self._starts.append(len(self._counts))
        self._codes.append(self._encoded(names))
        self._values.append(np.ones(len(names)))
        if values:
            self._all_one = False
            self._values[-1][list(values)] = list(values.values())

    def _encoded(self, names: list[str]) -> Ints:
        try:
            return np.fromiter(map(self._names.__getitem__, names), np.int32, len(names))
        except TypeError:  # not hashable
            odd = next(entry for entry, name in enumerate(names) if not isinstance(name, str))
            raise self._odd_name(len(self._starts) - 2, odd, names[odd]) from None

    def _odd_name(self, structure: int, entry: int, name: Any) -> CorpusError:
        counts = np.maximum(self._counts[self._starts[structure] : self._starts[structure + 1]], 0)
        position = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
        problem = f"the feature name must be a string, got {name!r}"
        return CorpusError(problem, structure=structure, position=position)

    def columns(self) -> tuple[Offsets, dict[str, pa.Array[Any]]]:
        """Positions per structure as offsets, and the columns by name."""
        starts = np.array(self._starts, np.int64)
        text_names, text_codes = ranked(list(self._texts), np.array(self._text_codes, np.int32))
        columns = {"tokens": lists(starts, dictionary_array(text_names, text_codes))}
        counts = np.array(self._counts, np.int64)
        missing = counts == NONE
        if missing.all():
            return starts, columns
        for name, code in self._names.items():
            if not isinstance(name, str):
                structure = next(k for k, codes in enumerate(self._codes) if (codes == code).any())
                raise self._odd_name(structure, int(np.argmax(self._codes[structure] == code)), name)
        names, codes = ranked(list(self._names), np.concatenate(self._codes))
        values = None if self._all_one else np.concatenate(self._values)
        inner, codes, values = canonical_rows(np.maximum(counts, 0), codes, values, len(names))
        columns["features"] = lists(starts, lists(inner, dictionary_array(names, codes), missing))
        if values is not None:
            columns["values"] = lists(starts, lists(inner, number_array(values), missing))
        return starts, columns


def feature_names(token: Any, index: int, position: int) -> Sequence[str]:
    """The feature names of a token that is a collection of them."""
    if isinstance(token, (list, tuple)):
        return token
    if isinstance(token, (bytes, bytearray)) or not isinstance(token, Iterable):
        raise CorpusError(
            "a token is a string, a mapping from feature name to value or a collection of feature names, "
            f"got {token!r}",
            structure=index,
            position=position,
        )
    return list(token)


def feature_values(token: Mapping[Any, Any], index: int, position: int) -> dict[str, float]:
    """The features of a mapping; {"pos": "NN"} is the binary feature "pos=NN"."""
    numbers: dict[str, float] = {}
    for name, value in token.items():
        if isinstance(value, (Mapping, list, tuple, Set)):
            for key, number in _nested(f"{name}{NESTED}", value, index, position, 1):
                if key in numbers and numbers[key] != number:  # a list may name a feature twice
                    raise CorpusError(f"feature {key!r} is given twice", structure=index, position=position)
                numbers[key] = number
            continue
        key, number = (f"{name}={value}", 1.0) if isinstance(value, str) else (name, value)
        if key in numbers:
            raise CorpusError(f"feature {key!r} is given twice", structure=index, position=position)
        try:
            numbers[key] = float(number)
        except (TypeError, ValueError, OverflowError):
            raise _bad_value(name, value, index, position) from None
    return numbers


def _nested(prefix: str, value: Any, index: int, position: int, depth: int) -> Iterator[tuple[str, float]]:
    """The features below a name, each with the names above it: what crfsuite makes of nested items."""
    if depth > DEEPEST:
        problem = f"features are nested more than {DEEPEST} times"
        raise CorpusError(problem, structure=index, position=position)
    if not isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                problem = f"the list of feature {prefix.removesuffix(NESTED)!r} must hold strings, got {name!r}"
                raise CorpusError(problem, structure=index, position=position)
            yield prefix + name, 1.0
        return
    for name, item in value.items():
        if isinstance(item, str):
            yield f"{prefix}{name}{NESTED}{item}", 1.0
        elif isinstance(item, (Mapping, list, tuple, Set)):
            yield from _nested(f"{prefix}{name}{NESTED}", item, index, position, depth + 1)
        else:
            try:
                yield f"{prefix}{name}", float(item)
            except (TypeError, ValueError, OverflowError):
                raise _bad_value(f"{prefix}{name}", item, index, position) from None


def _bad_value(name: object, value: Any, index: int, position: int) -> CorpusError:
    problem = f"the value of feature {name!r} must be a number or a string, got {value!r}"
    return CorpusError(problem, structure=index, position=position)


def canonical_rows(
    counts: NDArray[np.int64], codes: Ints, values: Floats | None, n_names: int
) -> tuple[Offsets, Ints, Floats | None]:
    """Rows of features sorted by code, without repeats and without zeros: offsets, codes, values (None: all 1)."""
    rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    keys = rows * max(1, n_names) + codes
    if values is not None and not (values == 1.0).all():
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
        keep = values != 0.0
    else:
        values = None
        keys = np.sort(keys)
        keep = np.ones(len(keys), dtype=bool)
    keep[1:] &= keys[1:] != keys[:-1]
    if not keep.all():
        keys = keys[keep]
        values = None if values is None else values[keep]
    rows, codes = keys // max(1, n_names), (keys % max(1, n_names)).astype(np.int32)
    offsets = offsets_from_lengths(np.bincount(rows, minlength=len(counts)))
    return offsets, codes, None if values is None or (values == 1.0).all() else values
