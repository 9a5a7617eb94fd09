"""Who may use a scratch group: one process at a time, and the next one that factors the same matrix finds it again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

from gramline.pipeline.files import FileLock
from gramline.pipeline.storage.groups import is_local, local_path
from gramline.pipeline.storage.writer import remove_group


@dataclass(frozen=True)
class Claim:
    """A scratch group that nobody else uses until `release`."""

    scratch: str
    lock: FileLock | None = None

    def release(self, *, remove: bool) -> None:
        """Let others have it; `remove` what it holds first."""
        if remove:
            remove_group(self.scratch)
        if self.lock is not None:
            self.lock.release(remove=True)


def claim_scratch(store: str, digest: str) -> Claim:
    """The first group of that digest beside the store that is free.

    In an object store nobody can be asked: there every claim gets a group of its own.
    """
    if not is_local(store):
        return Claim(f"{store}.factor-{digest}-{uuid4().hex[:8]}")
    for number in count():
        name = f"{digest}-{number}" if number else digest
        lock = FileLock.acquire(Path(f"{local_path(store)}.claim-{name}"), wait=False)
        if lock is not None:
            return Claim(f"{store}.factor-{name}", lock)
    raise AssertionError  # there is always a next number
