"""Strings as integers and back: one code per distinct name, ranked so that codes depend on content alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Ints
from gramline.pipeline.errors import CorpusError

NONE = -1  # the code of a missing name


class NameCodes(dict[str, int]):
    """A code for every name asked for, in the order of asking."""

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self)
        return code


def ranked(names: Sequence[str], codes: NDArray[np.integer]) -> tuple[tuple[str, ...], Ints]:
    """Only the names that `codes` use, in code point order, and the codes in that order; NONE stays NONE."""
    seen = np.zeros(len(names), dtype=bool)
    seen[codes[codes >= 0]] = True
    used = sorted(np.flatnonzero(seen).tolist(), key=names.__getitem__)
    rank = np.full(len(names) + 1, NONE, dtype=np.int32)  # the last entry is where NONE looks itself up
    rank[used] = np.arange(len(used), dtype=np.int32)
    return tuple(names[code] for code in used), rank[codes]


def dictionary_array(names: Sequence[str], codes: Ints) -> Any:
    """An Arrow dictionary array; NONE becomes null."""
    indices: Any = pa.array(codes, pa.int32(), mask=codes == NONE)
    return pa.DictionaryArray.from_arrays(indices, string_array(names))


def string_array(names: Iterable[str]) -> pa.Array[Any]:
    """An Arrow string array; half a surrogate pair is an error that shows the name."""
    listed = list(names)
    try:
        return pa.array(listed, pa.string())
    except (UnicodeEncodeError, pa.ArrowInvalid):
        broken = next(name for name in listed if any("\ud800" <= letter <= "\udfff" for letter in name))
        raise CorpusError(f"the name {broken!r} is not valid Unicode text", advice="repair its encoding") from None


def lists(offsets: NDArray[np.int64], values: pa.Array[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array[Any]:
    """A list array: entry i is values[offsets[i]:offsets[i + 1]], or null where `missing`."""
    mask = None if missing is None or not missing.any() else pa.array(missing)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)
