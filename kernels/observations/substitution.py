"""Observations compared by a given symbol x symbol matrix, e.g. an amino-acid substitution matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gramline.kernels.errors import KernelParameterError, PackingError
from gramline.kernels.observations.base import ObservationKernel, inverse_norms
from gramline.kernels.observations.codes import GatheredStrips
from gramline.kernels.packing import Floats, Ints, Packed, place
from gramline.kernels.parameters import Matrix, as_matrix, require_flag

EIGENVALUE_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Substitution(ObservationKernel):
    """k_x(x, x') = matrix[x][x'] for the given symbols.

    Published substitution matrices are not positive semidefinite. That is allowed; `is_positive_semidefinite` and
    `smallest_eigenvalue` report it, because learners that solve with the Gram matrix need it to be.

    Parameters
    ----------
    symbols : the observations that can be compared, as strings; a string is read as its characters.
    matrix : symmetric, shape (n_symbols, n_symbols).
    normalized : divide by sqrt(k_x(x, x) k_x(x', x')); 0 where that is not positive.

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

    symbols: tuple[str, ...]
    matrix: Matrix
    normalized: bool = False

    def __post_init__(self) -> None:
        symbols = _as_symbols(self.symbols)
        matrix = as_matrix(self.matrix, "Substitution.matrix")
        if len(symbols) != len(matrix):
            raise KernelParameterError(
                f"Substitution.matrix has {len(matrix)} rows for {len(symbols)} symbols; give one row per symbol"
            )
        array = np.array(matrix)
        if not np.array_equal(array, array.T):
            i, j = (int(index) for index in np.argwhere(array != array.T)[0])
            raise KernelParameterError(
                f"Substitution.matrix is not symmetric: {symbols[i]!r} to {symbols[j]!r} is {array[i, j]:g}, but back "
                f"it is {array[j, i]:g}; use their mean"
            )
        object.__setattr__(self, "symbols", symbols)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "normalized", require_flag(self.normalized, "Substitution.normalized"))

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


def _as_symbols(value: Any) -> tuple[str, ...]:
    """Distinct strings as a tuple; a string stands for its characters."""
    if not isinstance(value, Sequence) or not all(isinstance(symbol, str) for symbol in value):
        raise KernelParameterError(f"Substitution.symbols must be a list of strings, got {value!r}")
    symbols = value if isinstance(value, tuple) else tuple(value)
    if not symbols:
        raise KernelParameterError("Substitution.symbols is empty; give the symbols that the matrix compares")
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for number, symbol in enumerate(symbols) if symbol in symbols[:number])
        raise KernelParameterError(f"Substitution.symbols names {twice!r} twice")
    return symbols
