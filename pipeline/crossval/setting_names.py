"""Settings by what they differ in, for tables: a matrix that came from a file has the name of that file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gramline.kernels.catalogue import describe, short_value

KERNEL = "kernel."  # what the names of a kernel's parameters begin with
Files = Mapping[str, str]  # paths by the digest of a list that was read from there


def setting_names(settings: Sequence[Mapping[str, Any]], files: Files | None = None) -> list[str]:
    """A short name for every setting: its learner, and the parameters in which the settings of that learner differ.

    Settings that differ in nothing that can be shown, in two matrices of no file, say, are numbered.
    """
    shown = _shortest(files or {})
    described = [(str(setting["learner"]), _flat(setting)) for setting in settings]
    names = []
    for learner, values in described:
        others = [other for name, other in described if name == learner]
        on_kernels = [other for other in others if any(key.startswith(KERNEL) for key in other)]
        varied = [
            key
            for key in values
            if any(other.get(key) != values[key] for other in (on_kernels if key.startswith(KERNEL) else others))
        ]
        parts = ", ".join(f"{key.rpartition('.')[2]}={_value(values[key], shown)}" for key in varied)
        names.append(f"{learner}({parts})" if parts else learner)
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} #{names[:k].count(name) + 1}" for k, name in enumerate(names)]


def list_digest(value: Sequence[Any]) -> str:
    """A hash of a list of texts, of numbers, or of lists: whole numbers count as the numbers that records make them."""
    return hashlib.blake2b(json.dumps(_as_records_keep_it(value)).encode(), digest_size=16).hexdigest()


def describe_with_files(description: Mapping[str, Any] | None, files: Files) -> str:
    """A kernel's dictionary in one line, with the files that its lists came from."""
    return describe(None if description is None else _with_files(description, _shortest(files)))


def _as_records_keep_it(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_records_keep_it(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _shortest(files: Files) -> dict[str, str]:
    """The name of every file; its path where two files have the same name."""
    times = Counter(Path(path).name for path in set(files.values()))
    return {key: Path(path).name if times[Path(path).name] == 1 else path for key, path in files.items()}


def _flat(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of kernel and learner side by side; a kernel's own are prefixed."""
    flat = {f"{KERNEL}{key}": value for key, value in (setting["kernel"] or {}).items()}
    return flat | {f"learner.{key}": value for key, value in setting["params"].items()}


def _value(value: Any, files: Files) -> str:
    if isinstance(value, Mapping):
        return describe(_with_files(value, files))
    file = files.get(list_digest(value)) if files and isinstance(value, list | tuple) else None
    return short_value(value) if file is None else file


def _with_files(record: Mapping[str, Any], files: Files) -> dict[str, Any]:
    """A record with `file` in the place of all lists that came from it; the label kernel is such a list itself."""
    shown: dict[str, Any] = {}
    for key, value in record.items():
        file = files.get(list_digest(value)) if files and isinstance(value, list | tuple) else None
        if file is not None:
            shown[key if key == "label_kernel" else "file"] = file
        else:
            shown[key] = _with_files(value, files) if isinstance(value, Mapping) else value
    return shown
