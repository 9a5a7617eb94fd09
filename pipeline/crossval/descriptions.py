"""Kernels and settings in short lines for people: what is as it is by default, and what never varies, is not said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from gramline.kernels.catalogue import find
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.parameters import Record

LONGEST = 60  # characters of a value that is shown whole


def describe(description: Mapping[str, Any] | None) -> str:
    """A kernel's dictionary in one line: sequence-labeling(c=0.5, observation=polynomial)."""
    if description is None:
        return ""
    defaults = _defaults(str(description["name"]))
    parts = [
        f"{key}={describe(value) if isinstance(value, Mapping) else _short(value)}"
        for key, value in description.items()
        if key != "name" and value is not None and not (key in defaults and defaults[key] == value)
    ]
    return f"{description['name']}({', '.join(parts)})" if parts else str(description["name"])


def setting_names(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short name for every setting: its learner, and the parameters in which the settings of that learner differ."""
    described = [(str(setting["learner"]), _flat(setting)) for setting in settings]
    names = []
    for learner, values in described:
        others = [other for name, other in described if name == learner]
        varied = [key for key in values if any(other.get(key) != values[key] for other in others)]
        parts = ", ".join(f"{key.rpartition('.')[2]}={_short(values[key])}" for key in varied)
        names.append(f"{learner}({parts})" if parts else learner)
    return names


def _flat(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of kernel and learner side by side; a kernel's own are prefixed."""
    kernel = {} if setting["kernel"] is None else setting["kernel"]
    found = {f"kernel.{key}": describe(value) if isinstance(value, Mapping) else value for key, value in kernel.items()}
    return found | {f"learner.{key}": value for key, value in setting["params"].items()}


def _defaults(name: str) -> dict[str, Any]:
    """What a record's dictionary says unless told otherwise; nothing is known of a record of another version."""
    try:
        kind = find(name, Record)
    except KernelParameterError:
        return {}
    found: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.default is not MISSING:
            found[item.name] = item.default
        elif item.default_factory is not MISSING:
            made = item.default_factory()
            found[item.name] = made.to_dict() if isinstance(made, Record) else made
    return found


def _short(value: Any) -> str:
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        return f"{len(value)} x {len(value[0])} matrix"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
