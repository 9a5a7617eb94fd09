"""Labels, priors, children of tree nodes and edges of graphs as Arrow columns, one entry per position."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.errors import Where
from gramline.kernels.packing import Floats, Offsets
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.errors import LabelError
from gramline.learners.estimator import is_listed
from gramline.learners.labels import label_lists
from gramline.pipeline.corpus.arrow import NONE, dictionary_array, lists, number_array
from gramline.pipeline.corpus.flat import NameCodes, ranked
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError


def label_columns(y: Iterable[Any], starts: Offsets, what: str = "label") -> tuple[pa.Array[Any], tuple[str, ...]]:
    """The column of labels (or tags) and its names, the most frequent first and equally frequent ones by name.

    None, for a position or a structure, is a missing label.
    """
    if not is_listed(y):
        raise CorpusError(f"{what}s must be one list of strings per structure, got {type(y).__name__}")
    given = [row if row is None else listed(row, structure, f"{what}s") for structure, row in enumerate(y)]
    try:
        rows = label_lists(given, np.diff(starts), what)
    except LabelError as error:
        where: Where = {"structure": error.structure, "position": error.position}
        raise CorpusError(error.problem, advice=error.advice, **where) from None
    codes = NameCodes()
    every = (NONE if name is None else codes[name] for row in rows for name in row)
    flat = np.fromiter(every, np.int32, int(starts[-1]))
    names, ranks = ranked(list(codes), flat)
    counts = np.bincount(ranks[ranks != NONE], minlength=len(names))
    frequent_first = np.argsort(-counts, kind="stable").tolist()  # `names` are sorted: equal counts stay so
    return lists(starts, dictionary_array(names, ranks)), tuple(names[code] for code in frequent_first)


def prior_column(prior: Iterable[Any], starts: Offsets, label_names: Sequence[str]) -> pa.Array[Any]:
    """One (positions x labels) table per structure."""
    return table_column(prior_table(prior, starts, label_names), starts)


def table_column(table: Floats, starts: Offsets) -> pa.Array[Any]:
    """The rows of all positions, shape (n_positions, n_labels), as a list per structure."""
    columns = table.shape[1]
    inner = lists(np.arange(0, len(table) * columns + 1, columns, dtype=np.int64), number_array(table.ravel()))
    return lists(starts, inner)


def prior_table(prior: Iterable[Any], starts: Offsets, label_names: Sequence[str]) -> Floats:
    """The tables of all structures, one below the other."""
    if not label_names:
        advice = "give label names in their order (--labels)"
        raise CorpusError("a prior needs labels to name its columns", advice=advice)
    if not is_listed(prior):
        raise CorpusError(f"prior must be a list with one table per structure, got {type(prior).__name__}")
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
    return flat


def children_column(children: Iterable[Any], starts: Offsets) -> pa.Array[Any]:
    """children[i][node] = ordered child indices of the node in structure i."""
    targets, counts = array("q"), array("q")
    rows = _one_each(children, starts, "children")
    for structure, nodes in enumerate(rows):
        nodes = listed(nodes, structure, "children")
        length = int(starts[structure + 1] - starts[structure])
        if len(nodes) != length:
            problem = f"{length} positions but {len(nodes)} lists of children"
            raise CorpusError(problem, advice="give one per node", structure=structure)
        for node, below in enumerate(nodes):
            before = len(targets)
            try:
                targets.extend(map(index, below))
            except (TypeError, OverflowError):
                problem = f"children must be a list of node numbers, got {below!r}"
                raise CorpusError(problem, structure=structure, position=node) from None
            counts.append(len(targets) - before)
    return links_column(starts, np.array(counts, np.int64), np.array(targets, np.int64))


def edges_column(edges: Iterable[Any], starts: Offsets) -> pa.Array[Any]:
    """edges[i] = [(u, v), ...] in structure i; a repeated edge is one edge."""
    targets: list[int] = []
    counts = np.zeros(int(starts[-1]), np.int64)
    rows = _one_each(edges, starts, "edges")
    for structure, pairs in enumerate(rows):
        length = int(starts[structure + 1] - starts[structure])
        first = int(starts[structure])
        try:
            distinct = sorted({(index(source), index(target)) for source, target in pairs})
        except (TypeError, ValueError):
            problem = "edges must be a list of pairs of node numbers (source, target)"
            raise CorpusError(problem, structure=structure) from None
        for source, target in distinct:
            if not (0 <= source < length and 0 <= target < length):
                raise CorpusError(
                    f"the edge ({source}, {target}) is out of range",
                    advice=f"the structure has {length} positions, counted from 0",
                    structure=structure,
                )
            targets.append(target)
            counts[first + source] += 1
    return links_column(starts, counts, np.array(targets, np.int64))


def links_column(starts: Offsets, counts: Offsets, targets: Offsets) -> pa.Array[Any]:
    """The column from link counts per position and local targets; what exceeds 32 bits is out of range anyway."""
    offsets = offsets_from_lengths(counts)
    clipped = np.clip(targets, -1, np.iinfo(np.int32).max).astype(np.int32)
    return lists(starts, lists(offsets, number_array(clipped)))


def _one_each(rows: Iterable[Any], starts: Offsets, what: str) -> Sequence[Any]:
    if not is_listed(rows):
        raise CorpusError(f"{what} must be a list with one entry per structure, got {type(rows).__name__}")
    entries = rows if isinstance(rows, (list, tuple)) else list(rows)
    if len(entries) != len(starts) - 1:
        problem = f"{len(starts) - 1} structures but {what} of {len(entries)}"
        raise CorpusError(problem, advice="give one entry per structure")
    return entries
