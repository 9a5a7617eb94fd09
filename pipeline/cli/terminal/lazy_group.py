"""A click group that knows the names of its commands and loads one only when it is called: `--help` stays quick."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from gramline.kernels.errors import did_you_mean

Commands: TypeAlias = "Mapping[str, tuple[str | Commands, str]]"


class LazyGroup(click.Group):
    """`members` maps a name to ("module:attribute", help line) of a command or (members, help line) of a group."""

    def __init__(self, *arguments: Any, members: Commands, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._members = dict(members)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self._members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._members:
            return None
        target, line = self._members[cmd_name]
        if not isinstance(target, str):
            return LazyGroup(cmd_name, members=target, help=line)
        module, _, attribute = target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._members and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {did_you_mean(args[0], self._members)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; no command is loaded for its help."""
        names = [name for name in self._members if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._members[name][1]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._members.items()])
