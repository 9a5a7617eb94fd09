"""Opens a Dask cluster in the place that a settings file names, and keeps it until a signal ends it.

Listens on loopback, or with certificates.
"""

# Dask annotates only part of what is called here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

import dask.config
from distributed import LocalCluster, Security, SSHCluster

from gramline.pipeline.cluster.settings import NEVER, ClusterSettings, Local, Slurm, Ssh
from gramline.pipeline.cluster.stopping import finished_first, nothing_left_behind, signals_as_interrupts
from gramline.pipeline.errors import ClusterError, InputError, first_line
from gramline.pipeline.executors.connect import quiet, start_cause, use_worker_settings
from gramline.pipeline.executors.dashboard import serves_dashboard
from gramline.pipeline.executors.worker_settings import ONE_THREAD, SETTINGS
from gramline.pipeline.files import write_whole

# The HTTP server cannot be switched off, and TLS does not cover it; port 0 of loopback keeps it to this machine.
# Workers never have a dashboard, the scheduler where it is asked for.
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
NO_DASHBOARD_OPTIONS = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
ROLES = ("scheduler", "worker", "client")
ENDS = {"cert": "pem", "key": "key"}
NANNY_BYTES = 256 << 20  # of a job's memory, beside its workers: their supervisor
REPLACED_AFTER = "60s"  # a job that is gone comes back only as a new one
LOOK_EVERY = 2.0  # seconds between two looks whether the scheduler still answers
TRAVELS = ("distributed", "logging")  # parts of Dask's configuration that other machines need
FIRST_PAGE = 15.0  # seconds for the first page of a dashboard, on a busy machine


Report = Callable[[str, int, int, str], None]  # address, workers that are there and that were asked for, dashboard


@contextmanager
def opened(settings: ClusterSettings, *, insecure_plain_text: bool = False) -> Iterator[Any]:
    """The running Dask cluster that the settings describe; it ends with the block."""
    settings.refuse_exposed(insecure_plain_text=insecure_plain_text)
    settings.refuse_missing_dashboard()
    if settings.tls is not None:
        _check_certificates(settings)
    _configure(settings)
    with ExitStack() as stack:
        stack.enter_context(nothing_left_behind())
        with finished_first():
            cluster = _start(settings)
            stack.callback(cluster.close)
        yield cluster


def _start(settings: ClusterSettings) -> Any:
    opener = {Local: _local, Ssh: _ssh, Slurm: _slurm}[type(settings.place)]
    try:
        return opener(settings)
    except ImportError as error:
        raise InputError(f"this place needs the package {error.name}", advice="install gramline[cluster]") from error
    except Exception as error:
        # The SSH library has many classes of its own, and Dask raises bare Exceptions for what happened far away.
        if not isinstance(error, OSError | RuntimeError | ValueError) and not isinstance(settings.place, Ssh):
            raise
        why = first_line(start_cause(error))
        raise ClusterError(f"the cluster did not start: {why}", advice="check the settings file") from error


def is_alive(cluster: Any) -> bool:
    """False once the scheduler has ended, for want of work or for whatever reason."""
    try:
        cluster.sync(cluster.scheduler_comm.identity)
    except Exception:  # noqa: BLE001 - a scheduler that cannot answer is gone
        return False
    return bool(cluster.status.name == "running")


def _check_certificates(settings: ClusterSettings) -> None:
    for name in _files(settings).values():
        if not Path(name).is_file():
            raise InputError(f"{name} is not there", advice="make the certificates with `gramline cluster certs`")


def _files(settings: ClusterSettings) -> dict[str, str]:
    """Certificate files by the names that distributed.Security has for them."""
    assert settings.tls is not None
    folder = Path(settings.tls.folder)
    files = {f"tls_{role}_{kind}": str(folder / f"{role}.{end}") for role in ROLES for kind, end in ENDS.items()}
    return {"tls_ca_file": str(folder / "ca.pem"), **files}


def _configure(settings: ClusterSettings) -> None:
    """Dask's configuration of this process, which is what other machines inherit."""
    use_worker_settings()
    if settings.tls is not None:
        files, root = _files(settings), "distributed.comm"
        names = {f"{root}.tls.{role}.{kind}": files[f"tls_{role}_{kind}"] for role in ROLES for kind in ENDS}
        dask.config.set({f"{root}.require-encryption": True, f"{root}.tls.ca-file": files["tls_ca_file"], **names})


def _security(settings: ClusterSettings) -> Security | None:
    return None if settings.tls is None else Security(require_encryption=True, **_files(settings))


def _protocol(settings: ClusterSettings) -> str:
    return "tcp" if settings.tls is None else "tls"


def _scheduler_options(settings: ClusterSettings) -> dict[str, Any]:
    scheduler = settings.scheduler
    idle = {} if scheduler.idle_timeout == NEVER else {"idle_timeout": scheduler.idle_timeout}
    return {"host": scheduler.host, "port": scheduler.port, **idle, **NO_DASHBOARD, "dashboard": scheduler.dashboard}


def _local(settings: ClusterSettings) -> Any:
    workers, options = settings.workers, _scheduler_options(settings)
    return LocalCluster(
        n_workers=workers.processes,
        threads_per_worker=workers.threads,
        memory_limit=workers.memory_limit,
        local_directory=workers.scratch,
        processes=True,
        host=options.pop("host"),
        scheduler_port=options.pop("port"),
        dashboard_address=options.pop("dashboard_address"),
        protocol=f"{_protocol(settings)}://",
        security=_security(settings),
        scheduler_kwargs=options,
        silence_logs=logging.CRITICAL,
        env=ONE_THREAD,
        preload=["gramline.pipeline.executors.worker_settings"],
    )


