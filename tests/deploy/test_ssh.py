"""deploy/ssh: its commands against an sshd of the test's own, on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from free_port import free_port

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd wants this folder when root starts it

pytestmark = [
    pytest.mark.places,
    pytest.mark.skipif(
        SSHD is None or shutil.which("ssh-keygen") is None, reason="needs an SSH server: install openssh-server"
    ),
]


@dataclass(frozen=True)
class Server:
    pid: int
    port: int
    key: Path
    known_hosts: Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An sshd that knows one key."""
    folder = tmp_path / "sshd"
    folder.mkdir(mode=0o700)
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(parents=True, exist_ok=True)
    port = free_port()
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host_key",
        "PidFile": folder / "sshd.pid",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "PermitRootLogin": "prohibit-password",
        "StrictModes": "no",
    }
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    assert SSHD is not None
    process = subprocess.Popen([SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        if process.poll() is not None:
            pytest.skip(f"sshd does not start here: {(folder / 'sshd.log').read_text()}")
        yield Server(process.pid, port, folder / "user_key", folder / "known_hosts")
    finally:
        process.terminate()
        process.wait()


def settings(server: Server, tls: str = '[tls]\nfolder = "certs"') -> str:
    return f"""
[ssh]
scheduler = "127.0.0.1"
hosts = ["127.0.0.1", "127.0.0.1"]
username = "{getpass.getuser()}"
port = {server.port}
key = "{server.key}"
known_hosts = "{server.known_hosts}"
[scheduler]
idle_timeout = "5 minutes"
[workers]
processes = 1
memory_limit = "1GiB"
scratch = "scratch"
python = "{sys.executable}"
{tls}
"""


class Watch(Thread):
    """Remembers every process that came in through the test's own sshd; looks at no other."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.door, self.seen, self.is_over = psutil.Process(server.pid), set[psutil.Process](), Event()

    def run(self) -> None:
        while not self.is_over.wait(0.2):
            self.seen.update(self.door.children(recursive=True))

    def left(self) -> list[psutil.Process]:
        return [process for process in self.seen if process.is_running()]


def test_the_commands_of_the_readme(run_readme: Callable[..., str], server: Server) -> None:
    watch = Watch(server)
    watch.start()
    said = run_readme("ssh", settings(server))
    watch.is_over.set()
    watch.join()
    assert "tls://127.0.0.1:" in said
    assert "2 workers, 2 threads" in said
    assert len(watch.seen) >= 3
    deadline = time.monotonic() + 30
    while watch.left() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert watch.left() == []


def gramline(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = "from gramline.pipeline.cli.main import main; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_host_that_is_not_known_is_refused(server: Server, tmp_path: Path) -> None:
    server.known_hosts.write_text("")
    (tmp_path / "cluster.toml").write_text(settings(server, tls=""), "utf-8")
    job = gramline("cluster", "start", tmp_path / "cluster.toml")
    assert job.returncode == 1
    assert "gramline: error: the cluster did not start: Host key is not trusted" in job.stderr
    assert job.stderr.count("\n") == 1


def test_only_what_the_hosts_need_of_the_configuration_travels(server: Server, tmp_path: Path) -> None:
    """Dask would send all of it, on a command line that everybody on the host can read."""
    (tmp_path / "cluster.toml").write_text(settings(server, tls=""), "utf-8")
    (tmp_path / "dask.yaml").write_text("object-store: {secret: tiger}\n", "utf-8")
    program = f"""
import dask.config
from gramline.pipeline.cluster.settings import load_settings
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.cluster.places import opened
assert dask.config.get("object-store.secret") == "tiger"
with opened(load_settings({str(tmp_path / "cluster.toml")!r})) as cluster, connect(cluster.scheduler_address) as client:
    client.wait_for_workers(2)
    arrived = [client.run_on_scheduler(dask.config.get, "object-store", None)]
    arrived += client.run(dask.config.get, "object-store", None).values()
    pauses = set(client.run(dask.config.get, "distributed.worker.memory.pause").values())
print(arrived, pauses)
"""
    environment = os.environ | {"DASK_CONFIG": str(tmp_path / "dask.yaml")}
    job = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
    assert job.stdout.strip() == "[None, None, None] {0.85}", job.stderr
