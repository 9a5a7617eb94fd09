"""What an observation kernel is: a frozen record that compares two positions, strip by strip."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets, Packed
from gramline.kernels.parameters import Boolean, Record
from gramline.kernels.value_kinds import Flag

ROOM_CELLS = 1 << 15  # computed before they are rounded or moved: they stay in the cache


class Strips(Protocol):
    """k_x between the positions of two packed corpora, prepared once per tile."""

    def fill(self, first: int, last: int, out: NDArray[Any]) -> None:
        """Write k_x of row positions first..last-1 against all columns into `out`, shape (last - first, n_cols).

        `out` is of the precision that the strips were made for.
        """
        ...


class NormalizedAlready(Flag):
    """Of a kernel that is 1 between an observation and itself: whatever is asked for, the record is the same."""

    def plain(self, value: Any) -> bool:
        super().plain(value)
        return False


Normalized = Annotated[
    Boolean, "divide by sqrt(k_x(x, x) k_x(x', x')), 0 where that is not positive: 1 between an observation and itself"
]
AlwaysNormalized = Annotated[bool, NormalizedAlready(), "changes nothing: it is 1 between an observation and itself"]


class ObservationKernel(Record):
    """k_x(x, x') between two observations; `normalized` divides by sqrt(k_x(x, x) k_x(x', x')), 0 where that is 0."""

    what: ClassVar[str] = "an observation kernel such as identity"

    normalized: bool

    def encode(self, packed: Packed) -> Ints | None:  # noqa: ARG002
        """Codes of the observations in the kernel's own alphabet, shape (n,); None: it reads symbols or features.

        Refuses an observation it cannot compare, naming structure and position.
        """
        return None

    def check_codes(self, packed: Packed) -> None:
        """Refuse stored codes that lie outside of the kernel's own alphabet, where it has one."""

    @abstractmethod
    def strips(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64) -> Strips:
        """The evaluation of k_x between two prepared corpora, by the fastest exact method for these data.

        In float32 it is k_x but for a few roundings, and no value depends on the others that are computed with it.
        """

    def is_never_negative(self, rows: Packed, cols: Packed) -> bool:  # noqa: ARG002
        """Whether no value between two such corpora, or parts of them, can be negative."""
        return False

    @abstractmethod
    def diagonal(self, packed: Packed) -> Floats:
        """k_x(x, x) of every position, before normalization; shape (n,)."""

    def self_similarity(self, packed: Packed) -> Floats:
        """k_x(x, x) of every position as the tiles have it, normalized if asked for; shape (n,)."""
        diagonal = self.diagonal(packed)
        return (inverse_norms(diagonal) > 0).astype(np.float64) if self.normalized else diagonal

    def alphabet(self) -> tuple[str, ...] | None:
        """The symbols that `encode` numbers; None where it encodes nothing."""
        return None


def inverse_norms(diagonal: Floats) -> Floats:
    """1 / sqrt(k(x, x)), and 0 where k(x, x) is not positive (or so small that its root has no inverse)."""
    norms = np.sqrt(np.maximum(diagonal, 0.0))
    usable = norms > np.finfo(np.float64).tiny
    result: Floats = np.divide(1.0, norms, out=np.zeros_like(norms), where=usable)
    return result


class EqualStrips:
    """1 where the codes of row and column are equal."""

    def __init__(self, rows: Ints, cols: Ints) -> None:
        self.rows, self.cols = rows, cols

    def fill(self, first: int, last: int, out: NDArray[Any]) -> None:
        fill_equal(self.rows[first:last], self.cols, out)


class GatheredStrips:
    """k_x(i, t) = values[rows[i], cols[t]]."""

    def __init__(self, values: NDArray[Any], rows: Ints, cols: Ints) -> None:
        self.values, self.rows, self.cols = values, rows, cols

    def fill(self, first: int, last: int, out: NDArray[Any]) -> None:
        fill_gathered(self.values, self.rows[first:last], self.cols, out)


class RoundedStrips:
    """Other strips of `n_cols` columns, computed in float64 and rounded to the precision of `out`."""

    def __init__(self, strips: Strips, n_cols: int) -> None:
        self.strips = strips
        self.room = np.empty((max(1, ROOM_CELLS // max(1, n_cols)), n_cols))

    def fill(self, first: int, last: int, out: NDArray[Any]) -> None:
        for low in range(first, last, len(self.room)):
            high = min(last, low + len(self.room))
            self.strips.fill(low, high, self.room[: high - low])
            with np.errstate(over="ignore"):  # an infinite k_x makes an infinite value, which is found there
                out[low - first : high - first] = self.room[: high - low]


class OrderedStrips:
    """Other strips with their columns in the given order."""

    def __init__(self, strips: Strips, columns: Offsets, precision: type[np.floating[Any]]) -> None:
        self.strips, self.columns = strips, columns
        self.room = np.empty((max(1, ROOM_CELLS // max(1, len(columns))), len(columns)), precision)

    def fill(self, first: int, last: int, out: NDArray[Any]) -> None:
        for low in range(first, last, len(self.room)):
            high = min(last, low + len(self.room))
            self.strips.fill(low, high, self.room[: high - low])
            np.take(self.room[: high - low], self.columns, axis=1, out=out[low - first : high - first], mode="clip")


@jit
def fill_equal(rows: Ints, cols: Ints, out: Floats) -> None:
    """out[i, t] = 1.0 if rows[i] == cols[t] else 0.0; int32 codes, out of either precision."""
    for i in range(len(rows)):
        code = rows[i]
        for t in range(len(cols)):
            out[i, t] = 1.0 if cols[t] == code else 0.0


@jit
def fill_gathered(values: Floats, rows: Ints, cols: Ints, out: Floats) -> None:
    """out[i, t] = values[rows[i], cols[t]]; int32 codes, values and out of the same precision."""
    for i in range(len(rows)):
        line = values[rows[i]]
        for t in range(len(cols)):
            out[i, t] = line[cols[t]]


@dataclass(frozen=True)
class Identity(ObservationKernel):
    """k_x(x, x') = 1 if the whole observations are equal, else 0. Positive semidefinite, normalized already.

    >>> from gramline.kernels import Identity, SequenceLabeling
    >>> from gramline.pipeline import Corpus
    >>> SequenceLabeling(observation=Identity()).gram(Corpus.from_sequences([["a"], ["b"], ["a"]]))
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "1 for equal observations, else 0"

    normalized: AlwaysNormalized = False

    def strips(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64) -> EqualStrips:  # noqa: ARG002
        return EqualStrips(rows.observed, cols.observed)

    def is_never_negative(self, rows: Packed, cols: Packed) -> bool:  # noqa: ARG002
        return True

    def diagonal(self, packed: Packed) -> Floats:
        return np.ones(packed.n_positions)
