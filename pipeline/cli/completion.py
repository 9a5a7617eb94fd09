"""`gramline completion`: the script that lets a shell complete commands, options and files."""

from __future__ import annotations

import click

from gramline.pipeline.cli.terminal.output import json_option, say, say_json
from gramline.pipeline.cli.terminal.shells import PROGRAM, SHELLS, VARIABLE


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print the script with which a shell completes commands, options and files; let your shell read it at its start.

    \b
    Example:
      gramline completion bash > ~/.gramline-complete.bash
      echo '. ~/.gramline-complete.bash' >> ~/.bashrc
      gramline completion zsh > ~/.gramline-complete.zsh
      echo '. ~/.gramline-complete.zsh' >> ~/.zshrc
      gramline completion fish > ~/.config/fish/completions/gramline.fish
    """
    script = SHELLS[shell](context.find_root().command, {}, PROGRAM, VARIABLE).source()
    if as_json:
        say_json({"shell": shell, "script": script})
    else:
        say(script)
