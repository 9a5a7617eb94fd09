"""Square matrices as parameters: nested tuples of floats, which can be compared, hashed and written as JSON."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from gramline.kernels.value_kinds import Kind, Refused

REAL_KINDS = "biufO"  # NumPy's kinds of numbers and truth values; objects such as fractions.Fraction say for themselves


class SquareMatrix(Kind):
    """As many columns as rows, of finite numbers."""

    words = "a square matrix of numbers"
    depth = 2

    def plain(self, value: Any) -> tuple[tuple[float, ...], ...]:
        try:
            given = np.asarray(value)
            # float() would read text, dates and half of a complex number as numbers
            array = np.array(given, dtype=float) if given.dtype.kind in REAL_KINDS else None
        except (TypeError, ValueError, OverflowError) as error:
            raise Refused(f"must be {self.words}: {error}") from None
        if array is None:
            raise Refused(f"must be {self.words}, got {given.ravel()[:1].tolist()}")
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise Refused(f"must be a square matrix, got shape {array.shape}")
        if not np.isfinite(array).all():
            raise Refused("contains a value that is not a finite number")
        if type(value) is tuple and all(type(row) is tuple and all(type(x) is float for x in row) for row in value):
            return value
        return tuple(tuple(row) for row in array.tolist())

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}


Matrix = Annotated[tuple[tuple[float, ...], ...], SquareMatrix()]
