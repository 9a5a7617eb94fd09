"""Whether a cluster is fit for work: facts that its processes tell, one finding per question."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from gramline.learners.operators.layout import DEFAULT_BLOCK_ROWS
from gramline.pipeline.cluster.facts import Facts, Notes, gather_facts
from gramline.pipeline.errors import ClusterError, InputError
from gramline.pipeline.executors.addresses import DANGER, is_exposed, split_address
from gramline.pipeline.executors.connect import connect, quiet, wait_for_workers
from gramline.pipeline.executors.worker_settings import ALLOCATOR, KEPT_BYTES, PAUSE
from gramline.pipeline.gram.plan import STORED_TILES, WORK_TILES, megabytes

AT_REST_BYTES = 300_000_000  # a worker that has loaded its libraries; see docs/design-notes.md
TILE_BYTES = int((WORK_TILES + STORED_TILES) * 8 * DEFAULT_BLOCK_ROWS**2)  # one thread, float64, default blocks
CLOCK_SECONDS = 5.0
FEW_DAYS = 3.0
SHARED = "use a folder or object store that every process can write, under the same path"
STORE_ADVICE = {
    errno.ENOENT: "mount the folder there under the same path, or create it",
    errno.EACCES: "let the user of that process write there",
    errno.EPERM: "let the user of that process write there",
}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was seen, and, when it is not well, what to do."""

    name: str
    text: str
    advice: str = ""

    @property
    def is_ok(self) -> bool:
        return not self.advice


@dataclass(frozen=True)
class Access:
    """How a scheduler lets somebody in: the files of a tls:// address, or none and the danger is known."""

    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure_plain_text: bool = False


def check_cluster(
    scheduler: str, store: str | None, access: Access, *, workers: int | None = None, wait: float = 0.0
) -> list[Finding]:
    """Findings on the cluster at an address, after waiting for `workers`."""
    quiet()
    try:
        with connect(scheduler, **asdict(access)) as client:
            if workers is not None:
                wait_for_workers(client, workers, wait)
            facts = gather_facts(client, store)
    except (ClusterError, InputError) as error:
        return [Finding("scheduler", f"{error.place}{error.problem}", error.advice or "check the address")]
    except OSError:  # what Dask raises when a connection breaks
        return [Finding("scheduler", f"the cluster at {scheduler} was lost while it was checked", "check again")]
    return judge(facts, _days_left(access.tls_cert))


def _days_left(certificate: str | None) -> float | None:
    if certificate is None:
        return None
    try:  # the package cryptography is an extra
        from gramline.pipeline.cluster.certificates import days_left
    except ImportError:
        return None
    return days_left(Path(certificate))


def judge(facts: Facts, certificate_days: float | None = None) -> list[Finding]:
    """All findings, in the order in which they are worth mending."""
    findings = [_workers(facts), _encryption(facts)]
    if certificate_days is not None:
        findings.append(_certificate(certificate_days))
    findings.append(_importable(facts))
    findings += [_version(facts, name) for name in facts.members[0].versions]
    findings += [_sources(facts), _clocks(facts)]
    if facts.workers:
        findings += [_memory(facts), _machines(facts), _allocator(facts)]
    if facts.notes is not None:
        findings.append(_store(facts, facts.notes))
    return findings


def _workers(facts: Facts) -> Finding:
    count, threads = len(facts.workers), sum(worker.threads for worker in facts.workers)
    text = f"{facts.address}, {_count(count, 'worker')}, {_count(threads, 'thread')}"
    return Finding("scheduler", text, "" if count else "start workers and check again")


def _encryption(facts: Facts) -> Finding:
    protocol, _ = split_address(facts.address)
    addresses = [facts.address, *(worker.label.removeprefix("worker ") for worker in facts.workers)]
    if any(is_exposed(address) for address in addresses):
        return Finding("encryption", f"none, as you accepted; {DANGER}")
    return Finding("encryption", protocol if protocol == "tls" else f"none ({protocol}), all on loopback")


def _certificate(days: float) -> Finding:
    if days > FEW_DAYS:
        return Finding("certificate", f"valid for {_count(int(days), 'day')}")
    text = "has ended" if days <= 0 else f"ends in {days * 24:.0f} hours"
    return Finding("certificate", text, "make new ones with `gramline cluster certs` and restart the cluster")


def _importable(facts: Facts) -> Finding:
    bad = {member.label: member.problem for member in facts.members if member.problem}
    if not bad:
        return Finding("package", f"gramline can be imported by {_count(len(facts.members), 'process')}")
    label, problem = next(iter(bad.items()))
    return Finding("package", f"{_who(bad)} cannot import gramline: {problem}", f"install gramline for {label}")


