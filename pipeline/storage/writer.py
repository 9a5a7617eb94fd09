"""Whole groups written, changed and removed: they appear at once or not at all, and replace nothing of others.

A change on a local disk is made under a lock. In an object store nobody can be locked out, so there a change is made of
what is there at that moment, or it is refused: nobody else's change is lost.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import zarr
from numpy.typing import NDArray
from zarr.abc.store import Store
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from gramline.pipeline.errors import StoreChangedError, StoreTakenError
from gramline.pipeline.files import path_text
from gramline.pipeline.storage.groups import (
    CHECKED,
    SEAL,
    Array,
    NewArray,
    digest,
    group_exists,
    require_kind_or_nothing,
    seal_of,
    write_arrays,
)
from gramline.pipeline.storage.object_store import (
    delete,
    has_attributes,
    is_group,
    open_bucket,
    put,
    refuse_secrets,
    sized_keys,
    update_document,
)
from gramline.pipeline.storage.places import (
    GroupKind,
    is_in_memory,
    is_local,
    local_path,
    open_store,
    read_everything,
    shared_bucket,
    storage_errors,
    wait_for_writes,
)

ROOT = "zarr.json"  # the document that makes a group or an array
REVISION = "revision"  # the attribute that counts changes, in object stores
CHUNK = re.compile(r"c(/\d+)*")  # the key of a chunk of an array without a name


class _Target:
    """Where a group is written to. This one is the memory of this process, where it is written in place."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.staged = self.open_staged()  # the group is written here

    def open_staged(self) -> Store:
        return open_store(self.url)

    def open_array_store(self) -> Store:
        """Where an array is written to, chunk by chunk."""
        return self.staged

    @property
    def array_url(self) -> str:
        """The same for other processes."""
        return self.url

    def existing_keys(self) -> list[str]:
        """What is at the target already and would be replaced by an array; a group there is refused."""
        return []

    def publish(self, *, overwrite: bool) -> bool:  # noqa: ARG002 - nobody else writes there
        """Make the staged group visible; False when somebody else's group is there and may not be replaced."""
        return True

    def discard(self) -> None:
        """Remove what is staged and was not published."""


