"""Groups of named arrays on disk, in memory or on an object store; with `places` and `writer` all that imports zarr.

Knows formats and files, and refuses to know what the arrays mean. Every array is checked by crc32c, the last codec
of its chain, so that a damaged chunk is an error and never a number.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.sync import sync
from zarr.errors import ContainsArrayError
from zarr.storage import LocalStore

from gramline.pipeline.errors import StorageUnavailableError, StoreDamagedError, StoreError, first_line
from gramline.pipeline.storage.object_store import sized_keys
from gramline.pipeline.storage.places import (
    EXPORTED,
    STORE,
    GroupKind,
    is_local,
    local_path,
    open_store,
    shared_bucket,
    storage_errors,
)

Array = zarr.Array[Any]
Group = zarr.Group
COMPRESSIONS: dict[str, Any] = {  # by the names of `choices.Compression`
    "none": (),
    "lz4": (BloscCodec(cname="lz4", shuffle="bitshuffle"),),
    "zstd": (BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"),),
}
# What an array from strangers may claim of itself, checked before memory is allocated.
NUMBERS = "biuf"  # kinds of dtypes: no objects, no strings
CODECS = {"bytes", "blosc", "crc32c"}  # all that gramline ever writes
LAST_CODEC = "crc32c"
DIMENSIONS = 4
ROWS = 1 << 40  # of a matrix
TILE_BYTES = 1 << 34
CHUNK_BYTES = 1 << 31  # of a compressed chunk: what its codec can hold at all
REBUILD = "rebuild it"
CHUNK_ITEMS = 1 << 21  # items of one chunk of a plain array: large enough to be cheap, small enough to stream
CHUNKS_AT_ONCE = 2  # of a plain array: an object store is asked for the next while one is on its way
SEAL = "seal"  # the attribute with a digest of all others
CHECKED = "arrays"  # the attribute that lists the arrays of a group with their digests
# What Zarr raises at metadata and chunks that are not what they should be: one sentence each, whatever it was.
DAMAGED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError),
)


def open_group(url: str, kind: GroupKind = STORE) -> Group:
    """The group at `url` for reading and writing; anything else is a StoreError that names the `kind` wanted there."""
    kind.require_folder(url)
    store = open_store(url)
    with storage_errors(url):
        try:
            return zarr.open_group(store, mode="r+", zarr_format=3, use_consolidated=False)
        except StoreError:
            raise
        except FileNotFoundError:
            raise kind.missing(url) from None
        except ContainsArrayError:
            raise kind.refusal(url, "a Zarr array") from None
        except DAMAGED:
            raise kind.refusal(url, "something whose zarr.json cannot be read") from None


def read_attributes(url: str, kind: GroupKind = STORE) -> tuple[dict[str, Any], bool | None]:
    """The attributes of a group; True when their seal vouches for them, None when they have none."""
    attributes = dict(open_group(url, kind).attrs.asdict())
    seal = attributes.pop(SEAL, None)
    return attributes, None if seal is None else seal == seal_of(attributes)


def seal_of(attributes: Mapping[str, Any]) -> str:
    """A digest of all attributes but the seal itself."""
    return hashlib.blake2b(json.dumps(attributes, sort_keys=True).encode(), digest_size=16).hexdigest()


def check_format(url: str, what: str, version: Any, readable: tuple[int, ...], is_sealed: bool | None) -> None:
    """Refuse a format that this program cannot read, and attributes that are not what was written (1 had no seal)."""
    if version not in readable or isinstance(version, bool):
        raise StoreError(
            f"{url} is {what} of format {version!r}, but this version of gramline reads formats {readable[0]} to "
            f"{readable[-1]}",
            advice="use the version that wrote it, or rebuild it",
        )
    if not is_sealed and (version != 1 or is_sealed is False):
        raise StoreDamagedError("its zarr.json is not what was written", url)


def group_exists(url: str) -> bool:
    """True when something is at `url` that a new store would have to replace."""
    if is_local(url):
        path = local_path(url)
        return path.exists() and not (path.is_dir() and not any(path.iterdir()))
    store = open_store(url)
    with storage_errors(url):
        try:
            return bool(zarr.open_group(store, mode="r", zarr_format=3).attrs.asdict())
        except FileNotFoundError:
            return False
        except StoreError:
            raise
        except DAMAGED:
            return True


def read_group(
    url: str | os.PathLike[str],
    check: Callable[[dict[str, Any], bool | None], None] = lambda _found, _sealed: None,
    kind: GroupKind = STORE,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The attributes and arrays that `write_group` wrote; anything missing or damaged is a StoreError.

    `check` sees the attributes, and whether they are sealed, before any array is read; `kind` is for what is no group.
    """
    url = os.fspath(url)
    attributes, is_sealed = read_attributes(url, kind)
    check(attributes, is_sealed)
    group = open_group(url)
    digests = attributes.pop(CHECKED, None)
    if not isinstance(digests, dict):
        raise StoreError(f"{url} was not written by gramline to its end", advice="remove it and rebuild it")
    arrays = {name: read_array(group, name, url) for name in digests}
    for name, expected in digests.items():
        if digest(arrays[name]) != expected:
            raise StoreDamagedError(f"array {name!r} is not what was written", url)
    return attributes, arrays


