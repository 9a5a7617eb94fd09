"""Explicit token features of a corpus as a sparse matrix, in the columns a model knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gramline.kernels.packing import MISSING, Packable, Packed, PackedSequences, check_packable
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.arrays import Codes, Floats, Indices, Mask, Offsets
from gramline.learners.errors import LabelError, LearnerError
from gramline.learners.estimator import Unlabeled

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class SparseRows(NamedTuple):
    """A sparse matrix as a compiled loop takes it: row k has the entries starts[k]:starts[k + 1]."""

    starts: Offsets
    columns: Indices
    values: Floats

    @classmethod
    def of(cls, matrix: csr_array) -> SparseRows:
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)


def packed_sequences(corpus: Packable | Packed) -> Packed:
    """The packed corpus; only sequences have a chain of labels."""
    check_packable(corpus)
    packed = corpus if isinstance(corpus, Packed) else corpus.packed()
    if packed.kind != "sequences":
        raise LearnerError(f"this learner labels sequences, but the corpus holds {packed.kind}")
    return packed


def feature_names(packed: Packed) -> list[str]:
    """Names of the feature columns; numbers where the corpus has none."""
    if packed.vocabulary.features:
        return list(packed.vocabulary.features)
    return [str(column) for column in range(int(packed.features.indices.max(initial=-1)) + 1)]


def label_names(packed: Packed) -> tuple[str, ...]:
    """Names of the label codes; numbers where the corpus has none."""
    if packed.vocabulary.labels:
        return packed.vocabulary.labels
    return tuple(str(code) for code in range(int(packed.labels.max(initial=-1)) + 1))


def feature_matrix(packed: Packed, n_features: int) -> csr_array:
    """F, one row per position, shape (n_positions, n_features)."""
    from scipy.sparse import (
        csr_array,  # kernel learners need none of it, and a command that labels one sentence is quick
    )

    features = packed.features
    values = np.ones(len(features.indices)) if features.values is None else features.values
    shape = (packed.n_positions, n_features)
    return csr_array((values, features.indices.astype(np.int64), features.indptr), shape=shape)


def known_features(packed: Packed, names: Sequence[str]) -> csr_array:
    """F in the columns of a model; features the model has not seen are ignored.

    Columns are matched by name. A packed corpus without feature names must not have more columns than the model.
    """
    given = packed.vocabulary.features
    if not given:
        used = int(packed.features.indices.max(initial=-1)) + 1
        if used > len(names):
            raise LearnerError(
                f"the corpus has at least {used} features, but the model was trained with {len(names)}; "
                "pack it in the vocabulary of the training corpus"
            )
        return feature_matrix(packed, len(names))
    full = feature_matrix(packed, len(given))
    if given[: len(names)] == tuple(names):
        return full[:, : len(names)] if len(given) > len(names) else full
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of.get(name, MISSING) for name in given], np.int64)[full.indices]
    kept = columns >= 0
    before = offsets_from_lengths(kept)
    mapped = type(full)((full.data[kept], columns[kept], before[full.indptr]), shape=(full.shape[0], len(names)))
    mapped.sort_indices()
    return mapped


def emission_scores(features: csr_array, emission: Floats) -> tuple[Floats, Floats]:
    """F E^T, shape (n_positions, n_labels), and the size of the numbers summed into each row of it, |F| max_y |E[y]|.

    For a few positions only the columns that they have are visited: a sparse product copies all of E. Both ways add
    in the order of the features.
    """
    if features.nnz >= features.shape[1]:
        return np.asarray(features @ emission.T), np.asarray(abs(features) @ np.abs(emission).max(axis=0, initial=0.0))
    weights = emission.T[features.indices]
    scores, sizes = np.zeros((features.shape[0], len(emission))), np.zeros(features.shape[0])
    filled = np.flatnonzero(np.diff(features.indptr))
    if len(filled):
        first = features.indptr[filled]
        scores[filled] = np.add.reduceat(weights * features.data[:, None], first, axis=0)
        sizes[filled] = np.add.reduceat(np.abs(weights).max(axis=1) * np.abs(features.data), first)
    return scores, sizes


def labeled_structures(codes: Codes, starts: Offsets, unlabeled: Unlabeled) -> Mask:
    """Which structures have a label at every position, shape (n_structures,).

    Chains are learnt from whole label paths: a missing label is an error unless `unlabeled` is "drop".
    """
    missing = np.flatnonzero(codes == MISSING)
    complete = np.ones(len(starts) - 1, bool)
    if len(missing) == 0:
        return complete
    owners = np.searchsorted(starts, missing, side="right") - 1
    if unlabeled == "error":
        raise LabelError(
            "there is no label, but chains learn from whole label paths",
            advice="remove such structures, or set unlabeled to drop, which leaves them out of the training",
            structure=int(owners[0]),
            position=int(missing[0] - starts[owners[0]]),
        )
    complete[owners] = False
    if not complete[np.diff(starts) > 0].any():
        raise LabelError("every structure has an unlabeled position, so nothing is left to learn from")
    return complete


def require_labels(packed: Packed) -> None:
    """Refuse a corpus from which nothing can be learned."""
    if packed.n_positions == 0:
        raise LearnerError("the corpus has no positions; there is nothing to learn from")
    if packed.labels.max() < 0:
        raise LabelError("no position has a label", advice="a learner needs at least one labeled position")


def training_sequences(corpus: Packable | Packed, unlabeled: Unlabeled) -> Packed:
    """The packed training corpus, whole label paths only; refuses a corpus without positions."""
    packed = packed_sequences(corpus)
    if packed.n_positions == 0:
        raise LearnerError("the corpus has no positions; there is nothing to learn from")
    complete = labeled_structures(packed.labels, packed.starts, unlabeled)
    return packed if complete.all() else chosen_sequences(packed, np.flatnonzero(complete))


def chosen_sequences(packed: Packed, structures: Indices) -> PackedSequences:
    """These structures as chains of positions, in this order; links between positions are left out."""
    rows = indices_of_ranges(packed.starts[structures], packed.lengths[structures])
    return PackedSequences(
        starts=offsets_from_lengths(packed.lengths[structures]),
        symbols=packed.symbols[rows],
        features=packed.features.take(rows),
        labels=packed.labels[rows],
        vocabulary=packed.vocabulary,
    )
