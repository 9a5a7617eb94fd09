"""From the flat arrays of a corpus to the packed types of the kernels, in a fresh or an extended vocabulary.

A fresh vocabulary lists names in code point order; an extended one keeps the old ids and appends the new names, so
that old and new structures can meet in one Gram matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import (
    MISSING,
    Features,
    Floats,
    Ints,
    Offsets,
    Packed,
    PackedDags,
    PackedParses,
    PackedSequences,
    PackedTagged,
    PackedTrees,
    Vocabulary,
    place,
)
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.flat import FlatCorpus, Names
from gramline.pipeline.errors import CorpusError

PACKED_TYPES: dict[str, type[Packed]] = {
    packed.kind: packed for packed in (PackedSequences, PackedTrees, PackedDags, PackedParses, PackedTagged)
}
FEATURE_SET_MARK = "\x1f"  # opens the symbol name of a feature set; no text has a control character there


def pack(flat: FlatCorpus, kind: str, label_names: tuple[str, ...], like: Packed | None) -> Packed:
    """The packed corpus; with `like`, in its vocabulary (extended) and with its labels unless it has none."""
    if like is not None and like.kind != kind:
        problem = f"the corpus holds {kind} but is to be compared with {like.kind}"
        raise CorpusError(problem, advice="use corpora of one kind")
    old = Vocabulary() if like is None else like.vocabulary
    labels = old.labels or label_names
    extra: dict[str, Any] = {}
    if flat.link_indptr is not None:
        extra |= {"link_indptr": flat.link_indptr, "link_targets": flat.links}
    if kind == "parses":
        (symbol_names, symbols), feature_names = _extended(old.symbols, flat.texts), old.features
        features = _no_features(len(symbols))
    elif kind == "tagged":
        assert flat.tags is not None
        symbol_names, symbols = _extended(old.symbols, flat.texts)
        feature_names, extra["tags"] = _extended(old.features, flat.tags)
        features = _no_features(len(symbols))
    else:
        features, feature_names = _features(flat, old.features)
        symbol_names, symbols = _extended(old.symbols, _symbols(flat, features, feature_names))
    return PACKED_TYPES[kind](
        starts=flat.starts,
        symbols=symbols,
        features=features,
        labels=_label_codes(flat, labels),
        vocabulary=Vocabulary(symbol_names, feature_names, labels),
        table=None if flat.prior is None else _table(flat.prior, flat.starts, label_names, labels),
        **extra,
    )


def _no_features(n_positions: int) -> Features:
    return Features(np.zeros(n_positions + 1, np.int64), np.zeros(0, np.int32), None)


def _extended(old: tuple[str, ...], new: Names) -> tuple[tuple[str, ...], Ints]:
    """Old names followed by the new ones among `new`, and the codes of `new` in that list."""
    if not old:
        return new.names, new.codes
    known = {name: code for code, name in enumerate(old)}
    appended = [name for name in new.names if name not in known]
    known |= {name: len(old) + rank for rank, name in enumerate(appended)}
    mapping = np.array([*(known[name] for name in new.names), MISSING], np.int32)  # the last entry is for MISSING
    return (*old, *appended), mapping[new.codes]


def _features(flat: FlatCorpus, old: tuple[str, ...]) -> tuple[Features, tuple[str, ...]]:
    """CSR features; a position whose text is its own feature has exactly that one."""
    counts = np.diff(flat.feature_indptr)
    counts[flat.own] = 1
    indptr = offsets_from_lengths(counts)
    merged, values = flat.features, flat.values
    if flat.own.any():  # one list of names for feature sets and for texts that are features
        own_codes = flat.texts.codes[flat.own]
        own_used = np.flatnonzero(np.bincount(own_codes))
        own_names = [flat.texts.names[code] for code in own_used]
        names = tuple(sorted({*flat.features.names, *own_names}))
        code_of = {name: code for code, name in enumerate(names)}
        is_own = np.repeat(flat.own, counts)
        codes = np.empty(len(is_own), np.int32)
        codes[is_own] = np.array([code_of[name] for name in own_names], np.int32)[np.searchsorted(own_used, own_codes)]
        codes[~is_own] = np.array([code_of[name] for name in flat.features.names], np.int32)[flat.features.codes]
        merged = Names(names, codes)
        if values is not None:
            spread = np.ones(len(is_own))
            spread[~is_own] = values
            values = spread
    feature_names, indices = _extended(old, merged)
    if old:  # new ids are in no particular order within a row
        indices, values = _sorted_rows(indptr, indices, values, len(feature_names))
    return Features(indptr, indices, values), feature_names


def _sorted_rows(indptr: Offsets, indices: Ints, values: Floats | None, n_features: int) -> tuple[Ints, Floats | None]:
    keys = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr)) * max(1, n_features) + indices
    if values is None:
        return (np.sort(keys) % max(1, n_features)).astype(np.int32), None
    order = np.argsort(keys, kind="stable")
    return indices[order], values[order]


def _symbols(flat: FlatCorpus, features: Features, feature_names: tuple[str, ...]) -> Names:
    """Identity of each observation: the text itself, or a 128-bit digest of the set of (name, value)."""
    if flat.own.all():
        return flat.texts
    digests = feature_set_digests(features, feature_names)[~flat.own]
    distinct, inverse = np.unique(digests.view("V16").ravel(), return_inverse=True)
    set_names = [FEATURE_SET_MARK + item.tobytes().hex() for item in distinct]
    own_codes = flat.texts.codes[flat.own]
    own_used = np.flatnonzero(np.bincount(own_codes))
    names = [*set_names, *(flat.texts.names[code] for code in own_used)]
    codes = np.empty(len(flat.own), np.int64)
    codes[~flat.own] = inverse
    codes[flat.own] = len(set_names) + np.searchsorted(own_used, own_codes)
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return Names(tuple(names[entry] for entry in order), rank[codes])


def feature_set_digests(features: Features, names: tuple[str, ...]) -> NDArray[np.uint64]:
    """Per row the sum over its features of two 64-bit lanes drawn from (name, value); shape (n, 2), big endian.

    The sum does not depend on the order of the features, so neither does the digest on the vocabulary.
    """
    seen = np.zeros(len(names), dtype=bool)
    seen[features.indices] = True
    used = np.flatnonzero(seen)
    lanes = np.zeros((len(names), 2), np.uint64)
    lanes[used] = name_lanes([names[code] for code in used])
    return sum_lanes(features, lanes[features.indices])


def name_lanes(names: Iterable[str]) -> NDArray[np.uint64]:
    """Two 64-bit numbers drawn from every name, shape (n_names, 2)."""
    drawn = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(drawn, ">u8").reshape(-1, 2).astype(np.uint64)


def sum_lanes(features: Features, lanes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The digest of every row from the lanes of the feature of every entry, shape (nnz, 2)."""
    sums = np.zeros((len(features), 2), np.uint64)
    filled = np.flatnonzero(np.diff(features.indptr))
    for lane in (0, 1):
        terms = lanes[:, lane]
        if features.values is not None:
            terms = np.where(features.values == 1.0, terms, _mixed(terms ^ _mixed(features.values.view(np.uint64))))
        if len(filled):
            sums[filled, lane] = np.add.reduceat(terms, features.indptr[filled])
    return sums.astype(">u8")


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finalizer: every input bit reaches every output bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _label_codes(flat: FlatCorpus, labels: tuple[str, ...]) -> Ints:
    if flat.labels is None:
        return np.full(int(flat.starts[-1]), MISSING, np.int32)
    code = {name: rank for rank, name in enumerate(labels)}
    mapping = np.array([*(code.get(name, MISSING) for name in flat.labels.names), MISSING], np.int32)
    return mapping[flat.labels.codes]


def _table(prior: Floats, starts: Offsets, own: tuple[str, ...], wanted: tuple[str, ...]) -> Floats:
    """The prior table with its columns in the order of `wanted`; mass on a label that is not wanted is an error."""
    if own == wanted:
        return prior
    table = np.zeros((len(prior), len(wanted)))
    code = {name: rank for rank, name in enumerate(wanted)}
    for column, name in enumerate(own):
        if name in code:
            table[:, code[name]] = prior[:, column]
        elif (heavy := np.flatnonzero(prior[:, column])).size:
            raise CorpusError(
                f"the prior gives weight to label {name!r}, which the training corpus does not have",
                advice="leave that column out and let the rows sum to 1 again",
                **place(starts, int(heavy[0])),
            )
    return table
