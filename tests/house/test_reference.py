"""The reference names every kernel and learner with all of its parameters and their defaults."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from gramline.kernels.catalogue import EVERYTHING, find
from gramline.kernels.records import Record
from gramline.learners.catalogue import LEARNERS, find_learner

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text("utf-8")
TABLES = {
    name: (kind, dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", body, flags=re.MULTILINE)))
    for name, kind, body in re.findall(
        r"^\| `([a-z-]+)` \| `(\w+)`:.*\|\n\|---\|---\|---\|\n((?:\|.*\n)*)", REFERENCE, flags=re.MULTILINE
    )
}


def shown(value: Any) -> str:
    """A default as the reference writes it."""
    if value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, Record):
        return f"`{value.name}`"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return f'`"{value}"`' if isinstance(value, str) else str(value)


def test_everything_is_there() -> None:
    assert TABLES.keys() == EVERYTHING.keys() | LEARNERS.keys()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_parameters_and_defaults_are_those_of_the_class(name: str) -> None:
    kind = find_learner(name) if name in LEARNERS else find(name, Record)
    title, rows = TABLES[name]
    assert title == kind.__name__
    expected = {}
    for parameter in inspect.signature(kind).parameters.values():
        default = parameter.default
        if name not in LEARNERS and default is not inspect.Parameter.empty:
            default = _default(kind, parameter.name)
        expected[parameter.name] = shown(default)
    assert rows == expected


def _default(kind: type, name: str) -> Any:
    """Of a dataclass, whose signature does not tell what its factories make."""
    found = kind.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return found.default_factory() if callable(found.default_factory) else found.default
