"""Commands in processes of their own that are killed, or whose scheduler or worker is, until they come to their end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.dask_processes import DaskProcesses

PROGRAM = "from gramline.pipeline.cli.main import main; main()"
LOST = (1, 2)  # how a command ends whose scheduler is lost, or not reached any more


def start(*arguments: str | Path, folder: Path) -> subprocess.Popen[str]:
    """`gramline` as a process in a folder."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def n_written(folder: Path) -> int:
    """Files of a run and its cache: they grow in number while something is done."""
    return sum(len(files) for _, _, files in os.walk(folder))


@dataclass
class Fire:
    """Kills its victim whenever `watched` has changed and a random pause is over."""

    victim: str  # "client", "scheduler" or "worker"
    watched: Callable[[], Any]
    kills: int
    longest_pause: float  # in seconds
    cluster: DaskProcesses | None = None
    has_result: Callable[[], bool] = lambda: False  # also of a command that was killed right after it wrote that
    n_runs: int = 0
    n_kills: int = 0
    seconds: float = 0.0  # of the last run of the command, which nobody killed

    def __post_init__(self) -> None:
        seed = random.randrange(1 << 30)
        sys.stdout.write(f"seed {seed}\n")
        self._draw = random.Random(seed)

    def run(self, command: Sequence[str | Path], folder: Path) -> str:
        """The same command until it has come to its end; what it says there, nothing where it was killed after it."""
        for _ in range(2 * self.kills + 1):
            begin, before = time.monotonic(), self.watched()
            process, self.n_runs = start(*command, folder=folder), self.n_runs + 1
            while self.n_kills < self.kills and process.poll() is None:
                if self.watched() != before:
                    time.sleep(self._draw.uniform(0.0, self.longest_pause))
                    if process.poll() is None and self._strike(process):
                        self.n_kills += 1
                    before = self.watched()
                    if self.victim != "worker":
                        break
                time.sleep(0.002)
            out, err = process.communicate(timeout=300)
            self._mend()
            if process.returncode == 0:
                self.seconds = time.monotonic() - begin
                return out
            if self.has_result():
                return ""
            assert self.victim != "worker", err
            assert self.victim == "client" or process.returncode in LOST, err
        raise AssertionError(f"it never ends: {err}")

    def _strike(self, process: subprocess.Popen[str]) -> bool:
        """kill -9; False where nobody was there to be killed."""
        if self.victim == "client":
            process.kill()
            return True
        assert self.cluster is not None
        if self.victim == "scheduler":
            self.cluster.kill_scheduler()
            return True
        workers = [pid for nanny in self.cluster.workers for pid in worker_processes(nanny.pid)]
        with suppress(ProcessLookupError, IndexError):  # between two of them there may be none
            os.kill(self._draw.choice(workers), signal.SIGKILL)  # its nanny starts another one
            return True
        return False

    def _mend(self) -> None:
        """A scheduler that is gone, and its workers, are started again; they may be gone after the last task, too."""
        if (
            self.cluster is not None
            and self.cluster.scheduler is not None
            and self.cluster.scheduler.poll() is not None
        ):
            self.cluster.stop()
            self.cluster.start()


def worker_processes(nanny: int) -> list[int]:
    """The processes below a nanny that run tasks; beside them is one that looks after shared resources."""
    found = []
    for path in Path(f"/proc/{nanny}/task").glob("*/children"):
        for pid in path.read_text().split():
            with suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


def events_of(path: Path) -> list[dict[str, Any]]:
    """What a command told, killed or not; the line that a kill cut off has the next one behind it."""
    lines = [line[line.rfind('{"time"') :] for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]
