"""Tasks that fail, sleep and kill on order, and leave a line per call where a test can count them.

Importable on Dask workers (`tests/` is on their path), so they travel by name.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from gramline.kernels.errors import KernelOverflowError


@dataclass(frozen=True)
class Script:
    """What one task does."""

    number: int
    journal: str  # file that gets one line per call
    failures: int = 0  # calls that fail before one works
    refuses: bool = False
    kills: bool = False
    seconds: float = 0.0


class TitledScript(Script):
    """A task that says what it is."""

    @property
    def title(self) -> str:
        return f"script {self.number}"


def act(script: Script) -> int:
    """The square of the task's number, unless the script says otherwise."""
    path = Path(script.journal)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, b"%d\n" % script.number)
    os.close(descriptor)
    if script.kills:
        os.kill(os.getpid(), signal.SIGKILL)
    if script.refuses:
        raise KernelOverflowError("a value", 1, 2, "float64", "lower c")
    time.sleep(script.seconds)
    if calls(path).count(script.number) <= script.failures:
        raise RuntimeError(f"task {script.number} fails")
    return script.number**2


def burn(seconds: float) -> float:
    """So many seconds of a processor, spent in this thread."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    return seconds


def calls(journal: Path) -> list[int]:
    """Numbers of the tasks called so far, in order."""
    return [int(line) for line in journal.read_text().split()] if journal.exists() else []
