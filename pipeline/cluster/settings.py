"""The settings file of a cluster (TOML): where it runs, with how much, under which certificates. Holds no secrets.

[scheduler]  host, port, idle_timeout      idle_timeout = "never", or it ends itself after so long without work
[workers]    processes, threads, memory_limit, scratch, python       processes: on this machine, per host, per job
[tls]        folder                        as `gramline cluster certs` makes it; the same path on every machine
and one of
[local]
[ssh]        scheduler, hosts, username, port, key, known_hosts
[slurm]      jobs, minimum_jobs, partition, account, walltime, logs, prologue, directives
Paths are relative to the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from gramline.kernels.errors import did_you_mean
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.addresses import DANGER, WAY_OUT, is_loopback
from gramline.pipeline.toml_lines import JobLines

NEVER = "never"


@dataclass(frozen=True)
class Scheduler:
    """Where the scheduler listens."""

    host: str = "127.0.0.1"
    port: int = 0
    idle_timeout: str = "1 hour"


@dataclass(frozen=True)
class Workers:
    """What every worker process may use; `scratch` takes what is spilled, `python` has gramline installed."""

    processes: int = 1
    threads: int = 1
    memory_limit: str = "2GiB"
    scratch: str | None = None
    python: str | None = None


@dataclass(frozen=True)
class Tls:
    """The folder of certificates."""

    folder: str


@dataclass(frozen=True)
class Local:
    """Processes of this machine."""


@dataclass(frozen=True)
class Ssh:
    """The host of the scheduler, the hosts of the workers, and how to get in: by key, to hosts that are known."""

    scheduler: str
    hosts: tuple[str, ...]
    username: str | None = None
    port: int = 22
    key: str | None = None
    known_hosts: str | None = None


@dataclass(frozen=True)
class Slurm:
    """Worker jobs; the scheduler runs where the command is given, on a node that the workers reach."""

    jobs: int
    minimum_jobs: int | None = None  # as many as `jobs` by default
    partition: str | None = None
    account: str | None = None
    walltime: str = "01:00:00"
    logs: str = "slurm-logs"
    prologue: tuple[str, ...] = ()  # shell lines before the worker starts, such as module load
    directives: tuple[str, ...] = ()  # further options of sbatch


Place = Local | Ssh | Slurm
PLACES: dict[str, type[Place]] = {"local": Local, "ssh": Ssh, "slurm": Slurm}
TABLES: dict[str, Any] = {"scheduler": Scheduler, "workers": Workers, "tls": Tls, **PLACES}
PATHS = {("workers", "scratch"), ("tls", "folder"), ("ssh", "key"), ("ssh", "known_hosts"), ("slurm", "logs")}
MAY_BE_ZERO = {"port", "minimum_jobs"}

KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", lambda value: isinstance(value, str) and bool(value)),
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "tuple[str, ...]": (
        "a list of strings",
        lambda value: isinstance(value, list) and all(isinstance(item, str) and item for item in value),
    ),
}
Record = TypeVar("Record")


@dataclass(frozen=True)
class ClusterSettings:
    """A settings file, checked."""

    place: Place
    scheduler: Scheduler = Scheduler()
    workers: Workers = Workers()
    tls: Tls | None = None

    @property
    def is_on_loopback(self) -> bool:
        """True when nothing of the cluster leaves this machine."""
        hosts = [self.scheduler.host]
        if isinstance(self.place, Ssh):
            hosts += [self.place.scheduler, *self.place.hosts]
        return all(is_loopback(host) for host in hosts)

    def refuse_exposed(self, *, insecure_plain_text: bool) -> None:
        """InputError for a cluster without certificates that would listen on a network."""
        if self.tls is None and not self.is_on_loopback and not insecure_plain_text:
            raise InputError(
                f"the scheduler would listen on {self.scheduler.host} without encryption: {DANGER}; name the folder of "
                f"certificates as [tls] folder, or {WAY_OUT.partition(', ')[2]}"
            )


def load_settings(path: str | Path) -> ClusterSettings:
    """Read and check a settings file; an error names the line."""
    try:
        text = Path(path).read_text("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: the settings cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise InputError(f"{path}: the settings are not valid TOML: {error}") from None
    lines, folder = JobLines.of(str(path), text), Path(path).parent.absolute()
    for name, table in content.items():
        _refuse_unknown(name, TABLES, lines.where(name))
        if not isinstance(table, dict):
            raise InputError(f"{lines.where(name)}: {name!r} must be a table; write [{name}] above its settings")
        for key in table:
            _refuse_unknown(key, [field.name for field in fields(TABLES[name])], f"{lines.where(name, key)} [{name}]")
    chosen = [name for name in PLACES if name in content]
    if len(chosen) != 1:
        found = f"found {' and '.join(f'[{name}]' for name in chosen)}" if chosen else "found none"
        raise InputError(f"{path}: one of [local], [ssh] and [slurm] says where the cluster runs; {found}")

    def record(kind: type[Record], name: str) -> Record:
        return _record(kind, name, content.get(name, {}), lines, folder)

    return ClusterSettings(
        record(PLACES[chosen[0]], chosen[0]),
        record(Scheduler, "scheduler"),
        record(Workers, "workers"),
        record(Tls, "tls") if "tls" in content else None,
    )


def _record(kind: type[Record], name: str, table: dict[str, Any], lines: JobLines, folder: Path) -> Record:
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every kind here is a dataclass
        if field.name not in table:
            if field.default is MISSING:
                raise InputError(f"{lines.where(name)} [{name}]: {field.name} is missing")
            continue
        value = table[field.name]
        words, fits = KINDS[str(field.type).removesuffix(" | None")]
        least = 0 if field.name in MAY_BE_ZERO else 1
        if not fits(value) or (isinstance(value, int) and value < least):
            words += f" of at least {least}" if words == "a whole number" else ""
            raise InputError(f"{lines.where(name, field.name)} [{name}]: {field.name} must be {words}, got {value!r}")
        if (name, field.name) in PATHS:
            value = str(folder / Path(value).expanduser())
        values[field.name] = tuple(value) if isinstance(value, list) else value
    if name == "ssh" and not values["hosts"]:
        raise InputError(f"{lines.where(name, 'hosts')} [{name}]: hosts must name at least one host")
    return kind(**values)


def _refuse_unknown(key: str, known: Any, where: str) -> None:
    if key not in known:
        raise InputError(f"{where}: there is no setting {key!r}", advice=did_you_mean(key, known))
