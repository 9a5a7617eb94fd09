"""Where groups of arrays are kept (a folder, memory, or an object store by url), what is refused, kinds of groups."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore, ObjectStore

from gramline.pipeline.errors import InputError, RunError, StorageUnavailableError, StoreError, first_line
from gramline.pipeline.files import ADVICE
from gramline.pipeline.storage.object_store import DENIED, PASSING, REMOTE_ADVICE, STORAGE_ERRORS, open_bucket

METADATA_BYTES = 1 << 26  # of one JSON document
WRITE_SECONDS = 10.0  # two threads that wait for each other's writes end as well
_MEMORY: dict[str, Store] = {}
_MEMORY_LOCKS: dict[str, Lock] = {}


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def local_path(url: str) -> Path:
    """The path behind a local url."""
    return Path(url.removeprefix("file://"))


def is_in_memory(url: str) -> bool:
    return url.startswith("memory://")


def memory_lock(url: str) -> Lock:
    """The one lock of a store in memory, which no other process sees."""
    return _MEMORY_LOCKS.setdefault(url, Lock())


class FolderStore(LocalStore):
    """A folder whose keys stay inside it: links, pipes and devices below it are refused, whoever put them there."""

    async def get(self, key: str, *rest: Any, **more: Any) -> Any:
        self._require_inside(key)
        return await super().get(key, *rest, **more)

    async def _set(self, key: str, *rest: Any, **more: Any) -> None:
        self._require_inside(key)
        return await super()._set(key, *rest, **more)

    async def delete(self, key: str) -> None:
        self._require_inside(key)
        return await super().delete(key)

    def get_sync(self, key: str, *rest: Any, **more: Any) -> Any:
        self._require_inside(key)
        return super().get_sync(key, *rest, **more)

    def set_sync(self, key: str, value: Any) -> None:
        self._require_inside(key)
        super().set_sync(key, value)

    def _require_inside(self, key: str) -> None:
        require_inside(self.root, key)


def require_inside(root: Path, key: str) -> None:
    """Refuse a key that leads out of `root`, or to something else than a file of its own."""
    place = str(root)
    for part in key.split("/"):
        place = f"{place}/{part}"
        try:
            status = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return
        if part == ".." or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise StoreError(f"{place} is a link or a device, not a file of the store", advice="it is not followed")
    if key.endswith("zarr.json") and status.st_size > METADATA_BYTES:
        raise StoreError(f"{place} has {status.st_size:,} bytes", advice=f"at most {METADATA_BYTES:,} are read")


def open_store(url: str, *, read_only: bool = False) -> Store:
    """The Zarr store at a local path, `memory://name`, or an object store's url (extra `s3`)."""
    if is_local(url):
        return FolderStore(local_path(url), read_only=read_only)
    if is_in_memory(url):
        return _MEMORY.setdefault(url, MemoryStore())
    # Made where it is used and never sent anywhere: it holds the credentials of this process.
    return ObjectStore(open_bucket(url), read_only=read_only)


def shared_bucket(node: Any) -> Any:
    """The object store that a Zarr group or array is in, where others may write at any time; None in other places."""
    store = node.store_path.store
    return store.store if isinstance(store, ObjectStore) else None


async def wait_for_writes() -> None:
    """Zarr's own thread goes on with what it was asked to write before an interruption: wait for it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=WRITE_SECONDS)


async def read_everything(store: Store) -> dict[str, bytes]:
    """Every key of a store of zarr's own with its bytes."""
    content = {}
    async for key in store.list():
        value = await store.get(key, default_buffer_prototype())
        content[key] = b"" if value is None else value.to_bytes()
    return content


def _is_missing_bucket(error: Exception) -> bool:
    """The only sign of it is in obstore's message; for objects that are not there it has a class of its own."""
    return "404 Not Found" in str(error) and not isinstance(error, FileNotFoundError)


def storage_error(url: str, error: Exception) -> InputError | RunError:
    """A refusal of the operating system or of an object store in one sentence; what may pass is a RunError."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"no space left on the device while writing {url}", advice=ADVICE[error.errno])
    if isinstance(error, PASSING) and not _is_missing_bucket(error):
        return StorageUnavailableError(
            f"the object store of {url} did not answer as it should, also when asked again ({first_line(error)})",
            advice="what was finished is kept, run it again to go on",
        )
    if _is_missing_bucket(error):
        reason, advice = "there is no such bucket", "make it, or check the url"
    elif isinstance(error, OSError):
        reason, advice = error.strerror or first_line(error), ADVICE.get(error.errno or 0, "check the path")
    else:
        reason, advice = first_line(error), REMOTE_ADVICE
    return StoreError(f"{url} cannot be written or read: {reason}", advice=advice)


def refusal_number(error: BaseException | None) -> int:
    """The system's number of the refusal below an error, EACCES where an object store denied access; 0 for others."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        if isinstance(error, DENIED):
            return errno.EACCES
        error = error.__cause__
    return 0


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """What the operating system or an object store refuses inside the block is raised as one sentence about `url`."""
    try:
        yield
    except STORAGE_ERRORS as error:
        raise storage_error(url, error) from error


@dataclass(frozen=True)
class GroupKind:
    """What a path should lead to: its name, the attribute that tells it from others, and what to do without it."""

    name: str
    key: str
    value: str
    advice: str

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        """Whether a group with these attributes is of this kind."""
        return bool(attributes.get(self.key) == self.value)

    def require(self, url: str, attributes: Mapping[str, Any]) -> None:
        """Refuse a group of another kind."""
        if not self.holds(attributes):
            kinds = [f"a {kind.name}" for kind in KINDS if kind.holds(attributes)]
            raise self.refusal(url, kinds[0] if kinds else "a Zarr group of something else")

    def require_folder(self, url: str) -> None:
        """Refuse a local path where no folder is; nothing can be said about other places before they are opened."""
        if is_local(url) and not local_path(url).is_dir():
            raise self.refusal(url, "a file") if local_path(url).exists() else self.missing(url)

    def missing(self, url: str) -> StoreError:
        """What to say of a place without a group."""
        if not is_local(url):
            return StoreError(f"there is no {self.name} at {url}", advice=self.advice)
        if not local_path(url).is_dir():
            return StoreError(f"{url} does not exist", advice=self.advice)
        is_empty = not any(local_path(url).iterdir())
        return self.refusal(url, "an empty folder" if is_empty else "a folder of something else")

    def refusal(self, url: str, what: str) -> StoreError:
        """What to say of something else at `url`."""
        return StoreError(f"{url} is not a {self.name} but {what}", advice=self.advice)

    def as_target(self) -> GroupKind:
        """The same kind where something is written to: anything else there is not replaced."""
        return replace(self, advice="choose another path, or remove it")


STORE = GroupKind("store", "gramline", "gram", "give the path of a store that `gramline gram build` wrote")
MODEL = GroupKind("model", "format", "gramline model", "give the path of a model that `gramline fit` wrote")
RANKER = GroupKind("ranker", "format", "gramline ranker", "give the path of a ranker that `gramline fit` wrote")
KINDS = (STORE, MODEL, RANKER)
EXPORTED = {"gramline": "export"}  # attributes of an exported array: by them alone it is known, and replaced
SAVED_LEARNERS = (MODEL, RANKER)  # what a newly trained one may replace
