"""Many ranges of one flat array: where each begins, and the indices of all of their entries."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def offsets_from_lengths(lengths: Sequence[int] | NDArray[np.integer | np.bool_]) -> NDArray[np.int64]:
    """Where each range begins in the flat array of all ranges, one after the other, and where the last one ends.

    >>> offsets_from_lengths([2, 0, 3])
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def range_containing(offsets: NDArray[np.int64], index: int) -> int:
    """The range that index `index` of the flat array belongs to.

    >>> range_containing(np.array([0, 2, 2, 5]), 2)
    2
    """
    return int(np.searchsorted(offsets, index, side="right")) - 1


def indices_of_ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The indices starts[i], …, starts[i] + lengths[i] - 1 of every range i, one range after the other.

    >>> indices_of_ranges(np.array([7, 3]), np.array([2, 3]))
    array([7, 8, 3, 4, 5])
    """
    offsets = offsets_from_lengths(lengths)
    indices: NDArray[np.int64] = np.repeat(starts - offsets[:-1], lengths)
    indices += np.arange(offsets[-1])
    return indices
