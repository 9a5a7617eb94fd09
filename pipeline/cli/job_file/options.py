"""Options that win over a job file: the command gets them as one record, and `load_job` puts them in their tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from gramline.kernels.parameters import parameters_of
from gramline.kernels.value_kinds import Choice, Flag, Kind, Number
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.cli.job_file.tables import TABLES
from gramline.pipeline.cli.terminal.notation import in_bytes
from gramline.pipeline.settings_file import Size

F = TypeVar("F", bound=Callable[..., Any])
job_option = click.option("--job", "job_path", metavar="FILE", help="TOML job file; options win over it.")


def table_option(place: str, *names: str, **settings: Any) -> Callable[[F], F]:
    """A click option for `place`, "table.key" of a job file, of the type that is declared there."""
    table, key = place.split(".")
    if table in TABLES:
        settings = _of_kind(parameters_of(TABLES[table])[key].kind) | settings
    return click.option(*names, f"{table}__{key}", **settings)


def _of_kind(kind: Kind) -> dict[str, Any]:
    """What click is to check of a value; what is declared besides is checked with the job."""
    match kind:
        case Number(whole=True, least=least):
            return {"type": int if least is None else click.IntRange(int(least))}
        case Choice(names=names):
            return {"type": click.Choice(names)}
        case Flag():
            return {"default": None}
        case Size():
            return {"callback": in_bytes, "metavar": "BYTES"}
    return {}


def takes_given(command: F) -> F:
    """Hands the command the values of its table options as one `given`; stands below them."""

    @wraps(command)
    def door(*, insecure_plain_text: bool = False, **arguments: Any) -> Any:
        tables: dict[str, dict[str, Any]] = {}
        for name in [name for name in arguments if "__" in name]:
            table, _, key = name.partition("__")
            if (value := arguments.pop(name)) is not None:
                tables.setdefault(table, {})[key] = value
        return command(given=OptionValues(tables, insecure_plain_text), **arguments)

    return cast(F, door)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order of the help page."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


threads_option = table_option("cluster.threads", "--threads", help="Threads per worker [default: 1].")
certificate_options = together(
    table_option("cluster.tls_ca", "--tls-ca", metavar="FILE", help="Certificate authority of a tls:// scheduler."),
    table_option("cluster.tls_cert", "--tls-cert", metavar="FILE", help="Certificate shown to a tls:// scheduler."),
    table_option("cluster.tls_key", "--tls-key", metavar="FILE", help="Key of that certificate."),
    click.option(
        "--insecure-plain-text",
        is_flag=True,
        help="Allow a tcp:// scheduler on a network. Dangerous: anyone who reaches its port runs code as you.",
    ),
    takes_given,
)
