"""Observation kernels by their definitions, on feature dictionaries and symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Bag = Mapping[object, float]
Compare = Callable[[Bag, Bag], float]


def dot(x: Bag, y: Bag) -> float:
    return math.fsum(value * y[name] for name, value in x.items() if name in y)


def polynomial(degree: int, coef0: float) -> Compare:
    return lambda x, y: (dot(x, y) + coef0) ** degree


def gaussian(gamma: float) -> Compare:
    def compare(x: Bag, y: Bag) -> float:
        distance = math.fsum((x.get(name, 0.0) - y.get(name, 0.0)) ** 2 for name in {*x, *y})
        return math.exp(-gamma * distance)

    return compare


def normalized(compare: Compare) -> Compare:
    def divided(x: Bag, y: Bag) -> float:
        own = compare(x, x) * compare(y, y)
        return compare(x, y) / math.sqrt(own) if own > 0 else 0.0

    return divided


def of_unit_rows(compare: Compare) -> Compare:
    def compared(x: Bag, y: Bag) -> float:
        return compare(_unit(x), _unit(y))

    return compared


def added(first: Compare, second: Compare, weight: float) -> Compare:
    return lambda x, y: first(x, y) + weight * second(x, y)


def _unit(x: Bag) -> Bag:
    length = math.sqrt(dot(x, x))
    return {name: value / length for name, value in x.items()} if length > 0 else x
