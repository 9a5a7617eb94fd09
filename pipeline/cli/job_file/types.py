"""What kind of value every key of a job file takes, checked at the door with the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gramline.pipeline.corpus.imports import CONLLU_KINDS, FORMATS
from gramline.pipeline.errors import InputError
from gramline.pipeline.toml_lines import JobLines

TEXT, WHOLE, FLAG, SIZE = "a string", "a whole number of at least 1", "true or false", "a size such as 2GiB"
_SIZE = re.compile(r"0*[1-9]\d{0,15}(\.\d{0,15})?\s*([kmgt]i?)?b?|0?\.0*[1-9]\d{0,15}\s*[kmgt]i?b?", re.IGNORECASE)
SEED, COLUMN = "a whole number of at least 0", "a whole number"
# The same as the store has them, which takes a second to load.
DTYPES, COMPRESSIONS = ("float64", "float32"), ("none", "lz4", "zstd")
CHOICES = {
    ("corpus", "format"): tuple(FORMATS),
    ("features", "kind"): CONLLU_KINDS,
    ("gram", "dtype"): DTYPES,
    ("gram", "compression"): COMPRESSIONS,
}

KINDS: dict[tuple[str, str], str] = {
    **{("corpus", key): TEXT for key in ("path", "other", "labels")},
    **{("features", key): TEXT for key in ("features", "missing_label", "label")},
    ("features", "window"): SEED,
    ("features", "minimum_count"): WHOLE,
    ("features", "label_column"): COLUMN,
    **{("features", key): FLAG for key in ("no_labels", "skip_document_marks", "strip_functions", "strip_empty")},
    ("gram", "path"): TEXT,
    **{place: f"one of {', '.join(choices)}" for place, choices in CHOICES.items()},
    ("gram", "block_rows"): WHOLE,
    ("model", "path"): TEXT,
    ("cache", "path"): TEXT,
    **{("cluster", key): TEXT for key in ("scheduler", "tls_ca", "tls_cert", "tls_key")},
    **{("cluster", key): WHOLE for key in ("workers", "threads")},
    ("cluster", "memory_limit"): SIZE,
    ("cluster", "inline"): FLAG,
    **{("folds", key): WHOLE for key in ("count", "repeats", "inner")},
    ("folds", "seed"): SEED,
    ("folds", "stratified"): FLAG,
    **{("folds", key): TEXT for key in ("group", "file")},
    **{("output", key): TEXT for key in ("path", "metric", "dummy")},
    ("output", "report"): FLAG,
}


def check_kinds(tables: Mapping[str, Any], lines: JobLines) -> None:
    """Refuse the first value that is of another kind than its key takes."""
    for (table, key), kind in KINDS.items():
        content = tables.get(table)
        if not isinstance(content, Mapping) or key not in content:
            continue
        allowed = CHOICES.get((table, key))
        if not (_is(content[key], kind) if allowed is None else content[key] in allowed):
            raise InputError(f"{lines.where(table, key)} [{table}]: {key} must be {kind}, got {content[key]!r}")


def _is(value: Any, kind: str) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == TEXT:
        return isinstance(value, str)
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == SIZE:
        return (is_whole and value > 0) or (isinstance(value, str) and _SIZE.fullmatch(value) is not None)
    return is_whole and (kind == COLUMN or value >= (1 if kind == WHOLE else 0))
