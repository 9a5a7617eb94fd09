"""What killed writers leave behind: temporary files in and beside a local store, and segments that nothing names.

Killed and overtaken appends leave folders of structures in an object store. An append writes such a folder first and
names it last, and the change that names it is refused once anybody else has changed the list. So after a change of the
list, a folder that was there before it and is not named in it never will be.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gramline.pipeline.errors import StoreChangedError
from gramline.pipeline.storage.groups import Group, open_group, read_attributes
from gramline.pipeline.storage.object_store import REMOTE_ERRORS, dated_keys, delete, folders
from gramline.pipeline.storage.places import is_local, local_path, shared_bucket, storage_errors
from gramline.pipeline.storage.writer import write_attributes

STRAY_SECONDS = 3600.0  # a temporary file this old belongs to nobody any more
SEGMENTS = "rows/"
WRITTEN_BY_APPEND = re.compile(rf"{SEGMENTS}\d+-[0-9a-f]{{32}}")


@contextmanager
def segment_named(url: str, group: Group, own: str) -> Iterator[None]:
    """Around the change that names the segment `own`: removes it when the change is refused, otherwise older strays.

    A refusal is none when `own` is named all the same: then only the answer was lost, and others have appended since.
    """
    if shared_bucket(group) is None:
        yield
        return
    before = _unnamed(url, group)
    try:
        yield
    except StoreChangedError:
        with suppress(*REMOTE_ERRORS):  # the refusal is what the user must read
            if own in _named(url):
                return
            _remove(group, [own])
        raise
    with suppress(*REMOTE_ERRORS):  # strays only take space; the append is done
        _remove(group, _old(group, set(before) & set(_unnamed(url, group)), STRAY_SECONDS))


def sweep_segments(url: str, *, older_than: float = STRAY_SECONDS) -> int:
    """Remove the strays in an object store; how many objects. Younger ones may belong to somebody still writing.

    A change of the list that changes nothing in it comes first: whoever wrote them, and only slept, is refused.
    """
    group = open_group(url)
    if shared_bucket(group) is None:
        return 0
    with storage_errors(url):
        attributes, _ = read_attributes(url)
        strays = _old(group, _unnamed(url, group), older_than)
        if not strays:
            return 0
        try:
            write_attributes(group, attributes)
        except StoreChangedError:  # an append is going on; the next sweep is soon enough
            return 0
        return _remove(group, strays)


def _named(url: str) -> set[str]:
    return {segment["folder"] for segment in read_attributes(url)[0]["segments"]["rows"]}


def _unnamed(url: str, group: Group) -> list[str]:
    written = [folder for folder in folders(shared_bucket(group), SEGMENTS) if WRITTEN_BY_APPEND.fullmatch(folder)]
    named = _named(url)
    return [folder for folder in written if folder not in named]


def _old(group: Group, unnamed: Iterable[str], older_than: float) -> list[str]:
    """Those in which nothing was written lately; where servers cannot compare versions, only this protects a writer."""
    deadline, bucket = time.time() - older_than, shared_bucket(group)
    return [folder for folder in unnamed if all(written <= deadline for _, written in dated_keys(bucket, f"{folder}/"))]


def _remove(group: Group, unnamed: Iterable[str]) -> int:
    bucket = shared_bucket(group)
    keys = [key for folder in unnamed for key, _ in dated_keys(bucket, f"{folder}/")]
    delete(bucket, keys)
    return len(keys)


def sweep_partial(url: str, *, older_than: float = STRAY_SECONDS) -> int:
    """Remove what killed writers left in and beside a local store (`*.partial`); how many files and folders.

    Younger ones may belong to somebody who is still writing; so may all of them when the clock jumps, and then that
    somebody writes the tile again.
    """
    if not is_local(url):
        return 0
    path, deadline = local_path(url), time.time() - older_than
    strays = [folder for folder in path.parent.glob(f"{glob.escape(path.name)}.*.partial") if folder.is_dir()]
    strays += [Path(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(".partial")]
    count = 0
    for stray in strays:
        with suppress(FileNotFoundError):  # its writer may have finished just now
            if stray.lstat().st_mtime > deadline:
                continue
            shutil.rmtree(stray, ignore_errors=True) if stray.is_dir() else stray.unlink()
            count += 1
    return count
