"""Whether all numbers are finite, by their bits: as fast as memory is read. Jitted functions only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit

WORDS: dict[int, type[np.unsignedinteger[Any]]] = {4: np.uint32, 8: np.uint64}  # by size of a number in bytes
EXPONENTS = {4: np.uint32(0x7F800000), 8: np.uint64(0x7FF0000000000000)}  # all of their bits are set in inf and nan


@jit
def largest_exponent(words: NDArray[Any], exponent: Any) -> Any:
    """max over k of words[k] & exponent."""
    largest = exponent & words.dtype.type(0)
    for k in range(len(words)):
        own = words.dtype.type(words[k] & exponent)
        largest = own if own > largest else largest
    return largest


def all_finite(tile: NDArray[Any]) -> bool:
    """True when no value is inf or nan."""
    size = tile.itemsize
    words = np.ascontiguousarray(tile).reshape(-1).view(WORDS[size])
    return bool(largest_exponent(words, EXPONENTS[size]) != EXPONENTS[size])
