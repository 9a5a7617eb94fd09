"""A worker whose network is cut and healed, in network namespaces: its tiles are computed elsewhere, none is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chaos.reliability import Ledger
from chaos.undisturbed import Calm

HUB, SCHEDULER, FIRST, SECOND = "hub", "s", "a", "b"
QUIET = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


def ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@contextmanager
def namespaces() -> Iterator[str]:
    """Three hosts on one switch, by names that begin with what this yields; skips where that cannot be had."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    start = f"g{uuid.uuid4().hex[:6]}"
    names = [start + part for part in (HUB, SCHEDULER, FIRST, SECOND)]
    try:
        for name in names:
            if (made := ip("netns", "add", name)).returncode:
                pytest.skip(f"network namespaces cannot be made here: {made.stderr.strip()}")
            ip("-n", name, "link", "set", "lo", "up")
        hub = names[0]
        ip("-n", hub, "link", "add", "br0", "type", "bridge")
        ip("-n", hub, "link", "set", "br0", "up")
        for number, name in enumerate(names[1:], start=1):
            wire = ip("link", "add", f"v{name}", "netns", hub, "type", "veth", "peer", "name", "eth0", "netns", name)
            if wire.returncode:
                pytest.skip(f"virtual wires cannot be made here: {wire.stderr.strip()}")
            ip("-n", hub, "link", "set", f"v{name}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield start
    finally:
        for name in names:
            ip("netns", "del", name)


@contextmanager
def running(namespace: str, arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program inside a namespace; plain text is fine on a wire that nobody else has."""
    environment = os.environ | {
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    with log.open("ab") as stream:
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, *arguments],
            stdout=stream,
            stderr=stream,
            env=environment,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_count(told: Path, count: int, job: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        done = int(told.read_text() or 0) if told.exists() else 0
        if done >= count or job.poll() is not None:
            return done
        time.sleep(0.05)
    raise AssertionError(f"the build did not come to {count} tiles")


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_cut_and_healed_network(long_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    address, log, told = "tcp://10.77.0.1:8786", tmp_path / "log", tmp_path / "told"
    scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", "10.77.0.1", "--port", "8786", *QUIET]
    build = ["-m", "chaos.cut_off_build", address, str(long_calm.corpus_path), str(tmp_path / "a.zarr"), str(told)]

    def worker(number: int) -> list[str]:
        where = ["--host", f"10.77.0.{number}", "--nworkers", "1", "--nthreads", "1"]
        scratch = ["--local-directory", str(tmp_path / f"scratch{number}")]
        return ["-m", "distributed.cli.dask_worker", address, *where, *scratch, *QUIET]

    with (
        namespaces() as start,
        running(start + SCHEDULER, scheduler, log),
        running(start + FIRST, worker(2), log),
        running(start + SECOND, worker(3), log),
        running(start + SCHEDULER, build, tmp_path / "build.log") as job,
    ):
        done = wait_for_count(told, 20, job)
        struck = time.monotonic()
        ip("-n", start + HUB, "link", "set", f"v{start}{SECOND}", "down")
        time.sleep(15)
        ip("-n", start + HUB, "link", "set", f"v{start}{SECOND}", "up")
        wait_for_count(told, done + 1, job)
        job.wait(timeout=300)
        seconds = time.monotonic() - struck
        assert job.returncode == 0, (tmp_path / "build.log").read_text()[-2000:]
    long_calm.settle(tmp_path / "a.zarr", ledger, "network of a worker cut and healed: whole build", seconds=seconds)
