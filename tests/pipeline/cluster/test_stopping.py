"""A stop while a cluster starts: one sentence, its own exit code, and nothing that outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster, SpecCluster

from gramline.pipeline.cluster.stopping import finished_first, nothing_left_behind, signals_as_interrupts

PATIENCE = 60.0
PROGRAM = "from gramline.pipeline.cli.main import main; main()"


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_stopped_as_it_starts_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "cluster.toml").write_text('[local]\n[workers]\nprocesses = 2\nmemory_limit = "1GiB"\n', "utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "cluster", "start", "cluster.toml", "--address-file", "address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        itself, deadline = psutil.Process(process.pid), time.monotonic() + PATIENCE
        while not (own := itself.children(recursive=True)) and time.monotonic() < deadline:
            time.sleep(0.01)  # the first process of a worker: the start is in the middle
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    sentence = "gramline: error: stopped; the cluster had not started yet, and nothing of it is left\n"
    assert (process.returncode, out, err) == (code, "", sentence)
    assert own
    assert {path.name for path in tmp_path.iterdir()} == {"cluster.toml"}
    deadline = time.monotonic() + 20
    while not all(is_gone(child) for child in own) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert all(is_gone(child) for child in own)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), finished_first():  # noqa: PT012 - the signal comes inside
        os.kill(os.getpid(), signal.SIGINT)
        done.append("finished")
    assert done == ["finished"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_block_that_does_not_end_is_interrupted() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), finished_first(grace=0.1):  # noqa: PT012 - the signal comes inside
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE)
    assert time.monotonic() - begun < PATIENCE / 2


def test_a_second_interrupt_is_not_deferred() -> None:
    with pytest.raises(KeyboardInterrupt), finished_first():  # noqa: PT012 - the signal comes inside
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second one was deferred")


def test_a_signal_raises_what_its_handler_raised() -> None:
    class Ended(KeyboardInterrupt):
        pass

    def end(*_: object) -> None:
        raise Ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Ended), signals_as_interrupts():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), signals_as_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_cluster_that_was_not_closed_is_ended() -> None:
    before, children = set(SpecCluster._instances), set(active_children())
    with pytest.raises(KeyboardInterrupt), nothing_left_behind():  # noqa: PT012 - the signal comes inside
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        raise KeyboardInterrupt
    assert all(cluster.status.name == "closed" for cluster in set(SpecCluster._instances) - before)
    assert not set(active_children()) - children
