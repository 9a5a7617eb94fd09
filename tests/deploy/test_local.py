"""deploy/local: its commands, on a port that nobody chose."""

from __future__ import annotations

from collections.abc import Callable

SETTINGS = """
[local]
[workers]
processes = 2
memory_limit = "1GiB"
"""


def test_the_commands_of_the_readme(run_readme: Callable[..., str]) -> None:
    assert "2 workers, 2 threads" in run_readme("local", SETTINGS)
