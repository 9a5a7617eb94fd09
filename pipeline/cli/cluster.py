"""`gramline cluster certs|start|check`: certificates for a Dask cluster, a cluster, and whether one is fit for work."""

from __future__ import annotations

from pathlib import Path

import click

from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.job_file.options import certificate_options
from gramline.pipeline.cli.terminal.failures import FAILED
from gramline.pipeline.cli.terminal.output import count, json_option, say, say_folded, say_json, say_pairs
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.cluster.check import Access, Finding, check_cluster
from gramline.pipeline.cluster.places import serve
from gramline.pipeline.cluster.settings import load_settings
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.storage.object_store import refuse_secrets

NOT_STARTED = "the cluster had not started yet, and nothing of it is left"


@click.command()
@click.argument("folder", metavar="FOLDER")
@click.option("--days", type=int, default=30, show_default=True, help="How long they are valid.")
@json_option
def certs(folder: str, days: int, as_json: bool) -> None:
    """Make a certificate authority and certificates for scheduler, workers and clients in a new FOLDER.

    Whoever holds one of the keys runs code on the cluster: give every machine only the files that it needs. The key of
    the authority is not kept; when the certificates end, make new ones for all.

    \b
    Example:
      gramline cluster certs certs --days 30
    """
    try:  # the package cryptography is an extra
        from gramline.pipeline.cluster.certificates import ROLES, make_certificates
    except ImportError:
        raise InputError("making certificates needs the package cryptography; install gramline[cluster]") from None
    made = make_certificates(Path(folder), days=days)
    if as_json:
        say_json({"folder": folder, "files": [path.name for path in made.files], "ends": made.ends.isoformat()})
        return
    say(f"{folder}: certificates until {made.ends:%Y-%m-%d %H:%M} UTC")
    say_pairs({role: f"ca.pem  {role}.pem  {role}.key" for role in ROLES})
    say("keep the keys secret: whoever has one runs code on the cluster")


@click.command()
@click.argument("settings", metavar="SETTINGS")
@click.option("--address-file", metavar="FILE", help="Written when the scheduler answers, gone when it ends.")
@click.option("--wait", type=click.FloatRange(0), default=120, show_default=True, help="Seconds to wait for workers.")
@click.option("--dashboard", is_flag=True, help="Serve the dashboard of Dask on loopback; needs gramline[dashboard].")
@click.option(
    "--insecure-plain-text",
    is_flag=True,
    help="Listen on a network without TLS. Dangerous: anyone who reaches the port runs code as you.",
)
@json_option
def start(
    settings: str, address_file: str | None, wait: float, dashboard: bool, insecure_plain_text: bool, as_json: bool
) -> None:
    """Open the Dask cluster that a SETTINGS file (TOML) describes and keep it until Ctrl-C or SIGTERM.

    \b
    Example:
      gramline cluster start deploy/slurm/cluster.toml --address-file address
    """
    require_file(settings, "a settings file (TOML)")
    loaded = load_settings(settings)
    if dashboard:
        loaded = loaded.with_dashboard()

    def report(address: str, n_workers: int, n_wanted: int, link: str) -> None:
        if as_json:
            say_json({"scheduler": address, "workers": n_workers, "wanted": n_wanted, "dashboard": link or None})
            return
        shown = {"dashboard": link} if link else {}
        say_pairs({"scheduler": address, "workers": f"{n_workers} of {n_wanted}"} | shown)
        if loaded.scheduler.dashboard and not link:
            say("no dashboard: its page does not answer")
        say("Ctrl-C ends it")

    with when_stopped(NOT_STARTED):
        serve(loaded, wait=wait, insecure_plain_text=insecure_plain_text, address_file=address_file, report=report)


@click.command()
@click.option(
    "--scheduler", metavar="ADDRESS", required=True, help="Dask scheduler, tls://host:8786 or tcp://host:8786."
)
@click.option("--store", metavar="PATH", help="Folder or url of the stores: every worker writes and reads there.")
@click.option("--workers", type=click.IntRange(1), help="Wait until there are so many workers.")
@click.option("--wait", type=click.FloatRange(0), default=60, show_default=True, help="Seconds to wait for them.")
@certificate_options
@json_option
def check(
    scheduler: str, store: str | None, workers: int | None, wait: float, given: OptionValues, as_json: bool
) -> None:
    """Check versions, packages, clocks, memory and the store on every worker; exit code 1 if something needs mending.

    \b
    Example:
      gramline cluster check --scheduler tls://head:8786 --store /shared/grams \\
          --tls-ca ca.pem --tls-cert client.pem --tls-key client.key
    """
    if store is not None:
        refuse_secrets(store)  # it would be shown below
    files = load_job(None, given).cluster
    access = Access(files.tls_ca, files.tls_cert, files.tls_key, given.insecure_plain_text)
    findings = check_cluster(scheduler, store, access, workers=workers, wait=wait)
    bad = [finding for finding in findings if not finding.is_ok]
    if as_json:
        rows = [{"check": one.name, "ok": one.is_ok, "found": one.text, "advice": one.advice} for one in findings]
        say_json({"scheduler": scheduler, "ok": not bad, "checks": rows})
    else:
        for finding in findings:
            _say_finding(finding)
        say(f"all {count(len(findings), 'check')} passed" if not bad else f"{len(bad)} of {len(findings)} need mending")
    if bad:
        raise click.exceptions.Exit(FAILED)


def _say_finding(finding: Finding) -> None:
    """Two columns and a text; advice stands below, behind an arrow."""
    say_folded(f"{finding.name:<13}{'ok' if finding.is_ok else 'FIX':<6}", finding.text)
    if finding.advice:
        say_folded(f"{'':<19}-> ", finding.advice)
