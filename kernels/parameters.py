"""Frozen records that travel as small dictionaries, and say their parameters the way scikit-learn asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from gramline.kernels.errors import KernelParameterError

Matrix = tuple[tuple[float, ...], ...]
REAL_KINDS = "iufO"  # NumPy's kinds of real numbers; objects such as fractions.Fraction say for themselves


class Record:
    """Base of every frozen parameter record: kernels, observation kernels, priors.

    `name` is the key of the record in the catalogue; the dictionary form is {"name": ..., field: value, ...}.
    """

    name: ClassVar[str]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Constructor arguments by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able dictionary; `catalogue.from_dict` gives an equal record back."""
        return {"name": self.name} | {key: _plain(value) for key, value in self.get_params().items()}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The record with these parameters; an unknown parameter is an error that lists the known ones."""
        known = [item.name for item in fields(cls)]  # type: ignore[arg-type]
        for key in params:
            if key not in known:
                raise KernelParameterError(f"{cls.__name__} has no parameter {key!r}; it has {', '.join(known)}")
        return cls(**params)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def as_matrix(value: Any, what: str) -> Matrix:
    """A square matrix as nested tuples of floats; a value that is one already is returned as it is."""
    try:
        given = np.asarray(value)
        # float() would read text, dates and half of a complex number as numbers; truth values are 0 and 1
        array = np.array(given, dtype=float) if given.dtype.kind in "b" + REAL_KINDS else None
    except (TypeError, ValueError, OverflowError) as error:
        raise KernelParameterError(f"{what} must be a square matrix of numbers: {error}") from None
    if array is None:
        raise KernelParameterError(f"{what} must be a square matrix of numbers, got {given.ravel()[:1].tolist()}")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise KernelParameterError(f"{what} must be a square matrix, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise KernelParameterError(f"{what} contains a value that is not a finite number")
    if _is_nested_tuple_of_floats(value):
        result: Matrix = value
        return result
    return tuple(tuple(float(item) for item in row) for row in array)


def _is_nested_tuple_of_floats(value: Any) -> bool:
    return type(value) is tuple and all(
        type(row) is tuple and all(type(item) is float for item in row) for row in value
    )


def as_number(value: Any, what: str) -> float:
    """A finite plain int or float; one that is so already is returned as it is (scikit-learn's clone checks)."""
    if type(value) not in (int, float):
        try:
            given = np.asarray(value)
            # float() would read text, truth values and half of a complex number as numbers
            number = float(value) if given.ndim == 0 and given.dtype.kind in REAL_KINDS else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None:
            raise KernelParameterError(f"{what} must be a number, got {value!r}")
        value = number
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise KernelParameterError(f"{what} must be a number of at most 64 bits; write a larger one as a float")
    if not np.isfinite(value):
        raise KernelParameterError(f"{what} must be a finite number, got {value}")
    plain: float = value
    return plain


def require_positive(value: Any, what: str) -> float:
    """`value` as a plain number, which must be positive."""
    number = as_number(value, what)
    if number <= 0:
        raise KernelParameterError(f"{what} must be a positive number, got {number}")
    return number


def require_share(value: Any, what: str) -> float:
    """`value` as a plain number above 0 and at most 1."""
    number = as_number(value, what)
    if not 0 < number <= 1:
        raise KernelParameterError(f"{what} must be a number above 0 and at most 1, got {number}")
    return number


def require_whole_number(value: Any, what: str) -> int:
    """`value` as a plain int of at least 1 that compiled loops can hold."""
    number = as_number(value, what)
    if number != int(number) or number < 1:
        raise KernelParameterError(f"{what} must be a whole number of at least 1, got {number}")
    if number >= 2**63:
        raise KernelParameterError(f"{what} must be a whole number of at most 64 bits, got {number}")
    return number if isinstance(number, int) else int(number)


def require_flag(value: Any, what: str) -> bool:
    """`value` as a plain bool."""
    if not isinstance(value, bool | np.bool_):
        raise KernelParameterError(f"{what} must be True or False, got {value!r}")
    return value if isinstance(value, bool) else bool(value)
