"""The command line stopped by its own clock again and again, and as a program that ends itself while it writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOW = ("--stop-after", "0s", "--checkpoint-every", "0")
# `gramline`, ended by a signal when it writes its n-th checkpoint: after that, or in the middle of it.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from gramline.pipeline.cli.main import main

number, is_whole, last, replace = int(sys.argv.pop(1)), sys.argv.pop(1) == "after", int(sys.argv.pop(1)), Path.replace
n_written = 0

def ended(staged, target):
    global n_written
    n_written += str(target).endswith(".checkpoint")
    if n_written == last and is_whole:
        replace(staged, target)
    if n_written == last:
        os.kill(os.getpid(), number)
        time.sleep(60)  # until it is raised here
    return replace(staged, target)

Path.replace = ended
main()
"""


def end_by(number: int, when: str, nth: int, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """`gramline` and a signal that it sends itself, "within" or "after" its n-th write of a checkpoint."""
    program = [sys.executable, "-c", PROGRAM, str(number), when, str(nth), *map(str, command)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def run_to_the_end(gramline: Callable[..., Any], *command: str | Path, last: str = "") -> int:
    """The same command until it stops no more, and then says `last`; how often it did."""
    for n_stops in range(200):
        answer = gramline(*command)
        assert answer.code == 0
        assert "not used" not in answer.err
        if "stopped after" not in answer.out:
            assert last in answer.out
            return n_stops
        assert "the same command goes on" in answer.out
    raise AssertionError("it never ends")
