"""Checks of parameters that several learners have; a learner does them in `fit`, before any work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gramline.learners.errors import LearnerParameterError


def is_whole_number(value: Any) -> bool:
    """An integer of Python or of NumPy; True and 3.0 are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A real number of Python or of NumPy; True is none."""
    return is_whole_number(value) or isinstance(value, float | np.floating)


def is_listed(value: Any) -> bool:
    """Several values one after another: a list, an array, a generator.

    Text would fall into characters, bytes into numbers and a mapping into its keys: they are none.
    """
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)


def require_whole_number(value: Any, what: str, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least`; `what` names the parameter."""
    if not is_whole_number(value) or value < least:
        raise LearnerParameterError(f"{what} must be a whole number of at least {least}, got {value!r}")


def require_flag(value: Any, what: str) -> None:
    """Refuse what is neither True nor False, of Python or of NumPy; a string would pass for True."""
    if not isinstance(value, bool | np.bool_):
        raise LearnerParameterError(f"{what} must be True or False, got {value!r}")
