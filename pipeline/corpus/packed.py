"""Packed corpora as named flat arrays and back: what stores and models keep of a corpus. Knows no files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed, Vocabulary
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.packed_checks import check_offsets, checked
from gramline.pipeline.errors import StoreError

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
    known = {found.kind: found for found in _packed_types(Packed)}
    if kind not in known:
        raise StoreError(
            f"structures of kind {kind!r} are unknown to this version; known are {', '.join(sorted(known))}"
        )
    try:
        return checked(known[kind].from_arrays(arrays, vocabulary))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the arrays do not make up packed {kind}: {error}") from None


def _packed_types(base: type[Packed]) -> Iterator[type[Packed]]:
    """Every packed type in `kernels.packing` and beside it; a new kind is found by being defined."""
    for found in base.__subclasses__():
        if "kind" in vars(found):
            yield found
        yield from _packed_types(found)


def vocabulary_to_arrays(vocabulary: Vocabulary, since: Vocabulary | None = None) -> Arrays:
    """The strings as UTF-8 bytes and offsets; with `since`, only what comes after that vocabulary."""
    found: Arrays = {}
    for part in NAMES:
        names: Sequence[str] = getattr(vocabulary, part)
        encoded = [name.encode("utf-8", "surrogatepass") for name in names[len(getattr(since, part, ())) :]]
        offsets = offsets_from_lengths([len(name) for name in encoded])
        found[f"vocabulary_{part}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
        found[f"vocabulary_{part}_offsets"] = offsets
    return found


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
        parts[part] = getattr(since, part, ()) + names
    return Vocabulary(**parts)


def packed_fingerprint(packed: Packed) -> str:
    """A fingerprint of everything a packed corpus holds; equal corpora packed alike have equal ones."""
    state = hashlib.blake2b(packed.kind.encode(), digest_size=16)
    for name, array in sorted((packed.arrays() | vocabulary_to_arrays(packed.vocabulary)).items()):
        state.update(f"{name}{array.dtype.str}{array.shape}".encode())
        if array.size:
            state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()
