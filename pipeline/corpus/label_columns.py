"""Label lists and prior tables as Arrow columns, one entry per position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.errors import Where
from gramline.kernels.packing import Offsets
from gramline.learners.errors import LabelError
from gramline.learners.labels import label_lists
from gramline.pipeline.corpus.names import NONE, NameCodes, dictionary_array, lists, ranked
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError


def label_columns(y: Iterable[Any], starts: Offsets, what: str = "label") -> tuple[pa.Array[Any], tuple[str, ...]]:
    """The column of labels (or tags) and its sorted names; None, for a position or a structure, is a missing label."""
    given = [row if row is None else listed(row, structure, f"{what}s") for structure, row in enumerate(y)]
    try:
        rows = label_lists(given, np.diff(starts), what)
    except LabelError as error:
        where: Where = {"structure": error.structure, "position": error.position}
        raise CorpusError(error.problem, advice=error.advice, **where) from None
    codes = NameCodes()
    flat = np.array([NONE if name is None else codes[name] for row in rows for name in row], np.int32)
    names, ranks = ranked(list(codes), flat)
    return lists(starts, dictionary_array(names, ranks)), names


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
