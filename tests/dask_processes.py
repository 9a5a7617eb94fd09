"""Real Dask schedulers and workers on loopback, as processes of their own, on ports that nobody chose."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import environ
from pathlib import Path

LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
PATIENCE = 120.0  # seconds for a process to start on a busy machine


@contextmanager
def scheduler(folder: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """A scheduler; its address. What it says is in scheduler.log of `folder`."""
    found = folder / "scheduler.json"
    with process(folder, "scheduler", "--port", "0", "--scheduler-file", str(found), *options) as started:
        deadline = time.monotonic() + PATIENCE
        while started.poll() is None and time.monotonic() < deadline:
            try:
                address = str(json.loads(found.read_text("utf-8"))["address"])
                break
            except (OSError, ValueError):
                time.sleep(0.05)
        else:
            raise AssertionError((folder / "scheduler.log").read_text("utf-8"))
        yield address


@contextmanager
def process(
    folder: Path, part: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`dask scheduler` or `dask worker`, ended at last."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, *LOOPBACK]
    with (folder / f"{part}.log").open("ab") as log:
        started = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env={**environ, **(settings or {})}, start_new_session=True
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def tls_options(folder: Path, role: str) -> list[str]:
    """The options of a scheduler or worker with certificates of `gramline cluster certs`."""
    files = {"--tls-ca-file": "ca.pem", "--tls-cert": f"{role}.pem", "--tls-key": f"{role}.key"}
    return ["--protocol", "tls", *(text for option, name in files.items() for text in (option, str(folder / name)))]


def tls_files(folder: Path, role: str = "client") -> dict[str, str]:
    """The certificates as `connect` takes them."""
    names = {"tls_ca": "ca.pem", "tls_cert": f"{role}.pem", "tls_key": f"{role}.key"}
    return {option: str(folder / name) for option, name in names.items()}
