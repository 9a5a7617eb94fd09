"""A scheduler and workers as processes of their own, to be killed, stopped and started again one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SETTINGS = Path(__file__).parents[2] / "deploy" / "local" / "dask.yaml"  # what we tell users to start theirs with
QUIET = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


class DaskProcesses:
    """`with DaskProcesses(folder, workers=2) as cluster: cluster.address`. Workers have nannies."""

    def __init__(
        self, folder: Path, *, workers: int = 2, settings: dict[str, str] | None = None, preload: Path | None = None
    ) -> None:
        self._folder, self._n_workers = folder, workers
        folder.mkdir(parents=True, exist_ok=True)
        # Dask's own settings, stronger than those of the file; and the tests' folder, for functions that tasks name.
        more = {f"DASK_DISTRIBUTED__{key}": value for key, value in (settings or {}).items()}
        paths = {"DASK_CONFIG": str(SETTINGS), "PYTHONPATH": str(Path(__file__).parents[1])}
        self._environment = os.environ | more | paths
        self._preload = [] if preload is None else ["--preload", str(preload)]
        self._port = 0
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Scheduler (on the port it had before) and workers."""
        where = self._folder / "scheduler.json"
        where.unlink(missing_ok=True)
        command = ["--host", "127.0.0.1", "--port", str(self._port), "--scheduler-file", str(where)]
        self.scheduler = self._run("dask_scheduler", [*command, *self._preload])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError, ValueError):
                self.address = json.loads(where.read_text())["address"]
                break
            time.sleep(0.05)
        self._port = int(self.address.rpartition(":")[2])
        for _ in range(self._n_workers):
            self.add_worker()

    def add_worker(self) -> None:
        local = str(self._folder / "scratch")
        command = [
            self.address,
            "--host",
            "127.0.0.1",
            "--nworkers",
            "1",
            "--nthreads",
            "1",
            "--local-directory",
            local,
        ]
        self.workers.append(self._run("dask_worker", [*command, "--local-directory", local]))

    def _run(self, module: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{module}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *arguments, *QUIET],
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    def kill_scheduler(self) -> None:
        """kill -9; its workers see it and end."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()

    def stop(self) -> None:
        """Everything, whatever state it is in."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.workers.clear()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()
