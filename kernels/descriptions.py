"""Kernels in one line for people: parameters at their defaults are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramline.kernels.catalogue import find
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.parameters import parameters_of
from gramline.kernels.records import Record

LONGEST = 60  # characters of a value that is shown whole


def describe(description: Mapping[str, Any] | None) -> str:
    """A kernel's dictionary in one line: sequence-labeling(c=0.5, observation=polynomial)."""
    if description is None:
        return ""
    defaults = _defaults(str(description["name"]))
    parts = [
        f"{key}={describe(value) if isinstance(value, Mapping) else short_value(value)}"
        for key, value in description.items()
        if key != "name" and value is not None and not (key in defaults and defaults[key] == value)
    ]
    return f"{description['name']}({', '.join(parts)})" if parts else str(description["name"])


def _defaults(name: str) -> dict[str, Any]:
    """The dictionary of a record at its defaults; empty for a record that only another version knows."""
    try:
        kind = find(name, Record)
    except KernelParameterError:
        return {}
    defaults = {key: parameter.default for key, parameter in parameters_of(kind).items()}
    return {key: value.to_dict() if isinstance(value, Record) else value for key, value in defaults.items()}


def short_value(value: Any) -> str:
    """A parameter as a table shows it: matrices by their size, long texts cut."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        return f"{len(value)} x {len(value[0])} matrix"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
