"""The settings file of a cluster (TOML): where it runs, with how much, under which certificates. Holds no secrets.

[scheduler], [workers], [tls], and one of [local], [ssh] and [slurm]. Paths are relative to the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from gramline.kernels.parameters import Boolean, Whole, WholeOrZero
from gramline.kernels.value_kinds import Words
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.addresses import DANGER, WAY_OUT, is_loopback
from gramline.pipeline.settings_file import ByteSize, FilePath, SettingsFile, TextList

NEVER = "never"
Name = Annotated[str, Words(may_be_empty=False)]


@dataclass(frozen=True)
class Scheduler:
    """Where the scheduler listens."""

    host: Name = "127.0.0.1"
    port: WholeOrZero = 0
    idle_timeout: Annotated[Name, "it ends itself after so long without work, or never"] = "1 hour"
    dashboard: Annotated[Boolean, "serve the dashboard of Dask, on loopback of the machine it runs on"] = False


@dataclass(frozen=True)
class Workers:
    """What every worker process may use; `scratch` takes what is spilled, `python` has gramline installed."""

    processes: Annotated[Whole, "on this machine, per host or per job"] = 1
    threads: Whole = 1
    memory_limit: ByteSize = 2 << 30
    scratch: FilePath | None = None
    python: Name | None = None


@dataclass(frozen=True)
class Tls:
    """The folder of certificates, as `gramline cluster certs` makes it; the same path on every machine."""

    folder: FilePath


@dataclass(frozen=True)
class Local:
    """Processes of this machine."""


@dataclass(frozen=True)
class Ssh:
    """The host of the scheduler, the hosts of the workers, and how to get in: by key, to hosts that are known."""

    scheduler: Name
    hosts: Annotated[tuple[str, ...], TextList(least=1)]
    username: Name | None = None
    port: WholeOrZero = 22
    key: FilePath | None = None
    known_hosts: FilePath | None = None


@dataclass(frozen=True)
class Slurm:
    """Worker jobs; the scheduler runs where the command is given, on a node that the workers reach."""

    jobs: Whole
    minimum_jobs: Annotated[WholeOrZero | None, "none: as many as jobs"] = None
    partition: Name | None = None
    account: Name | None = None
    walltime: Name = "01:00:00"
    logs: FilePath = "slurm-logs"
    prologue: Annotated[tuple[str, ...], TextList(), "shell lines before the worker starts, such as module load"] = ()
    directives: Annotated[tuple[str, ...], TextList(), "further options of sbatch"] = ()


Place = Local | Ssh | Slurm
PLACES: dict[str, type[Place]] = {"local": Local, "ssh": Ssh, "slurm": Slurm}
TABLES: dict[str, Any] = {"scheduler": Scheduler, "workers": Workers, "tls": Tls, **PLACES}


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

    def with_dashboard(self) -> ClusterSettings:
        return replace(self, scheduler=replace(self.scheduler, dashboard=True))

    def refuse_missing_dashboard(self) -> None:
        """InputError for a dashboard that could not be shown."""
        if not self.scheduler.dashboard:
            return
        if isinstance(self.place, Ssh):
            raise InputError(
                f"the dashboard of a scheduler on {self.place.scheduler} cannot be reached from here",
                advice="leave it out; [local] and [slurm] have their scheduler here",
            )
        if find_spec("bokeh") is None:
            raise InputError("the dashboard needs the package bokeh", advice="install gramline[dashboard]")

    def refuse_exposed(self, *, insecure_plain_text: bool) -> None:
        """InputError for a cluster without certificates that would listen on a network."""
        if self.tls is None and not self.is_on_loopback and not insecure_plain_text:
            raise InputError(
                f"the scheduler would listen on {self.scheduler.host} without encryption: {DANGER}; name the folder of "
                f"certificates as [tls] folder, or {WAY_OUT.partition(', ')[2]}"
            )


def load_settings(path: str | Path) -> ClusterSettings:
    """Read and check a settings file; an error names the line."""
    file = SettingsFile.read(str(path), "settings file")
    file.require_tables(TABLES)
    folder = Path(path).parent.absolute()  # the paths go to other machines
    tables = {name: file.table(name, TABLES[name], folder) for name in file.tables}
    chosen = [name for name in PLACES if name in tables]
    if len(chosen) != 1:
        found = f"found {' and '.join(f'[{name}]' for name in chosen)}" if chosen else "found none"
        raise InputError(f"one of [local], [ssh] and [slurm] says where the cluster runs; {found}", path=str(path))
    others = {name: table for name, table in tables.items() if name not in PLACES}
    return ClusterSettings(tables[chosen[0]], **others)
