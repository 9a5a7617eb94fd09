"""Observations compared by a given symbol x symbol matrix, e.g. an amino-acid substitution matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.errors import KernelParameterError, PackingError
from gramline.kernels.matrices import Matrix
from gramline.kernels.observations.amino_acids import LETTERS, AminoAcidTable, letter_similarity
from gramline.kernels.observations.base import GatheredStrips, Normalized, ObservationKernel, inverse_norms
from gramline.kernels.packing import Floats, Ints, Packed, place
from gramline.kernels.parameters import Positive
from gramline.kernels.value_kinds import Kind, Refused

EIGENVALUE_TOLERANCE = 1e-10
SHARPNESS = 0.15  # of a grid on protein chains, 0.1 and 0.15 were chosen; see docs/results.md


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
    """k_x(x, x') = matrix[x][x'] for the given symbols, or that of a built-in table of amino acids.

    A table of log-odds s in half bits is made positive semidefinite: k_x = exp(sharpness (s_ab - (s_aa + s_bb) / 2)), 1
    between equal letters, negative eigenvalues (PAM tables have some) set to 0. B, Z, J and X are the mean of the amino
    acids they stand for, U counts as C and O as K; *, - and . are like themselves alone. Lower case counts as capitals.

    Matrices of your own need not be positive semidefinite; `is_positive_semidefinite` and `smallest_eigenvalue` report
    it, because learners that solve with the Gram matrix need it to be.

    >>> from gramline.kernels import PositionKernel, Substitution
    >>> from gramline.pipeline import Corpus
    >>> observation = Substitution("AB", [[4.0, -1.0], [-1.0, 5.0]])
    >>> PositionKernel(observation).gram(Corpus.from_sequences([["A"], ["B"]]))
    array([[ 4., -1.],
           [-1.,  5.]])
    >>> PositionKernel(Substitution.named("blosum62")).gram(Corpus.from_sequences(["IVx"], letters=True)).round(2)
    array([[1.  , 0.86, 0.43],
           [0.86, 1.  , 0.44],
           [0.43, 0.44, 0.39]])
    """

    name: ClassVar[str] = "substitution"
    summary: ClassVar[str] = "a table, such as an amino-acid matrix"
    added: ClassVar[tuple[str, ...]] = ("symbols", "matrix", "table", "sharpness")
    shorthand: ClassVar[str] = "table"

    symbols: Annotated[
        tuple[str, ...] | None, SymbolNames(), "the observations it knows; a string in Python stands for its characters"
    ] = None
    matrix: Annotated[
        Matrix | None, "symbols x symbols, symmetric; one that is not positive semidefinite is reported, not refused"
    ] = None
    normalized: Normalized = False
    table: Annotated[AminoAcidTable | None, "a built-in table in place of symbols and matrix"] = None
    sharpness: Annotated[Positive, "of a built-in table: how fast similarity falls with every half bit"] = SHARPNESS

    @classmethod
    def named(cls, table: AminoAcidTable, *, sharpness: float = SHARPNESS, normalized: bool = False) -> Self:
        """The built-in table of that name, for all letters of proteins."""
        return cls(normalized=normalized, table=table, sharpness=sharpness)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.table is not None:
            self._refuse_beside_table()
            return
        for key, value in (("symbols", self.symbols), ("matrix", self.matrix)):
            if value is None:
                advice = f"give symbols and matrix, or a built-in table: {', '.join(get_args(AminoAcidTable))}"
                raise KernelParameterError(f"Substitution.{key} is missing", advice=advice, key=key, owner=type(self))
        if self.sharpness != SHARPNESS:
            advice = "give a table, or leave it out"
            problem = "Substitution.sharpness is that of a table"
            raise KernelParameterError(problem, advice=advice, key="sharpness", owner=type(self))
        symbols, array = self.alphabet(), np.array(self.matrix)
        if len(symbols) != len(array):
            raise KernelParameterError(
                f"Substitution.matrix has {len(array)} rows for {len(symbols)} symbols",
                advice="give one row per symbol",
                key="matrix",
                owner=type(self),
            )
        if not np.array_equal(array, array.T):
            i, j = (int(index) for index in np.argwhere(array != array.T)[0])
            raise KernelParameterError(
                f"Substitution.matrix is not symmetric: {symbols[i]!r} to {symbols[j]!r} is "
                f"{array[i, j]:g}, but back it is {array[j, i]:g}",
                advice="use their mean",
                key="matrix",
                owner=type(self),
            )

    def _refuse_beside_table(self) -> None:
        for key, value in (("symbols", self.symbols), ("matrix", self.matrix)):
            if value is not None:
                problem = f"Substitution.{key} is given beside the table {self.table!r}, which has its own"
                raise KernelParameterError(problem, advice="leave one of them out", key=key, owner=type(self))

    @cached_property
    def scores(self) -> Floats:
        """k_x between all symbols before normalization; shape (n_symbols, n_symbols)."""
        return np.array(self.matrix) if self.table is None else letter_similarity(self.table, self.sharpness)

    @cached_property
    def values(self) -> Floats:
        """k_x between all symbols, normalized if asked for; shape (n_symbols, n_symbols)."""
        values = self.scores.copy()
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
        return LETTERS if self.table is not None else self.symbols or ()

    def check_codes(self, packed: Packed) -> None:
        codes, n_symbols = packed.observed, len(self.alphabet())
        if len(codes) != packed.n_positions or (codes.size and not 0 <= codes.min() <= codes.max() < n_symbols):
            raise PackingError(f"the codes of the observations do not lie in an alphabet of {n_symbols} symbols")

    def encode(self, packed: Packed) -> Ints:
        """Row of the matrix for every observation; a symbol without one is refused."""
        own = {symbol: code for code, symbol in enumerate(self.alphabet())}
        names = [name if self.table is None else name.upper() for name in packed.vocabulary.symbols]
        codes = np.array([own.get(name, -1) for name in names] or [-1], dtype=np.int32)
        encoded: Ints = codes[packed.symbols]
        if (unknown := encoded < 0).any():
            position = int(np.argmax(unknown))
            raise PackingError(
                f"Substitution has no row for the symbol {packed.vocabulary.symbols[packed.symbols[position]]!r}",
                advice="replace it in the corpus" if self.table else "add it to symbols and matrix, or replace it",
                **place(packed.starts, position),
            ).at(owner=type(self))
        return encoded

    def strips(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64) -> GatheredStrips:
        return GatheredStrips(self.values.astype(dtype, copy=False), _codes(rows), _codes(cols))

    def is_never_negative(self, rows: Packed, cols: Packed) -> bool:  # noqa: ARG002
        return bool(self.values.min() >= 0)

    def diagonal(self, packed: Packed) -> Floats:
        result: Floats = self.scores.diagonal()[_codes(packed)]
        return result


def _codes(packed: Packed) -> Ints:
    if packed.codes is None:
        raise PackingError("the corpus is not encoded for Substitution", advice="prepare it with kernel.prepare first")
    return packed.codes
