"""Packed corpora as named flat arrays and back: what stores and models keep of a corpus. Knows no files.

Arrays that are read are checked first, since compiled loops trust their addresses: offsets begin at 0, never decrease
and end where their data ends; codes lie in their vocabulary; links stay in their structure and make no cycle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import Where
from gramline.kernels.packing import MISSING, LinkedPacked, Packed, PackedTagged, Vocabulary
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.validation import check_links
from gramline.pipeline.errors import CorpusError, StoreError

Arrays = dict[str, NDArray[Any]]
NAMES = ("symbols", "features", "labels")  # the parts of a vocabulary


def packed_to_arrays(packed: Packed) -> tuple[dict[str, Any], Arrays]:
    """Attributes and arrays that hold everything of a packed corpus, its vocabulary included."""
    return {"kind": packed.kind}, packed.arrays() | vocabulary_to_arrays(packed.vocabulary)


def packed_from_arrays(attributes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Packed:
    """The inverse of `packed_to_arrays`; other attributes are left alone."""
    flat = {name: array for name, array in arrays.items() if not name.startswith("vocabulary_")}
    return block_from_arrays(str(attributes.get("kind")), flat, vocabulary_from_arrays(arrays))


def block_from_arrays(kind: str, arrays: Mapping[str, NDArray[Any]], vocabulary: Vocabulary) -> Packed:
    """Arrays of one kind of packed corpus, with a vocabulary kept elsewhere."""
    types = {packed_type.kind: packed_type for packed_type in _packed_types(Packed)}
    if kind not in types:
        advice = f"known are {', '.join(sorted(types))}"
        raise StoreError(f"structures of kind {kind!r} are unknown to this version", advice=advice)
    try:
        return _checked(types[kind].from_arrays(arrays, vocabulary))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the arrays do not make up packed {kind}: {error}") from None


def _packed_types(base: type[Packed]) -> Iterator[type[Packed]]:
    """Every packed type in `kernels.packing` and beside it; a new kind only has to be defined."""
    for packed_type in base.__subclasses__():
        if "kind" in vars(packed_type):
            yield packed_type
        yield from _packed_types(packed_type)


def vocabulary_to_arrays(vocabulary: Vocabulary, since: Vocabulary | None = None) -> Arrays:
    """The strings as UTF-8 bytes and offsets; with `since`, only what comes after that vocabulary."""
    arrays: Arrays = {}
    for part in NAMES:
        new = vars(vocabulary)[part][len(vars(since)[part]) if since else 0 :]
        encoded = [name.encode("utf-8", "surrogatepass") for name in new]
        offsets = offsets_from_lengths([len(name) for name in encoded])
        arrays[f"vocabulary_{part}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays[f"vocabulary_{part}_offsets"] = offsets
    return arrays


def vocabulary_from_arrays(arrays: Mapping[str, NDArray[Any]], since: Vocabulary | None = None) -> Vocabulary:
    """The inverse of `vocabulary_to_arrays`: the vocabulary `since` with the names of `arrays` after its own."""
    parts: dict[str, tuple[str, ...]] = {}
    for part in NAMES:
        try:
            text = arrays[f"vocabulary_{part}_utf8"].tobytes()
            offsets = arrays[f"vocabulary_{part}_offsets"]
        except KeyError as error:
            raise StoreError(f"the vocabulary lacks the array {error}") from None
        check_offsets(f"vocabulary_{part}_offsets", offsets, len(text))
        ends = offsets.tolist()
        try:
            names = tuple(text[low:high].decode("utf-8", "surrogatepass") for low, high in pairwise(ends))
        except (TypeError, ValueError) as error:
            raise StoreError(f"the names of the vocabulary's {part} cannot be read: {error}") from None
        parts[part] = (*vars(since)[part], *names) if since else names
    return Vocabulary(**parts)


def packed_fingerprint(packed: Packed) -> str:
    """A fingerprint of everything a packed corpus holds; equal corpora packed alike have equal ones."""
    state = hashlib.blake2b(packed.kind.encode(), digest_size=16)
    for name, array in sorted((packed.arrays() | vocabulary_to_arrays(packed.vocabulary)).items()):
        state.update(f"{name}{array.dtype.str}{array.shape}".encode())
        if array.size:
            state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()


def _checked(packed: Packed) -> Packed:
    """The corpus itself; StoreError for the first array that does not fit the others."""
    n_positions = len(packed.symbols) if packed.symbols.ndim == 1 else -1
    check_offsets("starts", packed.starts, n_positions)
    features = packed.features
    check_offsets("feature_indptr", features.indptr, len(features.indices), n_positions + 1)
    vocabulary = packed.vocabulary
    # A corpus without named features (or symbols) has codes all the same; they are ranks of what was there.
    check_codes("symbols", packed.symbols, n_positions, MISSING, len(vocabulary.symbols))
    check_codes("feature_indices", features.indices, len(features.indices), 0, len(vocabulary.features))
    check_codes("labels", packed.labels, n_positions, MISSING, len(vocabulary.labels))
    if packed.codes is not None:
        check_codes("codes", packed.codes, n_positions, MISSING, None)
    if features.values is not None:
        _check_numbers("feature_values", features.values, (len(features.indices),))
    for name, table in (("prior", packed.prior), ("table", packed.table)):
        if table is not None:
            _check_numbers(name, table, (n_positions, packed.n_labels))
    if isinstance(packed, PackedTagged):
        check_codes("tags", packed.tags, n_positions, 0, len(vocabulary.features))
    if isinstance(packed, LinkedPacked):
        _check_links(packed, n_positions)
    return packed


def check_offsets(name: str, offsets: NDArray[Any], end: int, length: int | None = None) -> None:
    """Offsets that divide `end` entries, into `length - 1` parts where that is known."""
    is_sound = (
        offsets.ndim == 1
        and offsets.dtype.kind in "iu"
        and len(offsets) >= 1
        and (length is None or len(offsets) == length)
        and offsets[0] == 0
        and offsets[-1] == end
        and bool((np.diff(offsets) >= 0).all())
    )
    if not is_sound:
        raise StoreError(f"the offsets {name!r} do not fit the {max(end, 0):,} entries they divide")


def check_codes(name: str, codes: NDArray[Any], length: int, lowest: int, count: int | None) -> None:
    """`length` whole numbers from `lowest` to `count - 1`."""
    if codes.ndim != 1 or len(codes) != length or codes.dtype.kind not in "iu":
        raise StoreError(f"the array {name!r} is {codes.dtype} {codes.shape} instead of {length} whole numbers")
    if codes.size and (codes.min() < lowest or (count is not None and codes.max() >= count)):
        entry = int(np.argmax((codes < lowest) | (codes >= (np.inf if count is None else count))))
        raise StoreError(f"entry {entry} of {name!r} is {codes[entry]}, which names nothing")


def _check_numbers(name: str, numbers: NDArray[Any], shape: tuple[int, ...]) -> None:
    if numbers.shape != shape:
        raise StoreError(f"the array {name!r} has the shape {numbers.shape} instead of {shape}")
    if not np.isfinite(numbers).all():
        raise StoreError(f"the array {name!r} holds a value that is not a finite number")


def _check_links(packed: LinkedPacked, n_positions: int) -> None:
    check_offsets("link_indptr", packed.link_indptr, len(packed.link_targets), n_positions + 1)
    if packed.link_targets.ndim != 1:
        raise StoreError(f"the array 'link_targets' has the shape {packed.link_targets.shape}")
    if not n_positions:
        return
    try:
        check_links(packed.starts, packed.link_indptr, packed.link_targets, packed.kind)
    except CorpusError as error:
        where: Where = {"structure": error.structure, "position": error.position}
        raise StoreError(error.problem, advice=error.advice, **where) from None
