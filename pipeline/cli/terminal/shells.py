"""What a shell that completes a command line asks, and the answers; tests/pipeline/cli/test_completion.py asks some."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

PROGRAM = "gramline"
VARIABLE = "_GRAMLINE_COMPLETE"  # the shell sets it when it asks


class FilesToo(ShellComplete):
    """Where no command or option is meant, files are: nearly every argument is a path."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        known = super().get_completions(args, incomplete)
        return known if known or incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]


class Bash(FilesToo, BashComplete):
    """Of bash 4.4 or newer."""


class Zsh(FilesToo, ZshComplete):
    """Of zsh."""


class Fish(FilesToo, FishComplete):
    """Of fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def answer_shell(program: click.Command, question: str) -> int:
    """Print what can stand where the cursor is; `question` is the value of VARIABLE, such as bash_complete."""
    shell, _, what = question.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    click.echo(SHELLS[shell](program, {}, PROGRAM, VARIABLE).complete())
    return 0
