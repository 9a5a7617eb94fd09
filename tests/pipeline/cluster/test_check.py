"""Facts about a cluster, well and unwell, and what is said about them."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest

from gramline.pipeline.cluster.check import Finding, judge
from gramline.pipeline.cluster.facts import HERE, SCHEDULER, Facts, Member, NoteFailure, Notes

GIB = 1 << 30
VERSIONS: dict[str, str | None] = {"python": "3.12.1", "gramline": "0.1.0", "numpy": "2.4.6"}


def member(label: str, **changes: Any) -> Member:
    found = Member(
        label,
        dict(VERSIONS),
        clock=(0.1, 0.05),
        machine="node1",
        sources="abc",
        machine_bytes=16 * GIB,
        available_bytes=16 * GIB,
        threads=1,
        limit_bytes=2 * GIB,
        kept_bytes=GIB,
    )
    return replace(found, **changes)


A, B = "worker tls://10.0.0.1:1", "worker tls://10.0.0.2:1"


def cluster(*workers: Member, address: str = "tls://10.0.0.1:8786", notes: Notes | None = None) -> Facts:
    return Facts(address, (member(HERE), member(SCHEDULER), *workers), notes)


def bad(facts: Facts, **options: Any) -> list[Finding]:
    return [finding for finding in judge(facts, **options) if not finding.is_ok]


def only(facts: Facts, **options: Any) -> Finding:
    (finding,) = bad(facts, **options)
    return finding


def test_a_cluster_that_is_well() -> None:
    facts = cluster(member(A), member(B), notes=Notes("/shared"))
    findings = judge(facts, certificate_days=20)
    assert [finding.name for finding in findings if not finding.is_ok] == []
    assert {finding.name for finding in findings} >= {*VERSIONS, "scheduler", "encryption", "certificate", "package"}
    assert {finding.name for finding in findings} >= {"sources", "clocks", "memory", "machines", "allocator", "store"}


def test_no_workers() -> None:
    assert only(cluster()).advice == "start workers and check again"


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("label", [SCHEDULER, A])
def test_another_version(name: str, label: str) -> None:
    odd = member(label, versions=VERSIONS | {name: "1.0"})
    facts = Facts(
        "tls://10.0.0.1:8786", (member(HERE), *(odd if m.label == label else m for m in cluster(member(A)).members[1:]))
    )
    finding = only(facts)
    assert finding.name == name
    assert f"1.0 on {label}" in finding.text
    assert finding.advice == f"install {name} {VERSIONS[name]} there"


def test_a_package_that_is_missing() -> None:
    finding = only(
        cluster(member(A, versions=VERSIONS | {"numpy": None}), member(B, versions=VERSIONS | {"numpy": None}))
    )
    assert finding.text == f"2.4.6 here, none on {A} (and 1 more)"


def test_gramline_is_not_there() -> None:
    finding = only(cluster(member(A), member(B, sources=None, problem="No module named 'gramline'", machine=None)))
    assert (finding.name, finding.advice) == ("package", f"install gramline for {B}")


def test_the_same_version_from_other_sources() -> None:
    assert only(cluster(member(A, sources="xyz"))).advice == "install the same build there"


@pytest.mark.parametrize(("offset", "word"), [(30.0, "ahead of"), (-30.0, "behind")])
def test_a_clock_that_is_wrong(offset: float, word: str) -> None:
    finding = only(cluster(member(A, clock=(offset, 0.5))))
    assert (finding.name, f"{A} is 30 s {word} this machine") == ("clocks", finding.text)


def test_a_slow_answer_is_no_wrong_clock() -> None:
    assert bad(cluster(member(A, clock=(6.0, 2.0)))) == []


@pytest.mark.parametrize(("threads", "limit", "is_ok"), [(1, GIB // 4, False), (1, GIB, True), (8, GIB, False)])
def test_memory_for_the_default_tiles(threads: int, limit: int, is_ok: bool) -> None:
    found = bad(cluster(member(A, threads=threads, limit_bytes=limit)))
    assert [finding.name for finding in found] == ([] if is_ok else ["memory"])


def test_limits_that_add_up_to_more_than_there_is() -> None:
    finding = only(cluster(member(A, limit_bytes=9 * GIB), member(B, limit_bytes=9 * GIB)))
    assert "workers on node1 may use" in finding.text
    assert bad(cluster(member(A, limit_bytes=9 * GIB), member(B, limit_bytes=9 * GIB, machine="node2"))) == []


@pytest.mark.parametrize("limit", [0, 3 * GIB])
def test_a_worker_that_may_use_more_than_its_container_has(limit: int) -> None:
    finding = only(cluster(member(A, limit_bytes=limit, available_bytes=2 * GIB)))
    assert finding.name == "machines"


@pytest.mark.parametrize(("kept", "is_ok"), [(None, True), (GIB, True), (65536, False), (0, False)])
def test_workers_that_give_freed_memory_back(kept: int | None, is_ok: bool) -> None:
    found = bad(cluster(member(A, kept_bytes=kept)))
    assert [finding.name for finding in found] == ([] if is_ok else ["allocator"])
    assert is_ok or "MALLOC_TRIM_THRESHOLD_=1073741824" in found[0].advice


@pytest.mark.parametrize(("days", "words"), [(-1.0, "has ended"), (1.0, "ends in 24 hours")])
def test_a_certificate_that_ends(days: float, words: str) -> None:
    finding = only(cluster(member(A)), certificate_days=days)
    assert finding.text == words
    assert "gramline cluster certs" in finding.advice


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (NoteFailure("cannot write there: permission denied", errno.EACCES), "let the user"),
        (NoteFailure("cannot write there: no such file or directory", errno.ENOENT), "mount the folder"),
        (NoteFailure("does not see 1 of 3 notes that others wrote"), "under the same path"),
        (NoteFailure("cannot try", has_gramline=False), "install gramline there first"),
    ],
)
def test_a_store_that_is_not_shared(failure: NoteFailure, advice: str) -> None:
    finding = only(cluster(member(A), notes=Notes("/shared", {A: failure})))
    assert f"/shared: {A} {failure.text}" == finding.text
    assert advice in finding.advice


def test_encryption_is_told() -> None:
    def told(facts: Facts) -> str:
        return next(finding.text for finding in judge(facts) if finding.name == "encryption")

    here = member("worker tcp://127.0.0.1:1")
    assert told(cluster(member(A))) == "tls"
    assert told(cluster(here, address="tcp://127.0.0.1:8786")) == "none (tcp), all on loopback"
    assert "runs code as you" in told(cluster(here, address="tcp://10.0.0.1:8786"))
