"""Locks on files: gone with their process, and taken over from a host that has died.

The system frees the lock of a process that ends. On a file system of several hosts, nobody may be left to free those of
a host that lost its power. So a file that is locked names the hosts that hold it, and they touch it every minute: one
that names another host and was not touched for ten minutes is replaced by a new file, and the old lock is worth
nothing. Times are those of the file system, whatever the clocks of the hosts say.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock, Thread
from typing import IO, Self
from weakref import WeakSet

BEAT_SECONDS = 60.0  # between two signs of life
DEAD_SECONDS = 600.0  # without one, after which another host counts as dead
FIRST_LOOK, LAST_LOOK = 0.01, 1.0  # seconds between two looks at a lock that is waited for


class FileLock:
    """A lock on a file, held until `release`, the end of a `with` block or the end of the process, however it ends."""

    def __init__(self, path: Path, file: IO[str], *, shared: bool) -> None:
        self._path, self._file, self._is_shared = path, file, shared

    @classmethod
    def acquire(cls, path: Path, *, shared: bool = False, wait: bool = True, patience: float = 0.0) -> FileLock | None:
        """None where the folder of `path` is gone, or somebody else has the lock and nobody shall `wait`.

        Who does not wait still has `patience`, in seconds.
        """
        import fcntl  # not on Windows, where everything but locks is to be imported all the same

        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        pause, deadline = FIRST_LOOK, time.monotonic() + patience
        while True:
            try:
                lock = cls(path, path.open("a+", encoding="utf-8"), shared=shared)
            except FileNotFoundError:
                return None
            try:
                fcntl.flock(lock._file, how)
            except BlockingIOError:
                lock._file.close()
                if not _take_from_the_dead(path):
                    if not wait and time.monotonic() >= deadline:
                        return None
                    time.sleep(pause)
                    pause = min(2 * pause, LAST_LOOK)
                continue
            if lock._is_current():
                lock._sign()
                return lock
            lock._file.close()  # its last owner removed the file after we had opened it

    def _is_current(self) -> bool:
        """False when somebody removed or replaced the file after it was opened here; then the lock is worth nothing."""
        try:
            here = self._path.stat()
        except FileNotFoundError:
            return False
        opened = os.fstat(self._file.fileno())
        return (here.st_dev, here.st_ino) == (opened.st_dev, opened.st_ino)

    def _sign(self) -> None:
        """Name this host in the file, and touch it from now on; a full disk is no reason to have no lock."""
        with suppress(OSError):
            if not self._is_shared:
                self._file.truncate(0)
            if socket.gethostname() not in _hosts(self._path):
                self._file.write(f"{socket.gethostname()}\n")
                self._file.flush()
            self.beat()
        _beats.add(self)

    def beat(self) -> None:
        """A sign of life."""
        os.utime(self._file.fileno())

    def release(self, *, remove: bool = False) -> None:
        """Let others have it; `remove` its file first."""
        _beats.discard(self)
        if remove:
            self._path.unlink(missing_ok=True)
        else:
            self._unsign()
        self._file.close()

    def _unsign(self) -> None:
        """The last one to hold it leaves no name behind."""
        import fcntl

        with suppress(OSError):  # others share it, or the disk is gone
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.truncate(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


def _hosts(path: Path) -> set[str]:
    return set(path.read_text("utf-8").split())


def _take_from_the_dead(path: Path) -> bool:
    """Remove the file of a lock whose holders died with their host; True where the lock may be tried again."""
    try:
        if _hosts(path) <= {socket.gethostname()}:
            return False  # this system frees the locks of its own processes
        with TemporaryFile(dir=path.parent) as probe:
            now = os.fstat(probe.fileno()).st_mtime
        # Looked at last, so that a file which somebody has just put in its place is hardly ever taken for the old one.
        if now - path.stat().st_mtime < DEAD_SECONDS:
            return False
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


class Beats:
    """Touches the files of all locks that this process holds, from a thread of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: WeakSet[FileLock] = WeakSet()
        self._thread: Thread | None = None

    def add(self, lock: FileLock) -> None:
        with self._lock:
            self._held.add(lock)
            if self._thread is None or not self._thread.is_alive():  # a forked process has no threads
                self._thread = Thread(target=self._run, name="gramline-locks", daemon=True)
                self._thread.start()

    def discard(self, lock: FileLock) -> None:
        with self._lock:
            self._held.discard(lock)

    def _run(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self._lock:
                for lock in self._held:
                    with suppress(OSError, ValueError):  # the disk is gone, the file is being closed
                        lock.beat()


_beats = Beats()  # of this process
