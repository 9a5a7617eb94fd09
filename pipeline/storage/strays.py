"""What killed writers leave behind, in and beside a local store."""

from __future__ import annotations

import glob
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from gramline.pipeline.storage.groups import is_local, local_path

STRAY_SECONDS = 3600.0  # a temporary file this old belongs to nobody any more


def sweep_partial(url: str, *, older_than: float = STRAY_SECONDS) -> int:
    """Remove what killed writers left in and beside a local store (`*.partial`); how many files and folders.

    Younger ones may belong to somebody who is still writing; so may all of them when the clock jumps, and then that
    somebody writes the tile again.
    """
    if not is_local(url):
        return 0
    path, deadline = local_path(url), time.time() - older_than
    strays = [found for found in path.parent.glob(f"{glob.escape(path.name)}.*.partial") if found.is_dir()]
    strays += [Path(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(".partial")]
    count = 0
    for stray in strays:
        with suppress(FileNotFoundError):  # its writer may have finished just now
            if stray.lstat().st_mtime > deadline:
                continue
            shutil.rmtree(stray, ignore_errors=True) if stray.is_dir() else stray.unlink()
            count += 1
    return count
