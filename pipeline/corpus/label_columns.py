"""Label lists and prior tables as Arrow columns, one entry per position."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.packing import Offsets
from gramline.pipeline.corpus.names import NONE, NameCodes, dictionary_array, lists, ranked
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError


def label_columns(y: Iterable[Any], starts: Offsets, what: str) -> tuple[pa.Array[Any], tuple[str, ...]]:
    """The label column and the sorted names found; None (for a position or a whole structure) is a missing label."""
    names = NameCodes()
    codes = array("i")
    rows = list(y)
    if len(rows) != len(starts) - 1:
        problem = f"{len(starts) - 1} structures but {what} for {len(rows)}"
        raise CorpusError(problem, advice="give one list per structure")
    for structure, row in enumerate(rows):
        length = int(starts[structure + 1] - starts[structure])
        found: Sequence[Any] = [None] * length if row is None else listed(row, structure, what)
        if len(found) != length:
            raise CorpusError(f"{length} positions but {len(found)} {what}", structure=structure)
        for position, name in enumerate(found):
            if name is not None and not isinstance(name, str):
                problem = f"{what} are strings, got {name!r}"
                raise CorpusError(problem, advice="write strings", structure=structure, position=position)
            codes.append(NONE if name is None else names[name])
    sorted_names, ranks = ranked(list(names), np.array(codes, np.int32))
    return lists(starts, dictionary_array(sorted_names, ranks)), sorted_names


def prior_column(prior: Iterable[Any], starts: Offsets, label_names: Sequence[str]) -> pa.Array[Any]:
    """One (positions x labels) table per structure."""
    if not label_names:
        advice = "give label names in their order (--labels)"
        raise CorpusError("a prior needs labels to name its columns", advice=advice)
    tables = list(prior)
    if len(tables) != len(starts) - 1:
        problem = f"{len(starts) - 1} structures but {len(tables)} prior tables"
        raise CorpusError(problem, advice="give one table per structure")
    flat = np.zeros((int(starts[-1]), len(label_names)))
    for structure, table in enumerate(tables):
        first, last = int(starts[structure]), int(starts[structure + 1])
        try:
            rows = np.asarray(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise CorpusError("the prior must be a table of numbers", structure=structure) from None
        if rows.shape != (last - first, len(label_names)):
            raise CorpusError(
                f"the prior has shape {rows.shape}, not {(last - first, len(label_names))}",
                advice="give one row per position and one column per label",
                structure=structure,
            )
        flat[first:last] = rows
    columns = len(label_names)
    inner = lists(np.arange(0, len(flat) * columns + 1, columns, dtype=np.int64), pa.array(flat.ravel()))
    return lists(starts, inner)
