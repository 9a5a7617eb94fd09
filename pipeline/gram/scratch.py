"""Who may use a scratch group: one process at a time, and the next one that factors the same matrix finds it again."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

from gramline.pipeline.files import is_same_file
from gramline.pipeline.storage.groups import is_local, local_path
from gramline.pipeline.storage.writer import remove_group


@dataclass(frozen=True)
class Claim:
    """A scratch group that nobody else uses until `release`."""

    scratch: str
    lock: IO[str] | None = None  # locked as long as it is open, also when the process is killed
    path: Path | None = None

    def release(self, *, remove: bool) -> None:
        """Let others have it; `remove` what it holds first."""
        if remove:
            remove_group(self.scratch)
        if self.lock is not None and self.path is not None:
            self.path.unlink(missing_ok=True)
            self.lock.close()


def claim_scratch(store: str, digest: str) -> Claim:
    """The first group of that digest beside the store that is free.

    In an object store nobody can be asked: there every claim gets a group of its own.
    """
    if not is_local(store):
        return Claim(f"{store}.factor-{digest}-{uuid4().hex[:8]}")
    number = 0
    while True:
        name = digest if number == 0 else f"{digest}-{number}"
        path = Path(f"{local_path(store)}.claim-{name}")
        lock = path.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            number += 1
            continue
        if is_same_file(lock, path):
            return Claim(f"{store}.factor-{name}", lock, path)
        lock.close()  # its last owner removed it after we had opened it
