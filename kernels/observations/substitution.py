"""Observations compared by a given symbol x symbol matrix, e.g. an amino-acid substitution matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from gramline.kernels.errors import KernelParameterError, PackingError
from gramline.kernels.matrices import Matrix
from gramline.kernels.observations.base import GatheredStrips, Normalized, ObservationKernel, inverse_norms
from gramline.kernels.packing import Floats, Ints, Packed, place
from gramline.kernels.value_kinds import Kind, Refused

EIGENVALUE_TOLERANCE = 1e-10


class SymbolNames(Kind):
    """Distinct strings; a string stands for its characters."""

    words = "a list of strings"
    depth = 1

    def plain(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, Sequence) or not all(isinstance(symbol, str) for symbol in value):
            raise Refused
        if not value:
            raise Refused("is empty", "give the symbols that the matrix compares")
        if len(set(value)) < len(value):
            raise Refused(f"names {next(symbol for n, symbol in enumerate(value) if symbol in value[:n])!r} twice")
        return value if isinstance(value, tuple) else tuple(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}


@dataclass(frozen=True)
class Substitution(ObservationKernel):
    """k_x(x, x') = matrix[x][x'] for the given symbols.

    Published substitution matrices are not positive semidefinite. That is allowed; `is_positive_semidefinite` and
    `smallest_eigenvalue` report it, because learners that solve with the Gram matrix need it to be.

    >>> from gramline.kernels import SequenceLabeling, Substitution
    >>> from gramline.pipeline import Corpus
    >>> observation = Substitution("AB", [[4.0, -1.0], [-1.0, 5.0]])
    >>> SequenceLabeling(observation=observation).gram(Corpus.from_sequences([["A"], ["B"]]))
    array([[ 4., -1.],
           [-1.,  5.]])
    >>> observation.is_positive_semidefinite
    True
    """

    name: ClassVar[str] = "substitution"
    summary: ClassVar[str] = "a table, such as an amino-acid matrix"

    symbols: Annotated[
        tuple[str, ...], SymbolNames(), "the observations it knows; a string in Python stands for its characters"
    ]
    matrix: Annotated[
        Matrix, "symbols x symbols, symmetric; one that is not positive semidefinite is reported, not refused"
    ]
    normalized: Normalized = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.symbols) != len(self.matrix):
            raise KernelParameterError(
                f"Substitution.matrix has {len(self.matrix)} rows for {len(self.symbols)} symbols",
                advice="give one row per symbol",
                key="matrix",
            )
        array = np.array(self.matrix)
        if not np.array_equal(array, array.T):
            i, j = (int(index) for index in np.argwhere(array != array.T)[0])
            raise KernelParameterError(
                f"Substitution.matrix is not symmetric: {self.symbols[i]!r} to {self.symbols[j]!r} is "
                f"{array[i, j]:g}, but back it is {array[j, i]:g}",
                advice="use their mean",
                key="matrix",
            )

    @cached_property
    def values(self) -> Floats:
        """k_x between all symbols, normalized if asked for; shape (n_symbols, n_symbols)."""
        values = np.array(self.matrix)
        if self.normalized:
            scale = inverse_norms(values.diagonal())
            values *= scale[:, None] * scale
        return values

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Of k_x between all symbols."""
        return float(np.linalg.eigvalsh(self.values)[0])

    @property
    def is_positive_semidefinite(self) -> bool:
        return self.smallest_eigenvalue >= -EIGENVALUE_TOLERANCE * float(np.abs(self.values).max())

    def alphabet(self) -> tuple[str, ...]:
        return self.symbols

    def check_codes(self, packed: Packed) -> None:
        codes, n_symbols = packed.observed, len(self.symbols)
        if len(codes) != packed.n_positions or (codes.size and not 0 <= codes.min() <= codes.max() < n_symbols):
            raise PackingError(f"the codes of the observations do not lie in an alphabet of {n_symbols} symbols")

    def encode(self, packed: Packed) -> Ints:
        """Row of the matrix for every observation; a symbol without one is refused."""
        own = {symbol: code for code, symbol in enumerate(self.symbols)}
        codes = np.array([own.get(name, -1) for name in packed.vocabulary.symbols] or [-1], dtype=np.int32)
        encoded: Ints = codes[packed.symbols]
        if (unknown := encoded < 0).any():
            position = int(np.argmax(unknown))
            raise PackingError(
                f"Substitution has no row for the symbol {packed.vocabulary.symbols[packed.symbols[position]]!r}",
                advice="add it to symbols and matrix, or replace it in the corpus",
                **place(packed.starts, position),
            )
        return encoded

    def strips(self, rows: Packed, cols: Packed) -> GatheredStrips:
        return GatheredStrips(self.values, _codes(rows), _codes(cols))

    def diagonal(self, packed: Packed) -> Floats:
        result: Floats = np.array(self.matrix).diagonal()[_codes(packed)]
        return result


def _codes(packed: Packed) -> Ints:
    if packed.codes is None:
        raise PackingError("the corpus is not encoded for Substitution", advice="prepare it with kernel.prepare first")
    return packed.codes
