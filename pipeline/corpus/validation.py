"""The door: whatever becomes a corpus is checked here, once, and refused with the structure and the position.

Trees: every child index lies in its structure, no node has two parents, none lies on a cycle (forests are fine).
Graphs: edges lie in their structure, no directed cycle. Features: finite. Prior rows: in [0, 1], summing to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gramline.kernels.packing import Floats, Ints, Offsets, place
from gramline.kernels.priors import DISTRIBUTION_ADVICE, improper_row
from gramline.kernels.ranges import range_containing
from gramline.learners.estimator import is_listed
from gramline.pipeline.corpus.flat import (
    LIST_COLUMNS,
    FlatCorpus,
    Names,
    check_types,
    column_array,
    list_offsets,
)
from gramline.pipeline.errors import CorpusError, UnknownLabelError

EMPTY, AT_LEAST_ONE = "the corpus is empty", "give at least one structure"


def name_list(names: Any, what: str, kind: str = "label names") -> tuple[str, ...]:
    """Names in their order; a string would fall into letters, a mapping into its keys."""
    if not is_listed(names):
        raise CorpusError(f"{what} must be a list of {kind}, got {names!r}")
    return tuple(names)


def check_columns(table: pa.Table, kind: str) -> None:
    """Columns are there, of the right type, and every per-position one has as many entries as there are tokens."""
    if not isinstance(table, pa.Table):
        advice = "make a corpus of lists with Corpus.from_sequences and its like"
        raise CorpusError(f"a corpus is made of an Arrow table, got {type(table).__name__}", advice=advice)
    needed = {"trees": "links", "dags": "links", "parses": "links", "tagged": "tags"}.get(kind)
    for name in ("id", "tokens", *([needed] if needed else [])):
        if name not in table.column_names:
            raise CorpusError(f"a corpus of {kind} needs a column {name!r}")
    if len(table) == 0:
        raise CorpusError(EMPTY, advice=AT_LEAST_ONE)
    check_types(table)
    starts = list_offsets(column_array(table, "tokens"))
    for name in LIST_COLUMNS:
        column = column_array(table, name)
        if column is not None and not np.array_equal(list_offsets(column), starts):
            structure = int(np.flatnonzero(list_offsets(column)[1:] != starts[1:])[0])
            raise CorpusError(f"the column {name!r} and the tokens differ in length", structure=structure)


def check(flat: FlatCorpus, kind: str, label_names: tuple[str, ...]) -> None:
    """Raise CorpusError for the first thing that is not well formed."""
    if (empty := np.flatnonzero(np.diff(flat.starts) == 0)).size:
        raise CorpusError("no positions", advice="leave empty structures out", structure=int(empty[0]))
    if kind != "parses" and (bare := np.flatnonzero(flat.own & (flat.texts.codes < 0))).size:
        raise CorpusError("the token has neither text nor features", **place(flat.starts, int(bare[0])))
    if kind == "tagged" and flat.tags is not None and (bare := np.flatnonzero(flat.tags.codes < 0)).size:
        raise CorpusError("the word has no tag", advice="give every word one", **place(flat.starts, int(bare[0])))
    _check_features(flat)
    check_labels(flat, label_names)
    if flat.link_indptr is not None and flat.links is not None:
        check_links(flat.starts, flat.link_indptr, flat.links, kind)


def check_labels(flat: FlatCorpus, label_names: tuple[str, ...]) -> None:
    """Label names are distinct strings; labels and prior columns go with them."""
    for name in label_names:
        if not isinstance(name, str):
            raise CorpusError(f"label names must be strings, got {name!r}")
    if len(set(label_names)) != len(label_names):
        twice = next(name for name in label_names if list(label_names).count(name) > 1)
        raise CorpusError(f"the label {twice!r} is listed twice", advice="list each label once")
    if flat.labels is not None:
        _check_known(flat, flat.labels, label_names)
    if flat.prior is not None:
        _check_prior(flat, flat.prior, label_names)


def _check_features(flat: FlatCorpus) -> None:
    if flat.values is not None and not (finite := np.isfinite(flat.values)).all():
        entry = int(np.flatnonzero(~finite)[0])
        position = range_containing(flat.feature_indptr, entry)
        name = flat.features.names[flat.features.codes[entry]]
        problem = f"feature {name!r} is {flat.values[entry]}"
        raise CorpusError(problem, advice="feature values must be finite", **place(flat.starts, position))


def _check_known(flat: FlatCorpus, labels: Names, label_names: tuple[str, ...]) -> None:
    known = set(label_names)
    is_unknown = np.array([name not in known for name in labels.names] + [False])  # the last entry is for no label
    if (unknown := np.flatnonzero(is_unknown[labels.codes])).size:
        name = labels.names[labels.codes[unknown[0]]]
        raise UnknownLabelError(
            f"the label {name!r} is not among the given labels ({', '.join(label_names)})",
            tuple(sorted(labels.names[code] for code in np.unique(labels.codes[unknown]))),
            advice="add it to them (--labels), or leave the position without a label",
            **place(flat.starts, int(unknown[0])),
        )


def _check_prior(flat: FlatCorpus, prior: Floats, label_names: tuple[str, ...]) -> None:
    if prior.shape[1] != len(label_names):
        raise CorpusError(
            f"the prior has {prior.shape[1]} columns, but there are {len(label_names)} labels "
            f"({', '.join(label_names)})",
            advice="give one column per label, in that order",
        )
    if (improper := improper_row(prior)) is not None:
        position, problem = improper
        raise CorpusError(f"the prior row {problem}", advice=DISTRIBUTION_ADVICE, **place(flat.starts, position))


def check_links(starts: Offsets, indptr: Offsets, targets: Ints, kind: str) -> None:
    """Links stay in their structure and make no cycle; a node of a tree has one parent at most."""
    is_graph = kind == "dags"
    sources = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    lengths = np.diff(starts)
    structures = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[sources]
    outside = np.flatnonzero((targets < 0) | (targets >= lengths[structures]))
    if outside.size:
        entry = int(outside[0])
        raise CorpusError(
            f"the {'edge' if is_graph else 'child'} index {targets[entry]} is out of range",
            advice=f"the structure has {lengths[structures[entry]]} positions, counted from 0",
            **place(starts, int(sources[entry])),
        )
    (_check_acyclic if is_graph else _check_forest)(starts, sources, starts[structures] + targets)


def _check_forest(starts: Offsets, sources: Offsets, targets: Offsets) -> None:
    n_positions = int(starts[-1])
    parents = np.bincount(targets, minlength=n_positions)
    if (shared := np.flatnonzero(parents > 1)).size:
        problem = f"the node has {parents[shared[0]]} parents"
        raise CorpusError(problem, advice="a tree allows one", **place(starts, int(shared[0])))
    ancestor = np.full(n_positions + 1, n_positions, np.int64)  # one node above all roots, its own ancestor
    ancestor[targets] = sources
    for _ in range(int(np.diff(starts).max()).bit_length()):  # doubling: 2^k generations up after k steps
        ancestor = ancestor[ancestor]
    if (circling := np.flatnonzero(ancestor[:-1] != n_positions)).size:
        problem = "the node is its own ancestor's child"
        raise CorpusError(problem, advice="a tree has no cycle", **place(starts, int(circling[0])))


def _check_acyclic(starts: Offsets, sources: Offsets, targets: Offsets) -> None:
    if (loops := np.flatnonzero(sources == targets)).size:
        where = place(starts, int(sources[loops[0]]))
        raise CorpusError("the node has an edge to itself", advice="remove the cycle", **where)
    from scipy.sparse import csr_array  # only who has graphs waits for scipy
    from scipy.sparse.csgraph import connected_components

    n_positions = int(starts[-1])
    graph = csr_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(n_positions, n_positions))
    count, component = connected_components(graph, directed=True, connection="strong")
    if count < n_positions:
        sizes = np.bincount(component, minlength=count)
        position = int(np.flatnonzero(sizes[component] > 1)[0])
        problem = "the node lies on a cycle of edges"
        raise CorpusError(problem, advice="the graph must be acyclic", **place(starts, position))
