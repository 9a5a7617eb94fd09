"""Children of tree nodes and edges of graphs as an Arrow column: for every position its targets in the structure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.packing import Offsets
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.parameters import is_listed
from gramline.pipeline.corpus.names import lists
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError


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
    return lists(starts, lists(offsets, pa.array(clipped, pa.int32())))


def _one_each(rows: Iterable[Any], starts: Offsets, what: str) -> Sequence[Any]:
    if not is_listed(rows):
        raise CorpusError(f"{what} must be a list with one entry per structure, got {type(rows).__name__}")
    entries = rows if isinstance(rows, (list, tuple)) else list(rows)
    if len(entries) != len(starts) - 1:
        problem = f"{len(starts) - 1} structures but {what} of {len(entries)}"
        raise CorpusError(problem, advice="give one entry per structure")
    return entries