def _ssh(settings: ClusterSettings) -> Any:
    place, workers = settings.place, settings.workers
    assert isinstance(place, Ssh)
    # All of Dask's configuration would travel on remote command lines, which everybody there can read.
    for name in set(dask.config.config) - set(TRAVELS):
        del dask.config.config[name]
    known = {"username": place.username, "client_keys": place.key, "known_hosts": place.known_hosts}
    options: dict[str, Any] = {
        "nthreads": workers.threads,
        "memory_limit": workers.memory_limit,
        "n_workers": workers.processes,
        "protocol": _protocol(settings),
        **NO_DASHBOARD,
    }
    options |= {} if workers.scratch is None else {"local_directory": workers.scratch}
    options |= {"host": settings.scheduler.host} if settings.is_on_loopback else {}
    return SSHCluster(
        [place.scheduler, *place.hosts],
        connect_options={"port": place.port} | {key: value for key, value in known.items() if value is not None},
        remote_python=workers.python or sys.executable,
        scheduler_options=_scheduler_options(settings) | {"protocol": _protocol(settings)},
        worker_options=options,
    )


def _slurm(settings: ClusterSettings) -> Any:
    from dask_jobqueue.slurm import SLURMCluster

    place, workers = settings.place, settings.workers
    assert isinstance(place, Slurm)
    dask.config.set({"distributed.deploy.lost-worker-timeout": REPLACED_AFTER})
    logs = Path(place.logs)
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "dask.json").write_text(json.dumps(SETTINGS, indent=2), "utf-8")
    encryption = [] if settings.tls is None else ["export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true"]
    job_bytes = workers.processes * workers.memory_limit
    host = ["--host", settings.scheduler.host] if settings.is_on_loopback else []
    cluster = SLURMCluster(
        queue=place.partition,
        account=place.account,
        walltime=place.walltime,
        cores=workers.processes * workers.threads,
        processes=workers.processes,
        memory=f"{job_bytes}B",
        job_mem=f"{-(-(job_bytes + NANNY_BYTES) // (1 << 20))}M",
        log_directory=str(logs),
        local_directory=workers.scratch,
        python=workers.python or sys.executable,
        job_script_prologue=[f"export DASK_CONFIG={quote(str(logs / 'dask.json'))}", *encryption, *place.prologue],
        job_extra_directives=list(place.directives),
        death_timeout=60,
        protocol=f"{_protocol(settings)}://",
        security=_security(settings),
        scheduler_options=_scheduler_options(settings),
        worker_extra_args=[*NO_DASHBOARD_OPTIONS, *host],
        silence_logs="error",
    )
    least = place.jobs if place.minimum_jobs is None else place.minimum_jobs
    # `scale` would not replace a job that was lost; `adapt` does.
    cluster.adapt(minimum_jobs=least, maximum_jobs=max(least, place.jobs))
    return cluster


def serve(
    settings: ClusterSettings, *, wait: float, insecure_plain_text: bool, address_file: str | None, report: Report
) -> None:
    """Keep the cluster until SIGINT, SIGTERM or SIGHUP; ClusterError when its scheduler ends before.

    `report` is called once, when all workers came or `wait` seconds are over; a queue may take longer than that. A
    signal before it is raised (KeyboardInterrupt), one after it is the cluster's regular end.
    """
    quiet()
    with signals_as_interrupts(), opened(settings, insecure_plain_text=insecure_plain_text) as cluster:
        address, wanted = str(cluster.scheduler_address), n_wanted(settings)
        with _announced(address_file, address):
            deadline = time.monotonic() + wait
            while len(cluster.scheduler_info["workers"]) < wanted and time.monotonic() < deadline:
                time.sleep(0.1)
            try:
                report(address, len(cluster.scheduler_info["workers"]), wanted, dashboard_of(cluster))
                while is_alive(cluster):
                    time.sleep(LOOK_EVERY)
            except KeyboardInterrupt:
                return
        raise ClusterError(
            f"the scheduler at {address} ended by itself, perhaps after {settings.scheduler.idle_timeout} without work "
            "(idle_timeout)",
            advice="start it again",
        )


def dashboard_of(cluster: Any) -> str:
    """Where its dashboard is; empty where nobody serves one."""
    port = cluster.scheduler_info.get("services", {}).get("dashboard")
    link = f"http://127.0.0.1:{port}/status"
    return link if port and serves_dashboard(link, FIRST_PAGE) else ""


def n_wanted(settings: ClusterSettings) -> int:
    """Worker processes that the settings ask for at least."""
    place, processes = settings.place, settings.workers.processes
    if isinstance(place, Ssh):
        return processes * len(place.hosts)
    if isinstance(place, Slurm):
        return processes * (place.jobs if place.minimum_jobs is None else place.minimum_jobs)
    return processes


@contextmanager
def _announced(path: str | None, address: str) -> Iterator[None]:
    """The address in a file that appears whole, for as long as the block runs."""
    if path is None:
        yield
        return
    target = Path(path)
    try:
        write_whole(target, f"{address}\n")
        yield
    finally:
        with suppress(OSError):
            target.unlink()
