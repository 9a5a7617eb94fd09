"""What only one of the executors does: a cluster that shrinks, dies, refuses, or cannot be reached."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import dask
import pytest
from distributed import Client
from free_port import free_port
from scripted_tasks import Script, TitledScript, act, calls

from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.events import Event, TaskRetried, WorkerLost
from gramline.pipeline.executors import connect as dask_connect
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.executors.connect import TidyClient, connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.executors.worker_loss import ENDED


@contextmanager
def scheduler_process(folder: Path, options: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """A scheduler in a process of its own: its address and its process."""
    port = free_port()
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, *options, "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--no-show"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"tcp://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """A scheduler that a test may kill."""
    with scheduler_process(tmp_path) as started:
        yield started


def pids(client: Any) -> list[int]:
    return list(client.run(os.getpid).values())


def test_an_executor_needs_a_thread() -> None:
    with pytest.raises(InputError, match="at least 1 thread"):
        InlineExecutor(0)


def test_threads_of_the_cluster_are_counted(dask_client: Any) -> None:
    assert DaskExecutor(dask_client).n_threads == 2


def test_tasks_have_the_names_of_what_they_do(dask_client: Any, tmp_path: Path) -> None:
    executor = DaskExecutor(dask_client)
    outcomes = executor.run(act, [TitledScript(n, str(tmp_path / "journal"), seconds=0.2) for n in range(4)])
    next(outcomes)
    keys = dask_client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
    outcomes.close()
    assert any(key.startswith("act-script 3-") for key in keys)
    assert executor.n_sent == 4


def test_a_task_that_is_tried_again_is_told_of(dask_client: Any, tmp_path: Path) -> None:
    told: list[Event] = []
    journal = str(tmp_path / "journal")
    list(DaskExecutor(dask_client, listener=told.append).run(act, [TitledScript(7, journal, failures=2)]))
    list(InlineExecutor(listener=told.append).run(act, [TitledScript(8, journal, failures=1)]))
    assert told == [
        TaskRetried("act-script 7", "RuntimeError: task 7 fails", 1),
        TaskRetried("act-script 7", "RuntimeError: task 7 fails", 2),
        TaskRetried("act-script 8", "RuntimeError: task 8 fails", 1),
    ]


def test_the_memory_of_workers_is_known(dask_client: Any) -> None:
    known = DaskExecutor(dask_client).worker_memory()
    assert [(one.limit_bytes, one.threads) for one in known] == [(2 << 30, 1)] * 2
    assert all(one.worker.startswith("tcp://127.0.0.1:") for one in known)


def test_the_scheduler_forgets_finished_tasks(dask_client: Any, tmp_path: Path) -> None:
    executor = DaskExecutor(dask_client)
    sizes = []
    for finished, _ in enumerate(executor.run(act, (Script(n, str(tmp_path / "journal")) for n in range(200)))):
        if finished % 40 == 20:
            sizes.append(dask_client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    assert len(sizes) == 5
    assert max(sizes) <= 6 * executor.n_threads


def test_everything_listens_on_loopback(dask_client: Any) -> None:
    assert dask_client.scheduler.address.startswith("tcp://127.0.0.1:")
    assert dask_client.dashboard_link.startswith("http://127.0.0.1:")
    info = dask_client.scheduler_info(n_workers=-1)["workers"]
    assert all(address.startswith("tcp://127.0.0.1:") for address in info)


def test_a_worker_computes_with_one_thread_per_library(dask_client: Any) -> None:
    for settings in dask_client.run(lambda: dict(os.environ)).values():
        assert settings["NUMBA_NUM_THREADS"] == settings["OPENBLAS_NUM_THREADS"] == "1"


def test_a_task_that_kills_its_workers_fails_alone(tmp_path: Path) -> None:
    scripts = [Script(n, str(tmp_path / "journal"), kills=n == 2, seconds=0.01) for n in range(12)]
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), connect(workers=2) as client:
        outcomes = list(DaskExecutor(client).run(act, scripts))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [outcome.task.number for outcome in failed] == [2]
    assert "1 worker died while running it" in str(failed[0].error)
    assert "memory limit" in str(failed[0].error)
    assert {outcome.task.number for outcome in outcomes} == set(range(12))


def test_a_killed_worker_costs_its_tasks_another_run(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    told: list[Event] = []
    with connect(workers=2, memory_limit="1GiB") as client:
        scripts = [Script(n, str(journal), seconds=0.02) for n in range(40)]
        outcomes = DaskExecutor(client, listener=told.append).run(act, scripts)
        finished = {next(outcomes).task.number for _ in range(8)}
        os.kill(pids(client)[0], signal.SIGKILL)
        finished |= {outcome.task.number for outcome in outcomes if outcome.error is None}
    assert finished == set(range(40))
    assert len(calls(journal)) <= 40 + 8
    assert [one.reason for one in told if isinstance(one, WorkerLost)] == [ENDED]


def test_a_lost_scheduler_is_an_error_within_seconds(scheduler: tuple[str, Any]) -> None:
    address, process = scheduler
    with connect(address, timeout=10) as client:
        outcomes = DaskExecutor(client, patience=60).run(time.sleep, [0.0] * 4)
        killer = Timer(1.0, process.kill)
        start = time.monotonic()
        killer.start()
        with pytest.raises(ClusterError, match=rf"scheduler at {address} was lost.*goes on where it was"):
            next(outcomes)
        assert 1.0 < time.monotonic() - start < 60
        killer.join()


def test_a_client_that_closes_itself_is_closed_by_one_at_a_time(scheduler: tuple[str, Any]) -> None:
    client = connect(scheduler[0])
    closing: list[str] = []
    close_connections = client.rpc.close

    async def close_slowly() -> None:
        closing.append("begins")
        await asyncio.sleep(0.3)
        await close_connections()
        closing.append("ends")

    async def close_twice() -> None:
        client.rpc.close = close_slowly
        await asyncio.gather(client._close(), client._close(fast=True))

    client.sync(close_twice)
    client.close()
    assert closing == ["begins", "ends"]


def test_a_cluster_without_workers_is_given_up(scheduler: tuple[str, Any]) -> None:
    with connect(scheduler[0]) as client:
        outcomes = DaskExecutor(client, patience=1.5).run(time.sleep, [0.0])
        with pytest.raises(ClusterError, match="no workers for 2 s"):
            next(outcomes)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://nowhere.invalid:8786", "tcp://127.0.0.1:notaport"])
def test_an_unreachable_scheduler_is_an_error_within_seconds(address: str) -> None:
    start = time.monotonic()
    with pytest.raises(ClusterError, match=rf"no Dask scheduler answers at {address} .*check the address"):
        connect(address)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("said", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n"], ids=["silent", "another protocol"])
def test_a_port_that_is_no_scheduler_is_an_error_within_seconds(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def answer() -> None:
            held.append(server.accept()[0])
            held[0].sendall(said)

        thread = Thread(target=answer)
        thread.start()
        start = time.monotonic()
        with pytest.raises(ClusterError, match=r"no Dask scheduler.*check the port"):
            connect(f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout=1)
        assert time.monotonic() - start < 20
        thread.join()
        held[0].close()


def test_a_client_that_cannot_start_is_closed(scheduler: tuple[str, Any]) -> None:
    with pytest.raises(TypeError, match="ssl_context") as refused:
        TidyClient(scheduler[0].replace("tcp", "tls"), timeout=3)
    # A client that is left to the collector can be closed while the next one starts, which then waits for ever.
    frames = [frame for frame, _ in traceback.walk_tb(refused.value.__traceback__)]
    left = [value for frame in frames for value in frame.f_locals.values() if isinstance(value, Client)]
    assert left
    assert all(client.status == "closed" for client in left)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority of its own, with ca.pem, own.pem and own.key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("making certificates needs openssl")
    folder = tmp_path_factory.mktemp("tls")
    new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for command in (
        f"req -x509 {new_key} -days 2 -subj /CN=test-authority -keyout ca.key -out ca.pem",
        f"req {new_key} -subj /CN=test -keyout own.key -out own.csr",
        "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out own.pem",
    ):
        subprocess.run([openssl, *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


def test_a_tls_scheduler_is_reached_with_certificates(certificates: Path) -> None:
    own = {"tls_ca": "ca.pem", "tls_cert": "own.pem", "tls_key": "own.key"}
    files = {option: str(certificates / name) for option, name in own.items()}
    options = ["--protocol=tls", f"--tls-ca-file={files['tls_ca']}"]
    options += [f"--tls-cert={files['tls_cert']}", f"--tls-key={files['tls_key']}"]
    with scheduler_process(certificates, options) as (address, _):
        with connect(address.replace("tcp", "tls"), **files, timeout=30) as client:
            assert client.scheduler.address.startswith("tls://127.0.0.1:")
        for wrong, said in ((address.replace("tcp", "tls"), "certificates"), (address, "protocol")):
            with pytest.raises(ClusterError, match=said):
                connect(wrong, timeout=5)


def test_a_closed_port_is_no_refusal_of_certificates(certificates: Path) -> None:
    files = {"tls_ca": "ca.pem", "tls_cert": "own.pem", "tls_key": "own.key"}
    start = time.monotonic()
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tls://127.0.0.1:1 .*refused"):
        connect("tls://127.0.0.1:1", **{option: str(certificates / name) for option, name in files.items()})
    assert time.monotonic() - start < 20


def test_a_plain_scheduler_is_not_talked_to_with_tls(certificates: Path, scheduler: tuple[str, Any]) -> None:
    files = {"tls_ca": "ca.pem", "tls_cert": "own.pem", "tls_key": "own.key"}
    with pytest.raises(ClusterError, match="certificates"):
        connect(
            scheduler[0].replace("tcp", "tls"), **{option: str(certificates / name) for option, name in files.items()}
        )


def test_tls_needs_all_its_files(tmp_path: Path) -> None:
    for files, said in (
        ({"tls_ca": "ca.pem"}, "a CA, a certificate and a key"),
        ({"tls_ca": str(tmp_path / "ca"), "tls_cert": "c", "tls_key": "k"}, "cannot be read"),
    ):
        with pytest.raises(InputError, match=said):
            connect("tls://127.0.0.1:1", **files)


def test_a_worker_that_imports_its_script_is_told_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ClusterError, match="a worker has imported the script that starts it; in a script, put what"):
        connect(workers=1)


@pytest.mark.parametrize(
    ("said", "raised"),
    [
        (
            "Nanny failed to start.",
            r"a worker process did not start \(no memory\); in a script, put what it runs below",
        ),
        ("something else", "something else"),
    ],
)
def test_workers_that_do_not_start_are_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, said: str, raised: str
) -> None:
    def client(**_: Any) -> None:
        raise RuntimeError(said) from OSError("no memory")

    monkeypatch.setattr(dask_connect, "TidyClient", client)
    with pytest.raises(RuntimeError, match=raised):
        connect(workers=1)
