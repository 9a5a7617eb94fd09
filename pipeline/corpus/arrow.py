"""Arrow arrays from numpy arrays and lists of strings, and back, by their buffers.

pyarrow's own conversions, and its functions on arrays, load pandas where it is installed, which takes longer than to
label a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Ints
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.errors import CorpusError

NONE = -1  # the code of a missing name


def dictionary_array(names: Sequence[str], codes: Ints) -> Any:
    """An Arrow dictionary array; NONE becomes null."""
    indices: Any = number_array(codes.astype(np.int32, copy=False), codes == NONE)
    return pa.DictionaryArray.from_arrays(indices, string_array(names))


def number_array(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array[Any]:
    """An Arrow array of numpy numbers, null where `missing`."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_validity(missing), _buffer(values)])


def _validity(missing: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """One bit per entry, set where it is there; None where all are."""
    return None if missing is None or not missing.any() else _buffer(np.packbits(~missing, bitorder="little"))


def _buffer(values: NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values).data)


def string_array(names: Iterable[str]) -> pa.Array[Any]:
    """An Arrow string array; half a surrogate pair is an error that shows the name."""
    listed = list(names)
    try:
        letters = list(map(str.encode, listed))
    except UnicodeEncodeError:
        broken = next(name for name in listed if any("\ud800" <= letter <= "\udfff" for letter in name))
        raise CorpusError(f"the name {broken!r} is not valid Unicode text", advice="repair its encoding") from None
    starts = offsets_from_lengths([len(name) for name in letters])
    if starts[-1] > np.iinfo(np.int32).max:
        raise CorpusError("the names have more than two gigabytes of text", advice="split the corpus")
    return pa.Array.from_buffers(
        pa.string(), len(listed), [None, _buffer(starts.astype(np.int32)), pa.py_buffer(b"".join(letters))]
    )


def lists(offsets: NDArray[np.int64], values: pa.Array[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array[Any]:
    """A list array: entry i is values[offsets[i]:offsets[i + 1]], or null where `missing`."""
    kind = pa.large_list(values.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, [_validity(missing), _buffer(offsets)], children=[values])


def nulls(array: Any) -> NDArray[np.bool_]:
    """True where an Arrow array has no value."""
    if not array.null_count:
        return np.zeros(len(array), dtype=bool)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    valid = np.unpackbits(bits, bitorder="little")[array.offset : array.offset + len(array)]
    return np.asarray(valid == 0)


def numbers(array: Any, null: float = 0) -> NDArray[Any]:
    """The numbers of an Arrow array, `null` where it has none."""
    values = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    return np.where(nulls(array), null, values) if array.null_count else values


def flattened(array: Any) -> Any:
    """The entries of all lists of an Arrow list array, one after the other."""
    starts = numbers(array.offsets)
    if np.diff(starts)[nulls(array)].any():
        return array.flatten()  # a null list that hides entries
    return array.values[int(starts[0]) : int(starts[-1])]