def _version(facts: Facts, name: str) -> Finding:
    here = facts.members[0].versions[name]
    others = {member.label: member.versions.get(name) for member in facts.members[1:]}
    bad = {label: version for label, version in others.items() if version != here}
    if not bad:
        return Finding(name, here or "not installed as a package, anywhere")
    version = next(iter(bad.values()))
    text = f"{here or 'none'} here, {version or 'none'} on {_who(bad)}"
    return Finding(name, text, f"install {name} {here} there" if here else f"install {name} {version} here")


def _sources(facts: Facts) -> Finding:
    here = facts.members[0].sources
    bad = [member.label for member in facts.members if member.sources not in (here, None)]
    if not bad:
        where = "wherever it is" if any(member.problem for member in facts.members) else "everywhere"
        return Finding("sources", f"gramline's files are the same {where} ({here})")
    return Finding("sources", f"gramline's files on {_who(bad)} differ from those here", "install the same build there")


def _clocks(facts: Facts) -> Finding:
    ahead = {member.label: member.clock for member in facts.members[1:]}
    bad = {label: clock for label, clock in ahead.items() if abs(clock[0]) - clock[1] > CLOCK_SECONDS}
    if not bad:
        worst = max((abs(offset) for offset, _ in ahead.values()), default=0.0)
        return Finding("clocks", f"at most {worst:.1f} s apart")
    offset, _ = next(iter(bad.values()))
    text = f"{_who(bad)} is {abs(offset):.0f} s {'ahead of' if offset > 0 else 'behind'} this machine"
    return Finding("clocks", text, "set the clocks by NTP; certificates and caches go by them")


def _memory(facts: Facts) -> Finding:
    bad: dict[str, str] = {}
    for worker in facts.workers:
        needed = AT_REST_BYTES + worker.threads * TILE_BYTES
        if worker.limit_bytes and worker.limit_bytes * PAUSE < needed:
            least = megabytes(needed / PAUSE)
            bad[worker.label] = f"has {megabytes(worker.limit_bytes)}, {_count(worker.threads, 'thread')} need {least}"
    if bad:
        label, why = next(iter(bad.items()))
        text = f"{label} {why}" + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")
        return Finding("memory", text, "raise --memory-limit, use fewer threads, or build with smaller --block-rows")
    smallest = min((worker.limit_bytes for worker in facts.workers if worker.limit_bytes), default=0)
    return Finding("memory", f"at least {megabytes(smallest)} for each worker" if smallest else "workers have no limit")


def _machines(facts: Facts) -> Finding:
    """Limits that add up to more than there is protect nobody."""
    limits: dict[str, int] = defaultdict(int)
    physical: dict[str, int] = {}
    for worker in facts.workers:
        if worker.machine is None:
            continue
        if not worker.limit_bytes or worker.limit_bytes > worker.available_bytes:
            limit = megabytes(worker.limit_bytes) if worker.limit_bytes else "no limit"
            text = f"{worker.label} may use {limit}, there are {megabytes(worker.available_bytes)}"
            return Finding("machines", text, "set --memory-limit below what the machine or container has")
        limits[worker.machine] += worker.limit_bytes
        physical[worker.machine] = worker.machine_bytes
    for machine, total in limits.items():
        if total > physical[machine]:
            text = f"workers on {machine} may use {megabytes(total)}, it has {megabytes(physical[machine])}"
            return Finding("machines", text, "start fewer workers there or lower --memory-limit")
    return Finding("machines", f"{_count(len(limits), 'machine')}, memory limits within what they have")


def _allocator(facts: Facts) -> Finding:
    """Workers that give freed memory back fault it in again for the next tile."""
    bad = [worker.label for worker in facts.workers if worker.kept_bytes is not None and worker.kept_bytes < KEPT_BYTES]
    if not bad:
        return Finding("allocator", "workers keep freed memory for the next tile")
    wanted = " and ".join(f"{name}={value}" for name, value in ALLOCATOR.items())
    return Finding(
        "allocator",
        f"{_who(bad)} gives freed memory back to the system after every tile: up to 1.6 times the processor time",
        f"start workers with DASK_CONFIG naming deploy/local/dask.yaml, or with {wanted} in their environment",
    )


def _store(facts: Facts, notes: Notes) -> Finding:
    failures, place = notes.failures, notes.place
    if not failures:
        return Finding("store", f"{place}: written, read and deleted by {_count(1 + len(facts.workers), 'process')}")
    label, failure = next(iter(failures.items()))
    text = f"{place}: {label} {failure.text}" + (f" (and {len(failures) - 1} more)" if len(failures) > 1 else "")
    advice = STORE_ADVICE.get(failure.number, SHARED) if failure.has_gramline else "install gramline there first"
    return Finding("store", text, advice)


def _who(labels: Iterable[str]) -> str:
    first, *others = labels
    return first if not others else f"{first} (and {len(others)} more)"


def _count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number:,} {noun if number == 1 else plural}"
