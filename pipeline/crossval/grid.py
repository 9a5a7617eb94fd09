"""Lists that mean "each of these": descriptions of kernels and settings of learners, multiplied out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import product
from typing import Any

from gramline.learners.parameters import is_listed
from gramline.pipeline.errors import InputError

MOST = 100_000  # settings of one job: nobody waits for more

# Parameters that are lists themselves; a list of such lists is a grid.
LISTS = {"label_kernel": 2, "matrix": 2, "symbols": 1, "offsets": 1}  # name: how deep


def expand(description: Mapping[str, Any], kept: Collection[str] = ()) -> list[dict[str, Any]]:
    """Every combination of the values in lists, in the order of the names; inner tables are multiplied out as well."""
    names = list(description)
    choices = [_choices(name, description[name]) if name not in kept else [description[name]] for name in names]
    if math.prod(map(len, choices)) > MOST:
        largest = max(zip(map(len, choices), names, strict=True))
        raise InputError(
            f"the lists make more than {MOST:,} settings, {largest[0]:,} of {largest[1]!r} alone; give fewer"
        )
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _choices(name: str, value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(expand(value))
    if isinstance(value, list) and _depth(value) > LISTS.get(name, 0):
        return [choice for item in value for choice in _choices(name, item)]
    if name == "offsets" and isinstance(value, list) and any(isinstance(item, str | list) for item in value):
        return list(value)  # names of sets of offsets beside lists of them
    return [value]


def _depth(value: Any) -> int:
    return 1 + min((_depth(item) for item in value), default=0) if isinstance(value, list) else 0


def grid(parameters: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the given values, in the order of the names."""
    names = list(parameters)
    for name in names:
        if not is_listed(parameters[name]):
            raise InputError(f"settings of {name} must be a list of values to try, got {parameters[name]!r}")
    return [dict(zip(names, values, strict=True)) for values in product(*(list(parameters[name]) for name in names))]
