"""Whole groups written and removed: what is written appears at once or not at all, and replaces nothing of others."""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from gramline.pipeline.errors import StoreError
from gramline.pipeline.storage.documents import ROOT
from gramline.pipeline.storage.groups import (
    CHECKED,
    COMPRESSIONS,
    Array,
    digest,
    group_exists,
    is_local,
    local_path,
    remotely,
    require_kind_or_nothing,
    write_arrays,
    write_attributes,
)
from gramline.pipeline.storage.kinds import Kind
from gramline.pipeline.storage.object_store import (
    delete,
    has_attributes,
    is_group,
    open_bucket,
    put,
    refuse_secrets,
    sized_keys,
    storage_error,
)
from gramline.pipeline.storage.places import gathered, is_in_memory, open_store, settled

CHUNK = re.compile(r"c(/\d+)*")  # the key of a chunk of an array without a name


class GroupWriter:
    """Writes a whole group so that it appears at once or not at all.

    Locally everything is written beside the target and renamed onto it: of two writers one wins. For an object store it
    is gathered in memory; the root document, which makes it a group, is stored last and only if there is none yet.
    """

    def __init__(self, url: str) -> None:
        refuse_secrets(url)
        self.url = url
        self._is_remote = not is_local(url) and not is_in_memory(url)
        self._is_streamed = False
        self._staged = f"{local_path(url)}.{uuid.uuid4().hex}.partial" if is_local(url) else url
        if is_local(url):
            local_path(url).parent.mkdir(parents=True, exist_ok=True)
        self._store = MemoryStore() if self._is_remote else open_store(self._staged)
        self.group = zarr.create_group(self._store, overwrite=not is_local(url), zarr_format=3)

    def become_array(
        self, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any, attributes: Mapping[str, Any]
    ) -> Array:
        """Hold one array instead of a group; chunks go straight to where they belong, it may not fit into memory.

        It has its attributes from the beginning, so that one which was interrupted in an object store is known as well.
        """
        self._is_streamed = True
        remotely(self.url, self._refuse_all_but_an_array)
        return zarr.create_array(
            open_store(self._staged),
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            fill_value=np.nan,
            compressors=[*COMPRESSIONS["lz4"], Crc32cCodec()],
            config={"write_empty_chunks": True},
            attributes=dict(attributes),
            overwrite=True,
        )

    def _refuse_all_but_an_array(self) -> None:
        """Whatever stands there is replaced with everything below it: nothing but a root and chunks may be there."""
        if self._is_remote:
            bucket = open_bucket(self.url)
            before = [key for key, _ in sized_keys(bucket, "")]
            if ROOT in before and is_group(bucket, ROOT):
                raise StoreError(f"{self.url} is not empty, it holds {ROOT} of a group; choose another path below it")
        elif is_local(self.url):
            folder = local_path(self.url)
            before = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]
        else:
            return
        refuse_others(self.url, (key for key in before if not CHUNK.fullmatch(key)), (ROOT,))

    def commit(self, attributes: Mapping[str, Any] | None = None, *, overwrite: bool = False) -> bool:
        """Make the group visible; False when somebody else's group stands there and may not be replaced.

        An array has its attributes already.
        """
        if attributes is not None:
            write_attributes(self.group, attributes)
        if not is_local(self.url):
            return self._is_streamed or not self._is_remote or self._upload(overwrite=overwrite)
        target = local_path(self.url)
        if overwrite and target.exists():
            aside = f"{target}.{uuid.uuid4().hex}.partial"
            target.rename(aside)
            Path(self._staged).rename(target)
            shutil.rmtree(aside, ignore_errors=True)
            return True
        try:
            Path(self._staged).rename(target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                self.discard()
                return False
            raise
        return True

    def _upload(self, *, overwrite: bool) -> bool:
        bucket, content = open_bucket(self.url), sync(gathered(self._store))
        before = [key for key, _ in sized_keys(bucket, "")]
        if ROOT in before and not overwrite and has_attributes(bucket, ROOT):
            return False
        if ROOT not in before or not overwrite:
            refuse_others(self.url, before, content)
        delete(bucket, [key for key in before if key == ROOT])  # from here on there is no group
        # Chunks of a store that was removed half-way would pass for finished ones.
        delete(bucket, [key for key in before if key not in content])
        root = content.pop(ROOT)
        for key, value in content.items():
            put(bucket, key, value)
        return put(bucket, ROOT, root, only_new=True)

    def discard(self) -> None:
        """Remove what was written so far."""
        if is_local(self.url) and Path(self._staged).exists():
            sync(settled())
            shutil.rmtree(self._staged, ignore_errors=True)


def refuse_others(url: str, keys: Iterable[str], own: Iterable[str]) -> None:
    """Refuse a place in an object store that holds anything beside the folders of what is to be written there.

    Such leftovers are removed with it. Anything else, a prefix with other people's objects below it above all, stays.
    """
    folders = {key.partition("/")[0] for key in own}
    other = next((key for key in keys if key.partition("/")[0] not in folders), None)
    if other is not None:
        raise StoreError(f"{url} is not empty, it holds {other}; choose another path below it")


def remove_group(url: str) -> None:
    """Remove a group with everything in it, if it is there."""
    if is_local(url):
        shutil.rmtree(local_path(url), ignore_errors=True)
    else:
        remotely(url, lambda: sync(open_store(url).delete_dir("")))


def write_group(
    url: str | os.PathLike[str],
    attributes: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    replaces: tuple[Kind, ...] = (),
) -> None:
    """A group with JSON-able attributes and named arrays; nothing half-written stays behind.

    Of what may be there already only a group of a kind in `replaces` is replaced.
    """
    url = os.fspath(url)
    if replaces:
        require_kind_or_nothing(url, replaces)
    elif group_exists(url):
        raise StoreError(f"{url} exists already; choose another path or remove it")
    writer = GroupWriter(url)
    try:
        write_arrays(writer.group, arrays)
        digests = {name: digest(array) for name, array in arrays.items()}
        if not remotely(url, lambda: writer.commit({**attributes, CHECKED: digests}, overwrite=bool(replaces))):
            raise StoreError(f"{url} exists already; choose another path or remove it")
    except OSError as error:
        raise storage_error(url, error) from error
    finally:
        writer.discard()
