"""A corpus table as flat arrays: what packing and checking read, and what the fingerprint is taken of.

Names come out ranked in code point order and only as far as they are used, so that two tables with the same content
give the same arrays whatever their chunks, dictionaries or history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Floats, Ints, Offsets
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.arrow import NONE, flattened, nulls, numbers
from gramline.pipeline.errors import CorpusError

LIST_COLUMNS = ("features", "values", "links", "labels", "prior", "tags")  # one entry per position
_DEPTHS = {"tokens": 1, "labels": 1, "tags": 1, "features": 2, "values": 2, "links": 2, "prior": 2}
FINGERPRINT_VERSION = 1


class NameCodes(dict[str, int]):
    """A code for every name asked for, in the order of asking."""

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self)
        return code


def ranked(names: Sequence[str], codes: NDArray[np.integer]) -> tuple[tuple[str, ...], Ints]:
    """Only the names that `codes` use, in code point order, and the codes in that order; NONE stays NONE."""
    seen = np.zeros(len(names), dtype=bool)
    seen[codes[codes >= 0]] = True
    used = sorted(np.flatnonzero(seen).tolist(), key=names.__getitem__)
    rank = np.full(len(names) + 1, NONE, dtype=np.int32)  # the last entry is where NONE looks itself up
    rank[used] = np.arange(len(used), dtype=np.int32)
    return tuple(names[code] for code in used), rank[codes]


@dataclass(frozen=True)
class Names:
    """Coded strings: `names[codes[i]]` is string i, NONE where there is none; names sorted and all in use."""

    names: tuple[str, ...]
    codes: Ints


@dataclass(frozen=True)
class FlatCorpus:
    """All columns of a corpus over its n positions; None where the column is absent."""

    starts: Offsets  # shape (n_structures + 1,)
    texts: Names  # n codes
    own: NDArray[np.bool_]  # shape (n,); True where the text itself is the single feature
    feature_indptr: Offsets  # shape (n + 1,); empty rows where `own`
    features: Names  # nnz codes
    values: Floats | None  # shape (nnz,)
    link_indptr: Offsets | None  # shape (n + 1,)
    links: Ints | None  # local targets
    labels: Names | None  # n codes
    prior: Floats | None  # shape (n, n_labels)
    tags: Names | None  # n codes


def check_types(table: pa.Table) -> None:
    """Content columns are lists of strings, or lists of lists of strings or numbers."""
    for name in _DEPTHS.keys() & set(table.column_names):
        leaf: Any = table.schema.field(name).type
        for _ in range(_DEPTHS[name]):
            if not (pa.types.is_list(leaf) or pa.types.is_large_list(leaf)):
                break
            leaf = leaf.value_type
        if name in ("values", "prior"):
            fits = pa.types.is_floating(leaf)
        elif name == "links":
            fits = pa.types.is_integer(leaf)
        else:
            fits = pa.types.is_string(leaf.value_type if pa.types.is_dictionary(leaf) else leaf)
        if not fits:
            raise CorpusError(f"the column {name!r} has the type {table.schema.field(name).type}, which cannot be read")


def column_array(table: pa.Table, name: str) -> Any:
    """A column as one array; None when the table has no such column."""
    if name not in table.column_names:
        return None
    chunks = table.column(name).combine_chunks()
    return chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks


def list_offsets(array: Any) -> Offsets:
    """Offsets of a list array as if it were unsliced; a null list counts as empty."""
    return offsets_from_lengths(np.where(nulls(array), 0, np.diff(numbers(array.offsets))))


def coded(strings: Any) -> Names:
    """Ranked codes of a flat string or dictionary array; null becomes NONE."""
    if not pa.types.is_dictionary(strings.type):
        strings = strings.dictionary_encode()
    codes = numbers(strings.indices, NONE).astype(np.int32)
    names, ranks = ranked(strings.dictionary.to_pylist(), codes)
    return Names(names, ranks)


def flatten(table: pa.Table) -> FlatCorpus:
    """The flat arrays of a corpus table whose columns fit each other."""
    tokens = column_array(table, "tokens")
    starts = list_offsets(tokens)
    n_positions = int(starts[-1])
    own = np.ones(n_positions, dtype=bool)
    indptr = np.zeros(n_positions + 1, np.int64)
    features, values = Names((), np.zeros(0, np.int32)), None
    if (column := column_array(table, "features")) is not None:
        rows = flattened(column)
        own = nulls(rows)
        indptr = list_offsets(rows)
        features = coded(flattened(rows))
        if (column := column_array(table, "values")) is not None:
            values = numbers(flattened(flattened(column)), np.nan).astype(np.float64)
            values = None if (values == 1.0).all() else values
    link_indptr = links = prior = None
    if (column := column_array(table, "links")) is not None:
        rows = flattened(column)
        link_indptr = list_offsets(rows)
        links = numbers(flattened(rows), NONE).astype(np.int32)
    if (column := column_array(table, "prior")) is not None:
        flat = numbers(flattened(flattened(column)), np.nan).astype(np.float64)
        prior = flat.reshape(n_positions, -1)
    return FlatCorpus(
        starts=starts,
        texts=coded(flattened(tokens)),
        own=own,
        feature_indptr=indptr,
        features=features,
        values=values,
        link_indptr=link_indptr,
        links=links,
        labels=_names_of(table, "labels"),
        prior=prior,
        tags=_names_of(table, "tags"),
    )


def _names_of(table: pa.Table, name: str) -> Names | None:
    column = column_array(table, name)
    return None if column is None else coded(flattened(column))


def fingerprint(flat: FlatCorpus, kind: str, label_names: tuple[str, ...]) -> str:
    """SHA-256 over every part that decides numbers, each written as name, byte count, little-endian bytes.

    Counts: the kind, the order of structures, observations, features, links, labels, label order, prior and tags.
    Does not count: ids, groups, file names, chunks, dictionaries, or the words behind feature sets.
    """
    digest = hashlib.sha256(f"gramline corpus {FINGERPRINT_VERSION}".encode())

    def put(name: str, content: bytes) -> None:
        digest.update(f"|{name}:{len(content)}|".encode())
        digest.update(content)

    def put_array(name: str, array: NDArray[np.generic] | None, dtype: str) -> None:
        if array is not None:
            put(name, np.ascontiguousarray(array, dtype=dtype).tobytes())

    def put_names(name: str, strings: Names | None) -> None:
        if strings is not None:
            put(f"{name} names", json.dumps(strings.names).encode())
            put_array(f"{name} codes", strings.codes, "<i4")

    put("kind", kind.encode())
    put("labels", json.dumps(label_names).encode())
    put_array("starts", flat.starts, "<i8")
    observed = np.where(flat.own, flat.texts.codes, -1)
    put_names("texts", Names(*ranked(flat.texts.names, observed)))
    put_array("own", flat.own, "|b1")
    put_array("feature rows", flat.feature_indptr, "<i8")
    put_names("features", flat.features)
    put_array("values", flat.values, "<f8")
    put_array("link rows", flat.link_indptr, "<i8")
    put_array("links", flat.links, "<i4")
    if flat.labels is not None and (flat.labels.codes >= 0).any():
        put_names("label", flat.labels)
    put_array("prior", flat.prior, "<f8")
    put_names("tags", flat.tags)
    return digest.hexdigest()
