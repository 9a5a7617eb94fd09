"""The program itself stopped or killed in the middle of a build: the same command goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chaos.reliability import Ledger
from chaos.undisturbed import BLOCK_ROWS, Calm, tiles

PROGRAM = "from gramline.pipeline.cli.main import main; main()"
OPTIONS = ["--c", "0.7", "--gap", "0.3", "--block-rows", str(BLOCK_ROWS), "--workers", "1"]
STOPPED = "gramline: error: stopped; finished work is kept, the same command goes on where it was\n"


def start(calm: Calm, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, "gram", "build", str(calm.corpus_path), "-o", str(store), *OPTIONS]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_tiles(process: subprocess.Popen[str], store: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(tiles(store)) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it said; whatever else it started is gone as well."""
    try:
        said = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return said
        time.sleep(0.1)
    raise AssertionError("some of its processes outlive it")


def go_on(calm: Calm, store: Path, ledger: Ledger, fault: str) -> None:
    """The same command again: it computes what is missing, and no more."""
    done, total, begin = len(tiles(store)), len(calm.tiles), time.monotonic()
    assert 0 < done < total
    again = start(calm, store)
    wait_for_tiles(again, store, done + 1)
    seconds = time.monotonic() - begin
    out, err = ended(again)
    assert (again.returncode, err) == (0, "")
    assert f"{total - done:,} of {total:,} tiles to compute" in " ".join(out.split())  # long lines are folded
    calm.settle(store, ledger, fault, seconds=seconds)


def test_ctrl_c_ends_a_build_in_one_line_and_it_goes_on(middle_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    store = tmp_path / "x.zarr"
    process = start(middle_calm, store)
    wait_for_tiles(process, store, 4)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: also to its workers
    _, err = ended(process)
    assert (process.returncode, err) == (130, STOPPED)
    go_on(middle_calm, store, ledger, "Ctrl-C")


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("fault", "number", "times"),
    [
        ("kill -9 of the program", signal.SIGKILL, 1),
        ("SIGTERM to the program", signal.SIGTERM, 1),
        ("Ctrl-C twice", signal.SIGINT, 2),
    ],
)
def test_a_stopped_program_goes_on(
    long_calm: Calm, tmp_path: Path, ledger: Ledger, fault: str, number: signal.Signals, times: int
) -> None:
    store = tmp_path / "x.zarr"
    process = start(long_calm, store)
    wait_for_tiles(process, store, 8)
    for _ in range(times):
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        time.sleep(0.4)
    ended(process)
    assert process.returncode != 0
    go_on(long_calm, store, ledger, fault)


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_two_programs_build_the_same_store(long_calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    store, begin = tmp_path / "x.zarr", time.monotonic()
    programs = [start(long_calm, store) for _ in range(2)]
    for process in programs:
        _, err = ended(process)
        assert (process.returncode, err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]
    long_calm.settle(store, ledger, "two builds of one store at once: both", times=2, seconds=time.monotonic() - begin)
