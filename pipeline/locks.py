"""Locks on files: gone with their process, and taken over from a host that has died.

The system frees the lock of a process that ends. A process that was killed takes a moment to end: its lock is waited
for, even by those who wait for no living one. On a file system of several hosts, nobody may be left to free the locks
of a host that lost its power. So a file that is locked names the processes that hold it, and they touch it every
minute: one that names another host and was not touched for ten minutes is replaced by a new file, and the old lock is
worth nothing. Times are those of the file system, whatever the clocks of the hosts say.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock, Thread
from typing import IO, NamedTuple, Self
from weakref import WeakSet

BEAT_SECONDS = 60.0  # between two signs of life
DEAD_SECONDS = 600.0  # without one, after which another host counts as dead
ENDING_SECONDS = 60.0  # that a killed process may take to end; the memory of a large one is freed first
FIRST_LOOK, LAST_LOOK = 0.01, 1.0  # seconds between two looks at a lock that is waited for
PROCESSES = Path("/proc")  # of Linux; elsewhere nobody sees that a process is ending
EXITING = 0x4  # PF_EXITING of the flags in /proc/PID/stat: it runs no instruction of its own any more


class Holder(NamedTuple):
    """A process that holds a lock, as one line of the file."""

    host: str
    process: str = ""  # its number; nothing in files of earlier versions
    began: str = ""  # when, in ticks of its host: numbers are used again
    namespace: str = ""  # in which the number counts: containers have their own

    @classmethod
    def myself(cls) -> Holder:
        """This process."""
        try:
            here = PROCESSES / "self"
            began, namespace = _stat(here)[STARTED], str((here / "ns" / "pid").readlink())
        except (OSError, IndexError):
            return cls(socket.gethostname(), str(os.getpid()))
        return cls(socket.gethostname(), str(os.getpid()), began, namespace)

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}" if self.process else self.host

    def is_ending(self) -> bool:
        """Whether it is a process of this host that was killed or is gone: its lock is free in a moment."""
        me = Holder.myself()
        if not me.namespace or (self.host, self.namespace) != (me.host, me.namespace):
            return False  # nobody here knows
        folder = PROCESSES / self.process
        try:
            return _stat(folder)[STARTED] != self.began or all(map(_ends, (folder / "task").iterdir()))
        except FileNotFoundError:
            return True
        except (OSError, IndexError):
            return False


STATE, FLAGS, STARTED = 0, 6, 19  # places in what follows the name of the program in /proc/PID/stat


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _ends(thread: Path) -> bool:
    """Whether a thread is gone, exits, or has the signal that no program survives before it."""
    try:
        stat = _stat(thread)
        if stat[STATE] in "ZX" or int(stat[FLAGS]) & EXITING:
            return True
        status = (thread / "status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    pending = next((line.split()[1] for line in status.splitlines() if line.startswith("SigPnd:")), "0")
    return bool(int(pending, 16) >> (signal.SIGKILL - 1) & 1)


class FileLock:
    """A lock on a file, held until `release`, the end of a `with` block or the end of the process, however it ends."""

    taken_from: str = ""  # who had it and died with its host

    def __init__(self, path: Path, file: IO[str], *, shared: bool) -> None:
        self._path, self._file, self._is_shared = path, file, shared

    @classmethod
    def acquire(cls, path: Path, *, shared: bool = False, wait: bool = True) -> FileLock | None:
        """None where the folder of `path` is gone, or somebody who lives has the lock and nobody shall `wait`."""
        import fcntl  # not on Windows, where everything but locks is to be imported all the same

        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        pause, deadline, taken_from = FIRST_LOOK, time.monotonic() + ENDING_SECONDS, ""
        while True:
            try:
                lock = cls(path, path.open("a+", encoding="utf-8"), shared=shared)
            except FileNotFoundError:
                return None
            try:
                fcntl.flock(lock._file, how)
            except BlockingIOError:
                lock._file.close()
                if dead := _take_from_the_dead(path):
                    taken_from = dead
                elif _is_left(path):
                    if not wait and time.monotonic() >= deadline:
                        return None
                    time.sleep(FIRST_LOOK)
                else:
                    if not wait:
                        return None
                    time.sleep(pause)
                    pause = min(2 * pause, LAST_LOOK)
                continue
            if lock._is_current():
                lock.taken_from = taken_from
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
        """Name this process in the file, and touch it from now on; a full disk is no reason to have no lock."""
        with suppress(OSError):
            if not self._is_shared:
                self._file.truncate(0)
            if (me := Holder.myself()) not in holders(self._path):
                self._file.write(" ".join(me).rstrip() + "\n")
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


def holders(path: Path) -> list[Holder]:
    """Who holds the lock at `path`, some of whom may have let go of it since; nobody where there is no such file."""
    with suppress(OSError, TypeError):  # a line that no version writes
        return [Holder(*line.split()) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return []


def describe_holders(path: Path) -> str:
    """Who holds a lock and when they were heard of, for a sentence that refuses what they have; empty if unknown."""
    known = holders(path)
    if not known:
        return ""
    names = ", ".join(map(str, known))
    try:
        silent = silent_seconds(path)
    except OSError:
        return names
    return names if silent < 2 * BEAT_SECONDS else f"{names}, not heard of for {silent // 60:.0f} minutes"


def silent_seconds(path: Path) -> float:
    """Since the last sign of life, by the clock of the file system."""
    with TemporaryFile(dir=path.parent) as probe:
        now = os.fstat(probe.fileno()).st_mtime
    # Looked at last, so that a file which somebody has just put in its place is hardly ever taken for the old one.
    return now - path.stat().st_mtime


def _is_left(path: Path) -> bool:
    """Whether all who hold it are ending here."""
    known = holders(path)
    return bool(known) and all(holder.is_ending() for holder in known)


def _take_from_the_dead(path: Path) -> str:
    """Remove the file of a lock whose holders died with their host; names them where the lock may be tried again."""
    try:
        known = holders(path)
        if {holder.host for holder in known} <= {socket.gethostname()}:
            return ""  # this system frees the locks of its own processes
        if silent_seconds(path) < DEAD_SECONDS:
            return ""
        path.unlink(missing_ok=True)
    except OSError:
        return ""
    return ", ".join(map(str, known))


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
