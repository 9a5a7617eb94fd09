"""The first line: for long commands on a terminal, before anything is loaded."""

from __future__ import annotations

import io

import pytest

from gramline.pipeline.cli.main import COMMANDS
from gramline.pipeline.cli.terminal.start import LONG, say_start


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["cv", "job.toml"], "gramline cv: starting\n"),
        (["gram", "build", "x.parquet"], "gramline gram build: starting\n"),
        (["gram", "status", "x.zarr"], ""),
        (["cv", "job.toml", "--json"], ""),
        (["fit", "--help"], ""),
        ([], ""),
    ],
)
def test_long_commands_say_that_they_start(arguments: list[str], line: str) -> None:
    terminal, log = Terminal(), io.StringIO()
    say_start(arguments, terminal)
    say_start(arguments, log)
    assert (terminal.getvalue(), log.getvalue()) == (line, "")


def test_every_name_is_a_command() -> None:
    for name, *rest in LONG:
        members, _ = COMMANDS[name]
        assert isinstance(members, str) if not rest else rest[0] in members