def write_arrays(group: Group, arrays: Mapping[str, NDArray[Any]], *, prefix: str = "") -> None:
    """Plain arrays under `prefix` of a group, chunked along the first axis."""
    for name, array in arrays.items():
        tail = array.shape[1:]
        rows = max(1, min(array.shape[0], CHUNK_ITEMS // max(1, math.prod(tail)))) if array.ndim else 1
        chunks = (rows, *(max(1, size) for size in tail)) if array.ndim else ()
        target = NewArray(array.shape, chunks, array.dtype).create(group, prefix + name)
        for part in _parts(array.shape, chunks):
            target[part] = array[part]


def read_array(group: Group, name: str, url: str) -> NDArray[Any]:
    """A whole plain array; missing or damaged is a StoreError. It cannot claim more memory than the store has bytes."""
    with storage_errors(url):
        try:
            array = _array(group, name)
            if len(array.compressors) == 1 and array.ndim:
                check_stored(f"array {name!r}", int(array.nbytes), sum(size for _, size in list_chunks(array)))
            whole = np.empty(array.shape, array.dtype)
            for part in _parts(array.shape, array.chunks):
                whole[part] = array[part]
            return whole
        except StorageUnavailableError:
            raise
        except DAMAGED as error:
            raise StoreDamagedError(f"array {name!r} cannot be read ({first_line(error)})", url) from None


def _parts(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Any]:
    """What of an array is read or written at once, so that no copy on the way is as large as it is."""
    if not shape:
        yield ...
    elif math.prod(shape):
        step = chunks[0] * CHUNKS_AT_ONCE
        yield from (slice(first, first + step) for first in range(0, shape[0], step))


class NewArray(NamedTuple):
    """An array to create. Every chunk is written, also one equal to the fill value, and ends in a checksum."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: Any
    fill: Any = 0
    compression: str = "none"

    def options(self) -> dict[str, Any]:
        """What Zarr is asked for."""
        return {
            "shape": self.shape,
            "chunks": self.chunks,
            "dtype": self.dtype,
            "fill_value": self.fill,
            "compressors": [*COMPRESSIONS[self.compression], Crc32cCodec()],
            "config": {"write_empty_chunks": True},
            "overwrite": True,
        }

    def create(self, group: Group, name: str) -> Array:
        return group.create_array(name, **self.options())


def _array(group: Group, name: str) -> Array:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise KeyError(name)
    codecs = [str(codec.to_dict()["name"]) for codec in array.metadata.codecs]  # type: ignore[union-attr]
    check_array(f"array {name!r}", array.shape, array.chunks, np.dtype(array.dtype), codecs)
    return array


def open_array(group: Group, name: str, url: str) -> Array:
    """An existing array for whole-chunk reads and writes; StoreError when it is not there."""
    with storage_errors(url):
        try:
            array = _array(group, name)
        except DAMAGED as error:
            why = first_line(error)
            raise StoreError(f"{url} has no array {name!r} ({why})", advice="it is damaged or no Gram store") from None
    # Zarr 3.1 ignores write_empty_chunks when it opens an existing array (zarr-python issue 2931).
    return array.with_config({"write_empty_chunks": True})


def open_lone_array(url: str) -> Array:
    """An existing array without a group around it, for whole-chunk writes."""
    array = zarr.open_array(open_store(url), mode="r+", zarr_format=3)
    return array.with_config({"write_empty_chunks": True})


def require_kind_or_nothing(url: str, kinds: tuple[GroupKind, ...]) -> bool:
    """Refuse a path to write to where something of another kind is; True when one of these kinds is there."""
    if not group_exists(url):
        return False
    wanted = kinds[0].as_target()
    attributes, _ = read_attributes(url, wanted)
    if not any(kind.holds(attributes) for kind in kinds):
        wanted.require(url, attributes)
    return True


def require_export_or_nothing(url: str) -> bool:
    """Refuse a path to write to where something else than an exported array is; True when one is there."""
    if not group_exists(url):
        return False
    advice = "choose another path, or remove it"
    with storage_errors(url):
        try:
            attributes = zarr.open_array(open_store(url), mode="r", zarr_format=3).attrs.asdict()
        except StoreError:
            raise
        except DAMAGED:
            raise StoreError(f"{url} is not an exported array", advice=advice) from None
    if any(attributes.get(key) != value for key, value in EXPORTED.items()):
        raise StoreError(
            f"{url} is a Zarr array without the mark of an export (earlier versions of gramline made none), so it may "
            "be somebody's own",
            advice=advice,
        )
    return True


def delete_chunk(array: Array, coordinates: tuple[int, ...]) -> None:
    """Remove a chunk, if it is there."""
    key = "/".join((array.path, "c", *map(str, coordinates))).removeprefix("/")
    with storage_errors(key):
        sync(array.store_path.store.delete(key))


def list_chunks(array: Array) -> list[tuple[tuple[int, ...], int]]:
    """Coordinates and sizes in bytes of all chunks that are there."""
    store, prefix = array.store_path.store, f"{array.path}/c/".removeprefix("/")
    bucket = shared_bucket(array)
    if isinstance(store, LocalStore):
        return list(_list_folder(str(store.root / prefix), ()))

    async def collect() -> list[tuple[str, int]]:
        if bucket is not None:  # an object store lists sizes along with the keys, a thousand per request
            return list(sized_keys(bucket, prefix))
        keys = [key async for key in store.list_prefix(prefix)]
        return list(zip(keys, await asyncio.gather(*map(store.getsize, keys)), strict=True))

    with storage_errors(prefix):
        chunks = [(key.removeprefix(prefix).split("/"), size) for key, size in sync(collect())]
    return [(tuple(map(int, place)), size) for place, size in chunks if all(part.isdigit() for part in place)]


def _list_folder(folder: str, above: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
    """os.scandir is 300 times faster here than asking Zarr."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isdecimal() and len(entry.name) < 16:
                here = (*above, int(entry.name))
                if entry.is_dir(follow_symlinks=False):
                    yield from _list_folder(entry.path, here)
                elif entry.is_file(follow_symlinks=False):
                    yield here, entry.stat().st_size


def digest(array: NDArray[Any]) -> str:
    """A fingerprint of dtype, shape and contents."""
    state = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    state.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return state.hexdigest()


def check_array(
    where: str, shape: Sequence[int], chunks: Sequence[int], dtype: np.dtype[Any], codecs: Sequence[str]
) -> None:
    """Refuse what gramline never writes: other codecs, other types, chunks beyond all measure."""
    unknown = [name for name in codecs if name not in CODECS]
    if unknown:
        raise StoreError(f"{where} is encoded with {unknown[0]!r}, which gramline never writes", advice=REBUILD)
    if not codecs or codecs[-1] != LAST_CODEC:
        raise StoreError(f"{where} has no checksum, which gramline always writes", advice=REBUILD)
    if dtype.kind not in NUMBERS:
        raise StoreError(f"{where} holds values of type {dtype.name}, which gramline never writes", advice=REBUILD)
    if len(shape) > DIMENSIONS or any(size > ROWS for size in shape):
        raise StoreError(f"{where} claims the shape {_times(shape)}, more than any store holds", advice=REBUILD)
    chunk_bytes = dtype.itemsize * math.prod(chunks)
    limit = CHUNK_BYTES if "blosc" in codecs else TILE_BYTES
    if chunk_bytes > limit:
        raise StoreError(
            f"{where} claims chunks of {_times(chunks)} values, {chunk_bytes:,} bytes each",
            advice=f"at most {limit:,} are read",
        )


def check_stored(where: str, claimed_bytes: int, stored_bytes: int) -> None:
    """An array without compression cannot be larger in memory than it is in the store."""
    if claimed_bytes > stored_bytes:
        raise StoreError(
            f"{where} claims {claimed_bytes:,} bytes, but only {stored_bytes:,} are stored",
            advice="it is damaged or incomplete",
        )


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(f"{size:,}" for size in sizes) or "1"
