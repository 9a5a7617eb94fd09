"""The door: whatever becomes a corpus is checked here, once, and refused with the structure and the position.

Trees: every child index lies in its structure, no node has two parents, none lies on a cycle (forests are fine).
Graphs: edges lie in their structure, no directed cycle. Features: finite. Prior rows: in [0, 1], summing to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gramline.kernels.packing import Ints, Offsets
from gramline.pipeline.corpus.flat import FlatCorpus, place
from gramline.pipeline.errors import CorpusError, UnknownLabelError

LABELS_ADVICE = "give label names in their order (--labels)"
PRIOR_TOLERANCE = 1e-6  # how far a prior row may sum from 1: single precision marginals pass, counts do not


def check(flat: FlatCorpus, kind: str, label_names: tuple[str, ...]) -> None:
    """Raise CorpusError for the first thing that is not well formed."""
    if len(flat.starts) < 2:
        raise CorpusError("the corpus is empty", advice="give at least one structure")
    if (empty := np.flatnonzero(np.diff(flat.starts) == 0)).size:
        raise CorpusError("no positions", advice="leave empty structures out", structure=int(empty[0]))
    if kind != "parses" and (bare := np.flatnonzero(flat.own & (flat.texts.codes < 0))).size:
        raise CorpusError("the token has neither text nor features", **place(flat.starts, int(bare[0])))
    if kind == "tagged" and flat.tags is not None and (bare := np.flatnonzero(flat.tags.codes < 0)).size:
        raise CorpusError("the word has no tag", advice="give every word one", **place(flat.starts, int(bare[0])))
    _check_features(flat)
    check_label_names(label_names)
    if flat.labels is not None:
        _check_labels(flat, label_names)
    if flat.prior is not None:
        _check_prior(flat, label_names)
    if flat.link_indptr is not None and flat.links is not None:
        what = "edge" if kind == "dags" else "child"
        sources, targets = checked_targets(flat.starts, flat.link_indptr, flat.links, what)
        if kind == "dags":
            check_acyclic(flat.starts, sources, targets)
        else:
            check_forest(flat.starts, sources, targets)


def check_label_names(label_names: Sequence[str]) -> None:
    """Distinct strings."""
    for name in label_names:
        if not isinstance(name, str):
            raise CorpusError(f"label names must be strings, got {name!r}")
    if len(set(label_names)) != len(label_names):
        twice = next(name for name in label_names if list(label_names).count(name) > 1)
        raise CorpusError(f"the label {twice!r} is listed twice", advice="list each label once")


def _check_features(flat: FlatCorpus) -> None:
    if flat.values is not None and not (finite := np.isfinite(flat.values)).all():
        entry = int(np.flatnonzero(~finite)[0])
        position = int(np.searchsorted(flat.feature_indptr, entry, side="right")) - 1
        name = flat.features.names[flat.features.codes[entry]]
        problem = f"feature {name!r} is {flat.values[entry]}"
        raise CorpusError(problem, advice="feature values must be finite", **place(flat.starts, position))


def _check_labels(flat: FlatCorpus, label_names: tuple[str, ...]) -> None:
    assert flat.labels is not None
    known = set(label_names)
    strange = np.array([name not in known for name in flat.labels.names] + [False])  # the last entry is for no label
    if (found := np.flatnonzero(strange[flat.labels.codes])).size:
        name = flat.labels.names[flat.labels.codes[found[0]]]
        raise UnknownLabelError(
            f"the label {name!r} is not among the given labels ({', '.join(label_names)})",
            tuple(sorted(flat.labels.names[code] for code in np.unique(flat.labels.codes[found]))),
            advice="add it to them (--labels), or leave the position without a label",
            **place(flat.starts, int(found[0])),
        )


def _check_prior(flat: FlatCorpus, label_names: tuple[str, ...]) -> None:
    assert flat.prior is not None
    if not label_names:
        raise CorpusError("a prior needs labels to name its columns", advice=LABELS_ADVICE)
    if flat.prior.shape[1] != len(label_names):
        raise CorpusError(
            f"the prior has {flat.prior.shape[1]} columns, but there are {len(label_names)} labels "
            f"({', '.join(label_names)})",
            advice="give one column per label, in that order",
        )
    odd = ~((flat.prior >= 0.0) & (flat.prior <= 1.0 + PRIOR_TOLERANCE))  # also true for nan
    if odd.any():
        position, column = (int(index[0]) for index in np.nonzero(odd))
        raise CorpusError(
            f"the prior of label {label_names[column]!r} is {flat.prior[position, column]}",
            advice="probabilities lie between 0 and 1",
            **place(flat.starts, position),
        )
    sums = flat.prior.sum(axis=1)
    if (far := np.flatnonzero(np.abs(sums - 1.0) > PRIOR_TOLERANCE)).size:
        raise CorpusError(
            f"the prior row sums to {sums[far[0]]:.6g}",
            advice="normalize it to sum to 1",
            **place(flat.starts, int(far[0])),
        )


def checked_targets(starts: Offsets, indptr: Offsets, targets: Ints, what: str) -> tuple[Offsets, Offsets]:
    """Flat positions at both ends of every link."""
    sources = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    lengths = np.diff(starts)
    structures = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[sources]
    outside = np.flatnonzero((targets < 0) | (targets >= lengths[structures]))
    if outside.size:
        entry = int(outside[0])
        raise CorpusError(
            f"the {what} index {targets[entry]} is out of range",
            advice=f"the structure has {lengths[structures[entry]]} positions, counted from 0",
            **place(starts, int(sources[entry])),
        )
    return sources, starts[structures] + targets


def check_forest(starts: Offsets, sources: Offsets, targets: Offsets) -> None:
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


def check_acyclic(starts: Offsets, sources: Offsets, targets: Offsets) -> None:
    if (loops := np.flatnonzero(sources == targets)).size:
        where = place(starts, int(sources[loops[0]]))
        raise CorpusError("the node has an edge to itself", advice="remove the cycle", **where)
    n_positions = int(starts[-1])
    graph = csr_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(n_positions, n_positions))
    count, component = connected_components(graph, directed=True, connection="strong")
    if count < n_positions:
        sizes = np.bincount(component, minlength=count)
        position = int(np.flatnonzero(sizes[component] > 1)[0])
        problem = "the node lies on a cycle of edges"
        raise CorpusError(problem, advice="the graph must be acyclic", **place(starts, position))
