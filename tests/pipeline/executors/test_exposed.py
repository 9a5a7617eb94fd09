"""A cluster that talks in plain text over a network is neither joined nor used, unless the danger was accepted."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gramline.pipeline.cli.main import run
from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.executors.addresses import WAY_OUT
from gramline.pipeline.executors.choice import choose_executor
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor

ELSEWHERE = "tcp://192.0.2.1:8786"  # an address kept for examples


class PretendedClient:
    """What an executor asks a client before it runs anything."""

    def __init__(self, reached_at: str, listens_at: str, *workers: str) -> None:
        self.scheduler = SimpleNamespace(address=reached_at)
        self.listens_at, self.workers = listens_at, workers

    def scheduler_info(self) -> dict[str, Any]:
        return {"address": self.listens_at}

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)


HERE = "tcp://127.0.0.1:8786"
EXPOSED = [
    PretendedClient(ELSEWHERE, ELSEWHERE),
    PretendedClient(HERE, ELSEWHERE),
    PretendedClient(HERE, HERE, "tcp://127.0.0.1:1", "tcp://192.0.2.1:1"),
    PretendedClient("tls://192.0.2.1:8786", "tls://192.0.2.1:8786", "tcp://192.0.2.1:1"),
]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to connect is written down and fails."""
    tried: list[Any] = []

    def refuse(*arguments: Any, **_options: Any) -> None:
        tried.append(arguments)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "create_connection", refuse)
    return tried


@pytest.mark.parametrize("client", EXPOSED, ids=["scheduler", "its other interface", "a worker", "a worker beside TLS"])
def test_an_executor_refuses_an_exposed_cluster(client: Any) -> None:
    for action in (lambda: DaskExecutor(client), lambda: choose_executor(client, None)):
        with pytest.raises(InputError, match=r"at tcp://192\.0\.2\.1:\d+ is not encrypted") as caught:
            action()
        assert caught.value.advice == WAY_OUT
    assert DaskExecutor(client, insecure_plain_text=True).client is client


def test_an_executor_takes_a_cluster_on_loopback_or_with_tls() -> None:
    for protocol, host in (("tcp", "127.0.0.1"), ("tls", "192.0.2.1")):
        address = f"{protocol}://{host}:8786"
        client: Any = PretendedClient(address, address, f"{protocol}://{host}:1")
        assert DaskExecutor(client).client is client


def test_nothing_is_sent_to_a_scheduler_that_is_refused(no_network: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        connect(ELSEWHERE)
    assert caught.value.advice == WAY_OUT
    assert no_network == []
    with pytest.raises(ClusterError, match="no network in this test"):
        connect(ELSEWHERE, insecure_plain_text=True)
    assert len(no_network) == 1


def test_the_command_line_refuses_it_too(
    tmp_path: Path, no_network: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = str(tmp_path / "c.parquet")
    assert run(["corpus", "generate", "saleslog", "--sentences", "3", "--seed", "1", "-o", corpus]) == 0
    build = ["gram", "build", corpus, "-o", str(tmp_path / "g.zarr")]
    job = tmp_path / "job.toml"
    job.write_text(f'[cluster]\nscheduler = "{ELSEWHERE}"\n', "utf-8")
    for arguments in (["--scheduler", ELSEWHERE], ["--job", str(job)]):
        capsys.readouterr()
        assert run([*build, *arguments]) == 2
        assert "runs code as you" in capsys.readouterr().err
    assert no_network == []
    assert run([*build, "--job", str(job), "--insecure-plain-text"]) == 2
    assert "no network in this test" in capsys.readouterr().err


def test_a_job_file_cannot_accept_the_danger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.toml"
    job.write_text(f'[cluster]\nscheduler = "{ELSEWHERE}"\ninsecure_plain_text = true\n', "utf-8")
    assert run(["gram", "build", "--job", str(job)]) == 2
    assert "job.toml:3" in capsys.readouterr().err
