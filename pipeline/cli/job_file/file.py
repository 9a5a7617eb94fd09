"""A TOML job file: what would otherwise be options of `gram`, `fit` and `cv`, in tables. Options win over the file.

[corpus]   path, other, format, labels          paths are relative to the job file
[features] features, window, minimum_count, ...  how `corpus import` would read a corpus that is not Parquet
[kernel]   name, c, gap, observation, prior, label_kernel, ... as the kernel's record has them
[gram]     path, dtype, block_rows, compression
[learner]  name, rounds, average, ...            as the learner has them
[model]    path
[cluster]  scheduler, workers, threads, memory_limit, tls_ca, tls_cert, tls_key, inline
[folds]    count, seed, repeats, stratified, group, file, inner     of `cv`, like [cache] path and
[output]   path, metric, dummy, report
In `cv`, kernel and learner may be there several times ([[kernel]]), and a list of values means each of them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramline.pipeline.cli.job_file.types import check_kinds
from gramline.pipeline.cli.terminal.notation import parse_record, read_matrix, read_object, refuse_unknown
from gramline.pipeline.corpus.imports import TEMPLATE
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.storage.object_store import refuse_secrets
from gramline.pipeline.toml_lines import JobLines, line_of

ANY = None  # the record itself knows its keys
CLUSTER_KEYS = ("scheduler", "workers", "threads", "memory_limit", "tls_ca", "tls_cert", "tls_key", "inline")
TABLES: dict[str, tuple[str, ...] | None] = {
    "corpus": ("path", "other", "format", "labels"),
    "features": (
        "features",
        "window",
        "minimum_count",
        "label_column",
        "no_labels",
        "missing_label",
        "skip_document_marks",
        "label",
        "kind",
        "strip_functions",
        "strip_empty",
    ),
    "kernel": ANY,
    "gram": ("path", "dtype", "block_rows", "compression"),
    "learner": ANY,
    "model": ("path",),
    "cluster": CLUSTER_KEYS,
    "folds": ("count", "seed", "repeats", "stratified", "group", "file", "inner"),
    "cache": ("path",),
    "output": ("path", "metric", "dummy", "report"),
}
MANY = ("kernel", "learner")  # tables that may be there several times
PARTS = {"observation", "prior", "label_kernel"}  # of a kernel: records of their own, which a file may hold
PATHS = {("corpus", "path"), ("corpus", "other"), ("gram", "path"), ("model", "path")}
PATHS |= {("folds", "file"), ("cache", "path"), ("output", "path")}
PATHS |= {("cluster", key) for key in ("tls_ca", "tls_cert", "tls_key")}


@dataclass(frozen=True)
class Job:
    """The tables of a job file, checked; empty when there is none."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    many: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # kernel and learner, all of them
    lines: JobLines = field(default_factory=JobLines)

    def table(self, name: str) -> dict[str, Any]:
        if len(self.many.get(name, ())) > 1:
            raise InputError(
                f"{self.lines.where(name, index=1)}: there are {len(self.many[name])} [[{name}]] tables, "
                "but only `gramline cv` takes more than one"
            )
        return dict(self.tables.get(name, {}))

    def setting(self, option: Any, table: str, key: str) -> Any:
        """The option if it was given, else what the file says, else None."""
        return self.tables.get(table, {}).get(key) if option is None else option

    def path(self, option: str | None, table: str, key: str, what: str) -> str:
        """A path that the job cannot do without."""
        found = self.setting(option, table, key)
        if found is None:
            raise InputError(f"{what} is missing; name it on the command line or as {key!r} in [{table}] of a job file")
        return str(found)

    def blame(self, error: Exception, table: str, given: Mapping[str, Any], index: int = 0) -> str:
        """`job.toml:7 [kernel]: ` for the key that the error speaks of first; nothing for one that an option gave."""
        tables = self.many.get(table, [])
        own = tables[index] if index < len(tables) else {}
        mentioned = {
            found.start(): key
            for key, value in [*own.items(), *given.items()]
            for word in (key, *_words(value))
            if (found := re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", str(error)))
        }
        key = mentioned[min(mentioned)] if mentioned else ""
        return "" if not own or key in given else f"{self.lines.where(table, key, index)} [{table}]: "


def _words(value: Any) -> Iterator[str]:
    """Names inside a value: of records, their parameters and choices."""
    if isinstance(value, str):
        yield from re.findall(r"[A-Za-z_][\w-]*", value)
    elif isinstance(value, Mapping):
        yield from (word for item in value.items() for part in item for word in _words(part))
    elif isinstance(value, list):
        yield from (word for part in value for word in _words(part))


def load_job(path: str | None) -> Job:
    """Read and check a job file."""
    if path is None:
        return Job()
    require_file(path, "a job file (TOML)")
    content = b""
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8").replace("\r\n", "\n")
        tables = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: the job file cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        line = line_of(error, content)
        raise InputError(f"{path}:{line}: not UTF-8 text; give the path of a job file (TOML)") from None
    except (ValueError, RecursionError) as error:
        line = line_of(error, content)
        raise InputError(f"{path}:{line}: the job file is not valid TOML: {error}") from None
    lines = JobLines.of(path, text)
    for name, table in tables.items():
        refuse_unknown([name], TABLES, lines.where(name))
        known = TABLES[name]
        is_many = name in MANY and isinstance(table, list) and all(isinstance(item, dict) for item in table) and table
        if not isinstance(table, dict) and not is_many:
            raise InputError(f"{lines.where(name)}: {name!r} must be a table; write [{name}] above its settings")
        for key in table:
            if known is not ANY:
                refuse_unknown([key], known, f"{lines.where(name, key)} [{name}]")
    check_kinds(tables, lines)
    folder = Path(path).parent
    for table, key in PATHS:
        value = tables.get(table, {}).get(key)
        if isinstance(value, str) and "://" not in value:
            tables[table][key] = str(folder / value)
        elif isinstance(value, str):
            refuse_secrets(value)
    refuse_secrets(str(tables.get("cluster", {}).get("scheduler", "")))
    many = {name: tables[name] if isinstance(tables[name], list) else [tables[name]] for name in MANY if name in tables}
    for index, kernel in enumerate(many.get("kernel", [])):
        for key in PARTS & kernel.keys():
            try:
                kernel[key] = _part(kernel[key], key, folder)
            except InputError as error:
                raise InputError(f"{lines.where('kernel', key, index)} [kernel]: {error}") from None
    features = tables.get("features", {}).get("features", "")
    if features.startswith(TEMPLATE):
        tables["features"]["features"] = f"{TEMPLATE}{folder / features.removeprefix(TEMPLATE)}"
    single = {name: many[name][0] if name in many else table for name, table in tables.items()}
    return Job(single, many, lines)


def _part(value: Any, key: str, folder: Path) -> Any:
    """A part of a kernel with what its file holds in the place of the file; in a grid, each of them."""
    what = f"the {key.replace('_', ' ')}"
    if key == "label_kernel":
        return read_matrix(str(folder / value), what) if isinstance(value, str) else value
    if isinstance(value, list):
        return [_part(item, key, folder) for item in value]
    if isinstance(value, str):
        return parse_record(value, what, folder)
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        own = {name: inner for name, inner in value.items() if name != "file"}
        return read_object(str(folder / value["file"]), what) | own
    return value
