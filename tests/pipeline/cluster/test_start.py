"""`gramline cluster start` with a local cluster: announced, used with certificates, and gone without a trace."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gramline.pipeline.cluster import places
from gramline.pipeline.cluster import settings as cluster_settings
from gramline.pipeline.cluster.certificates import make_certificates
from gramline.pipeline.cluster.settings import ClusterSettings, Local, Ssh
from gramline.pipeline.errors import ClusterError, InputError

PATIENCE = 120.0
SSH = Ssh("head", ("node1",))
SETTINGS = """
[local]
[workers]
processes = 1
memory_limit = "1GiB"
scratch = "scratch"
[tls]
folder = "certs"
"""


def gramline(*arguments: str | Path) -> list[str]:
    program = "from gramline.pipeline.cli.main import main; main()"
    return [sys.executable, "-c", program, *map(str, arguments)]


def test_it_stands_until_it_is_reported_to_end(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs")
    (tmp_path / "cluster.toml").write_text(SETTINGS, "utf-8")
    address_file = tmp_path / "address"
    process = subprocess.Popen(
        gramline("cluster", "start", tmp_path / "cluster.toml", "--address-file", address_file),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        address = address_file.read_text().strip()
        assert address.startswith("tls://127.0.0.1:")
        assert said == [f"scheduler  {address}\n", "workers    1 of 1\n", "Ctrl-C ends it\n"]
        own = psutil.Process(process.pid).children(recursive=True)
        assert own
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 20
    while any(child.is_running() for child in own) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(child.is_running() for child in own)
    assert not address_file.exists()


def test_a_scheduler_that_ends_by_itself_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cluster = SimpleNamespace(scheduler_address="tcp://127.0.0.1:1", scheduler_info={"workers": {}})
    monkeypatch.setattr(places, "opened", lambda _settings, insecure_plain_text: nullcontext(cluster))  # noqa: ARG005
    looks = iter([True, False])
    monkeypatch.setattr(places, "is_alive", lambda _cluster: next(looks))
    monkeypatch.setattr(places, "LOOK_EVERY", 0.0)
    reported = []
    address_file = tmp_path / "address"

    def report(*what: object) -> None:
        reported.append((*what, address_file.read_text()))

    with pytest.raises(ClusterError, match=r"ended by itself, perhaps after 1 hour without work"):
        places.serve(
            ClusterSettings(Local()), wait=0.0, insecure_plain_text=False, address_file=str(address_file), report=report
        )
    assert reported == [("tcp://127.0.0.1:1", 0, 1, "", "tcp://127.0.0.1:1\n")]
    assert not address_file.exists()


def test_a_dashboard_is_told_only_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SimpleNamespace(scheduler_info={"services": {"dashboard": 8787}})
    for is_there, told in ((True, "http://127.0.0.1:8787/status"), (False, "")):
        monkeypatch.setattr(places, "serves_dashboard", lambda _link, _patience, is_there=is_there: is_there)
        assert places.dashboard_of(cluster) == told
    assert places.dashboard_of(SimpleNamespace(scheduler_info={"services": {}})) == ""


def test_a_dashboard_that_cannot_be_shown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_settings, "find_spec", lambda _name: None)
    for place, said in (
        (Local(), "needs the package bokeh"),
        (SSH, "on head cannot be"),
    ):
        wanted = ClusterSettings(place).with_dashboard()
        with pytest.raises(InputError, match=said):
            wanted.refuse_missing_dashboard()
    ClusterSettings(Local()).refuse_missing_dashboard()
