"""Locks are freed with their process, and taken over from hosts that died, never from this one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from threading import Timer

import pytest

from gramline.pipeline import locks
from gramline.pipeline.locks import Beats, FileLock


@contextmanager
def held(path: Path, host: str, silent_seconds: float) -> Iterator[None]:
    """A lock as another host leaves it: the system never frees it, and nobody touches it any more."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{host}\n")
        file.flush()
        then = time.time() - silent_seconds
        os.utime(path, (then, then))
        yield


def test_a_file_names_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = (FileLock.acquire(path, shared=True, wait=False) for _ in range(2))
    assert first is not None
    assert second is not None
    assert path.read_text() == f"{gethostname()}\n"
    assert FileLock.acquire(path, wait=False) is None
    first.release()
    assert path.read_text() == f"{gethostname()}\n"
    second.release()
    assert path.read_text() == ""


def test_the_lock_of_a_dead_host_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path, "elsewhere", locks.DEAD_SECONDS + 60):
        taken = FileLock.acquire(path, wait=False)
        assert taken is not None
        assert path.read_text() == f"{gethostname()}\n"
        assert FileLock.acquire(path, wait=False) is None
        taken.release()


@pytest.mark.parametrize(("host", "silent"), [("elsewhere", 60.0), (gethostname(), 10**6), ("", 10**6)])
def test_the_lock_of_a_living_one_is_not(tmp_path: Path, host: str, silent: float) -> None:
    path = tmp_path / "lock"
    with held(path, host, silent):
        assert FileLock.acquire(path, wait=False) is None
        assert FileLock.acquire(path, shared=True, wait=False) is None


def test_who_waits_gets_it_when_its_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    hold = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); "
    with subprocess.Popen(
        [sys.executable, "-c", f"{hold} import time; time.sleep(0.2)", str(path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        lock = FileLock.acquire(path)
    assert lock is not None
    lock.release(remove=True)
    assert not path.exists()


def test_no_folder_no_lock(tmp_path: Path) -> None:
    assert FileLock.acquire(tmp_path / "none" / "lock") is None


def test_what_is_held_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(locks, "_beats", Beats())
    path = tmp_path / "lock"
    lock = FileLock.acquire(path)
    assert lock is not None
    os.utime(path, (0, 0))
    deadline = time.monotonic() + 10
    while path.stat().st_mtime == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.stat().st_mtime > 0
    lock.release()


def test_patience_outlasts_a_lock_that_is_let_go_soon(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock.acquire(path)
    assert lock is not None
    Timer(0.1, lock.release).start()
    assert FileLock.acquire(path, wait=False, patience=0.01) is None
    taken = FileLock.acquire(path, wait=False, patience=30.0)
    assert taken is not None
    taken.release()
