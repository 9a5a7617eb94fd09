"""Real processes with certificates of `gramline cluster certs`: who has one gets in, everybody else does not."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dask_processes import process, scheduler, tls_files, tls_options

from gramline.pipeline.cluster.certificates import make_certificates
from gramline.pipeline.errors import ClusterError
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor

TIMEOUT = 15.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ours`, `theirs` of another authority, and `ended` ones."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "theirs"):
        make_certificates(folder / name)
    make_certificates(folder / "ended", days=1, now=datetime.now(UTC) - timedelta(days=2))
    return folder


@pytest.fixture(scope="module")
def address(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scheduler(tmp_path_factory.mktemp("scheduler"), tls_options(certificates / "ours", "scheduler")) as found:
        yield found


def test_with_certificates_tasks_run(address: str, certificates: Path, tmp_path: Path) -> None:
    options = [address, "--nthreads", "1", "--memory-limit", "1GiB", *tls_options(certificates / "ours", "worker")]
    with process(tmp_path, "worker", *options), connect(address, **tls_files(certificates / "ours")) as client:
        executor = DaskExecutor(client)
        assert [outcome.result for outcome in executor.run(abs, [-1])] == [1]
        assert address.startswith("tls://127.0.0.1:")
        assert all(worker.startswith("tls://127.0.0.1:") for worker in client.nthreads())


@pytest.mark.parametrize("authority", ["theirs", "ended"])
def test_a_stranger_is_refused(address: str, certificates: Path, tmp_path: Path, authority: str) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for source, name in (("ours", "ca.pem"), (authority, "client.pem"), (authority, "client.key")):
        (mixed / name).write_bytes((certificates / source / name).read_bytes())
    with pytest.raises(ClusterError, match=r"check the protocol .* and the certificates"):
        connect(address, **tls_files(mixed), timeout=TIMEOUT)


def test_a_client_without_certificate_is_refused(address: str) -> None:
    for given, timeout, said in (
        (address, TIMEOUT, "certificates"),
        (address.replace("tls://", "tcp://"), 1.0, "no Dask scheduler without TLS"),
    ):
        with pytest.raises(ClusterError, match=said):
            connect(given, timeout=timeout)


def test_a_raw_connection_without_certificate_gets_no_answer(address: str, certificates: Path) -> None:
    host, _, port = address.removeprefix("tls://").rpartition(":")
    context = ssl.create_default_context(cafile=str(certificates / "ours" / "ca.pem"))
    context.check_hostname = False
    said = b""
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as raw:
        try:
            with context.wrap_socket(raw) as door:
                said = door.recv(8)
        except OSError:
            pass  # the handshake, or the first read after it, is where TLS 1.3 says no
    assert said == b""


@pytest.mark.parametrize(("authority", "role"), [("theirs", "scheduler"), ("ours", "client")])
def test_a_scheduler_of_another_authority_or_with_a_client_certificate_is_not_trusted(
    certificates: Path, tmp_path: Path, authority: str, role: str
) -> None:
    options = tls_options(certificates / authority, role)
    with scheduler(tmp_path, options) as address, pytest.raises(ClusterError, match="certificates"):
        connect(address, **tls_files(certificates / "ours"), timeout=TIMEOUT)


def test_a_key_that_does_not_fit_is_never_shown(certificates: Path, tmp_path: Path, address: str) -> None:
    broken = tmp_path / "certs"
    broken.mkdir()
    for name in ("ca.pem", "client.pem"):
        (broken / name).write_bytes((certificates / "ours" / name).read_bytes())
    secret = (certificates / "theirs" / "client.key").read_text()
    (broken / "client.key").write_text(secret)
    with pytest.raises(ClusterError) as refused:
        connect(address, **tls_files(broken), timeout=TIMEOUT)
    body = secret.splitlines()[1]
    assert body not in str(refused.value)