class _Folder(_Target):
    """A local folder: written beside the target and renamed onto it, so that of two writers one wins."""

    def open_staged(self) -> Store:
        self._path = local_path(self.url)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._beside = self._unique()
        return open_store(str(self._beside))

    @property
    def array_url(self) -> str:
        return str(self._beside.absolute())

    def _unique(self) -> Path:
        return Path(f"{self._path}.{uuid4().hex}.partial")

    def existing_keys(self) -> list[str]:
        return [path.relative_to(self._path).as_posix() for path in self._path.rglob("*") if not path.is_dir()]

    def publish(self, *, overwrite: bool) -> bool:
        if overwrite and self._path.exists():
            old = self._unique()
            self._path.rename(old)
            self._beside.rename(self._path)
            shutil.rmtree(old, ignore_errors=True)
            return True
        try:
            self._beside.rename(self._path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                return False
            raise
        return True

    def discard(self) -> None:
        if self._beside.exists():
            sync(wait_for_writes())
            shutil.rmtree(self._beside, ignore_errors=True)


class _Bucket(_Target):
    """An object store: a group is gathered in memory; its root document is stored last and only if there is none."""

    is_array = False

    def open_staged(self) -> Store:
        refuse_secrets(self.url)
        return MemoryStore()

    def open_array_store(self) -> Store:
        self.is_array = True
        return open_store(self.url)

    def existing_keys(self) -> list[str]:
        bucket = open_bucket(self.url)
        keys = [key for key, _ in sized_keys(bucket, "")]
        if ROOT in keys and is_group(bucket, ROOT):
            raise StoreTakenError(self.url, f"{ROOT} of a group")
        return keys

    def publish(self, *, overwrite: bool) -> bool:
        if self.is_array:  # its chunks were stored where they belong
            return True
        bucket, content = open_bucket(self.url), sync(read_everything(self.staged))
        before = [key for key, _ in sized_keys(bucket, "")]
        if ROOT in before and not overwrite and has_attributes(bucket, ROOT):
            return False
        if ROOT not in before or not overwrite:
            require_only(self.url, before, content)
        delete(bucket, [key for key in before if key == ROOT])  # from here on there is no group
        # Chunks of a store that was removed half-way would pass for finished ones.
        delete(bucket, [key for key in before if key not in content])
        root = content.pop(ROOT)
        for key, value in content.items():
            put(bucket, key, value)
        return put(bucket, ROOT, root, only_new=True)


class GroupWriter:
    """Writes a whole group so that it appears at once, at `commit`, or not at all; what is left at the end is removed.

    with GroupWriter(url) as writer:
        write_arrays(writer.group, arrays)
        writer.commit(attributes)
    """

    def __init__(self, url: str) -> None:
        self.url = url
        place = _Folder if is_local(url) else _Target if is_in_memory(url) else _Bucket
        self._target = place(url)
        self.group = zarr.create_group(self._target.staged, overwrite=not is_local(url), zarr_format=3)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._target.discard()

    def create_array(self, array: NewArray, attributes: Mapping[str, Any]) -> Array:
        """Hold one array instead of a group; chunks go straight to where they belong, it may not fit into memory.

        It has its attributes from the beginning, so that one which was interrupted in an object store is known as well.
        """
        with storage_errors(self.url):
            others = (key for key in self._target.existing_keys() if not CHUNK.fullmatch(key))
            require_only(self.url, others, (ROOT,))
        return zarr.create_array(self._target.open_array_store(), **array.options(), attributes=dict(attributes))

    @property
    def array_url(self) -> str:
        """Where other processes find the array of `create_array` until it is committed."""
        return self._target.array_url

    def commit(self, attributes: Mapping[str, Any] | None = None, *, overwrite: bool = False) -> bool:
        """Make it visible; False when somebody else's group is there and may not be replaced.

        An array has its attributes already.
        """
        if attributes is not None:
            write_attributes(self.group, attributes)
        return self._target.publish(overwrite=overwrite)


def require_only(url: str, keys: Iterable[str], own: Iterable[str]) -> None:
    """Refuse a place that holds anything beside the folders of what is to be written there.

    Such leftovers are removed with it. Anything else, a prefix with other people's objects below it above all, stays.
    """
    folders = {key.partition("/")[0] for key in own}
    other = next((key for key in keys if key.partition("/")[0] not in folders), None)
    if other is not None:
        raise StoreTakenError(url, other)


def write_attributes(node: Any, attributes: Mapping[str, Any]) -> None:
    """Replace all attributes of a group or an array, in one document with a seal.

    In an object store they must be made of those that are there now, by their revision; otherwise nothing is written
    and it is a StoreChangedError.
    """
    plain = {key: value for key, value in attributes.items() if key != SEAL}
    if shared_bucket(node) is None:
        node.attrs.put(_sealed(plain))
        return
    revision = plain.get(REVISION, 0)
    wanted = _sealed(plain | {REVISION: revision + 1})

    def change(document: dict[str, Any]) -> dict[str, Any]:
        current = document["attributes"]
        if current != wanted and current.get(REVISION, 0) != revision:
            raise StoreChangedError("somebody else changed the attributes; open the group again")
        return document | {"attributes": wanted}

    update_document(shared_bucket(node), _document(node), change)


def grow_array(array: Any, shape: tuple[int, ...]) -> None:
    """Make room for more chunks. In an object store it never shrinks: others may have made room for theirs."""
    if shared_bucket(array) is None:
        array.resize(shape)
        return

    def change(document: dict[str, Any]) -> dict[str, Any]:
        return document | {"shape": [max(sizes) for sizes in zip(document["shape"], shape, strict=True)]}

    update_document(shared_bucket(array), _document(array), change)


def _sealed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {**attributes, SEAL: seal_of(attributes)}


def _document(node: Any) -> str:
    return f"{node.path}/{ROOT}".removeprefix("/")


def remove_group(url: str) -> None:
    """Remove a group with everything in it, if it is there."""
    if is_local(url):
        shutil.rmtree(local_path(url), ignore_errors=True)
        return
    with storage_errors(url):
        sync(open_store(url).delete_dir(""))


def write_group(
    url: str | os.PathLike[str],
    attributes: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    replaces: tuple[GroupKind, ...] = (),
) -> None:
    """A group with JSON-able attributes and named arrays; nothing half-written stays behind.

    Of what may be there already only a group of a kind in `replaces` is replaced.
    """
    url = path_text(url)
    if replaces:
        require_kind_or_nothing(url, replaces)
    elif group_exists(url):
        raise StoreTakenError(url)
    digests = {name: digest(array) for name, array in arrays.items()}
    with storage_errors(url), GroupWriter(url) as writer:
        write_arrays(writer.group, arrays)
        if not writer.commit({**attributes, CHECKED: digests}, overwrite=bool(replaces)):
            raise StoreTakenError(url)
