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

import pytest

from gramline.pipeline import locks
from gramline.pipeline.locks import Beats, FileLock, Holder, describe_holders, holders


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
    assert holders(path) == [Holder.myself()]
    assert describe_holders(path) == f"process {os.getpid()} on {gethostname()}"
    assert FileLock.acquire(path, wait=False) is None
    first.release()
    assert holders(path) == [Holder.myself()]
    second.release()
    assert path.read_text() == ""


def test_the_lock_of_a_dead_host_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path, "elsewhere", locks.DEAD_SECONDS + 60):
        taken = FileLock.acquire(path, wait=False)
        assert taken is not None
        assert taken.taken_from == "elsewhere"
        assert holders(path) == [Holder.myself()]
        assert FileLock.acquire(path, wait=False) is None
        taken.release()


@pytest.mark.parametrize(("host", "silent"), [("elsewhere", 60.0), (gethostname(), 10**6), ("", 10**6)])
def test_the_lock_of_a_living_one_is_not(tmp_path: Path, host: str, silent: float) -> None:
    path = tmp_path / "lock"
    with held(path, host, silent):
        assert FileLock.acquire(path, wait=False) is None
        assert FileLock.acquire(path, shared=True, wait=False) is None


def test_a_silent_host_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path, "elsewhere", 301.0):
        assert describe_holders(path) == "elsewhere, not heard of for 5 minutes"
    assert describe_holders(tmp_path / "none") == ""


HOLD = """
import sys, threading, time
from pathlib import Path
from gramline.pipeline.locks import FileLock
lock = FileLock.acquire(Path(sys.argv[1]))
memory = bytearray(300_000_000)
memory[::4096] = bytes(len(memory[::4096]))
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_taken_at_once(tmp_path: Path) -> None:
    """Also by those who wait for no living one: it has `kill -9` before it and a moment to end."""
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert FileLock.acquire(path, wait=False) is None
        (holder,) = holders(path)
        assert not holder.is_ending()
        other.kill()
        taken = FileLock.acquire(path, wait=False)
        assert taken is not None
        assert holder.is_ending()
        taken.release()


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="the system does not show its processes")
def test_who_is_ending(tmp_path: Path) -> None:
    me = Holder.myself()
    assert not me.is_ending()
    assert me._replace(began="0").is_ending()  # the number was given to another process
    assert not me._replace(began="0", namespace="pid:[1]").is_ending()  # of another container
    assert not me._replace(began="0", host="elsewhere").is_ending()
    assert not Holder(gethostname()).is_ending()  # an earlier version wrote it
    (tmp_path / "lock").write_text("a b c d e\n")
    assert holders(tmp_path / "lock") == []


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
