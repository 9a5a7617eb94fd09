"""Lists that mean "each of these": descriptions of kernels and settings of learners, multiplied out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from gramline.kernels.catalogue import EVERYTHING, find
from gramline.kernels.parameters import Record, parameters_of
from gramline.kernels.value_kinds import Kind
from gramline.learners.catalogue import find_learner
from gramline.learners.estimator import is_listed
from gramline.pipeline.errors import InputError

MOST = 100_000  # settings of one job: nobody waits for more


def kernel_kinds() -> dict[str, Kind]:
    """What every parameter of a kernel and of its parts takes, by name."""
    return {
        name: parameter.kind for record in EVERYTHING for name, parameter in parameters_of(find(record, Record)).items()
    }


def learner_kinds(name: str) -> dict[str, Kind]:
    """What every parameter of a learner takes, by name."""
    return {key: parameter.kind for key, parameter in parameters_of(find_learner(name)).items()}


def expand(description: Mapping[str, Any], kinds: Mapping[str, Kind]) -> list[dict[str, Any]]:
    """Every combination of the values in lists, in the order of the names; inner tables are multiplied out as well.

    `kinds` know which lists are one value.
    """
    names = list(description)
    for name in names:
        if description[name] == []:
            raise InputError(f"{name} is an empty list", advice="give a value", key=name)
    choices = [_choices(name, description[name], kinds) for name in names]
    if math.prod(map(len, choices)) > MOST:
        count, largest = max(zip(map(len, choices), names, strict=True))
        problem = f"the lists make more than {MOST:,} settings, {count:,} of {largest!r} alone"
        raise InputError(problem, advice="give fewer", key=largest)
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _choices(name: str, value: Any, kinds: Mapping[str, Kind]) -> list[Any]:
    if isinstance(value, Mapping):
        return list(expand(value, kinds))
    if isinstance(value, list) and kinds.get(name, Kind()).are_several(value):
        return [choice for item in value for choice in _choices(name, item, kinds)]
    return [value]


def grid(parameters: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the given values, in the order of the names."""
    names = list(parameters)
    for name in names:
        if not is_listed(parameters[name]):
            raise InputError(f"settings of {name} must be a list of values to try, got {parameters[name]!r}")
    return [dict(zip(names, values, strict=True)) for values in product(*(list(parameters[name]) for name in names))]
