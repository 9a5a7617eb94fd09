"""The first sign of life: libraries and corpora take seconds to load, and a terminal is not left empty meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

# Commands that may work for a while; by their first words.
LONG = (
    *(("demo",), ("fit",), ("predict",), ("evaluate",), ("cv",), ("report",), ("reproduce",)),
    *(("corpus", "import"), ("corpus", "candidates"), ("gram", "plan"), ("gram", "build"), ("gram", "append")),
    *(("gram", "verify"), ("gram", "export"), ("cache", "verify")),
)
SILENT = ("--json", "--help", "-h", "--stdin")  # what they write is read by programs, or is there at once


def say_start(arguments: Sequence[str], terminal: IO[str]) -> None:
    """One line on a terminal before anything is loaded; nothing in a log, and nothing for what is quick."""
    name = next((words for words in LONG if tuple(arguments[: len(words)]) == words), None)
    if name is not None and terminal.isatty() and not set(SILENT) & {*arguments}:
        print(f"gramline {' '.join(name)}: starting", file=terminal, flush=True)
