"""deploy/local: its commands, on a port that nobody chose."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "local"
SETTINGS = """
[local]
[workers]
processes = 2
memory_limit = "1GiB"
"""


def test_the_commands_of_the_readme(run_readme: Callable[..., str]) -> None:
    assert "2 workers, 2 threads" in run_readme("local", SETTINGS)


def test_processes_by_hand_with_certificates(run_readme: Callable[..., str], tmp_path: Path) -> None:
    shutil.copy(FOLDER / "dask.yaml", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    said = run_readme("local", block=1, changes={"18786": port, "2GiB": "1GiB"})
    assert "2 workers, 2 threads" in said
    assert "workers keep freed memory" in said
    assert "TLS handshake failed" not in said  # what a bare connection would leave in the scheduler's log
