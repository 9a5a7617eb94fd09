"""Bad files of every kind: each is read, or refused in one line that says where. A slice here, all by make fuzz."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fuzz.readers import READERS, Reader, Tally
from fuzz.readers import attack as attack_reader
from fuzz.stored import TARGETS, Target
from fuzz.stored import attack as attack_stored
from measured_page import conditions, tell

SLICE, STORED_SLICE = 40, 6  # of the default tests: seconds together
MANY, STORED_MANY = 4000, 500
MEMORY_KB = 1 << 20  # that reading small bad files may take at its worst, on top of what was in use
MACHINE = conditions()
TABLE: list[tuple[str, int, Tally, float, float]] = []


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_bad_files_are_refused_with_their_place(reader: Reader, tmp_path: Path) -> None:
    before = peak_kb()
    tally = attack_reader(reader, tmp_path, seed=1, count=SLICE)
    assert tally.refused > SLICE // 4
    assert peak_kb() - before < MEMORY_KB


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_bad_stores_are_refused_by_name(target: Target, tmp_path: Path) -> None:
    before = peak_kb()
    tally = attack_stored(target, tmp_path, seed=1, count=STORED_SLICE)
    assert tally.refused + tally.read == STORED_SLICE
    assert peak_kb() - before < MEMORY_KB


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_many_bad_files(reader: Reader, tmp_path: Path) -> None:
    _measured(reader.name, MANY, lambda: attack_reader(reader, tmp_path, seed=2, count=MANY))


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_many_bad_stores(target: Target, tmp_path: Path) -> None:
    count = STORED_MANY if target.name != "corpus" else MANY
    _measured(target.name, count, lambda: attack_stored(target, tmp_path, seed=2, count=count))


@pytest.mark.fuzz
def test_the_table() -> None:
    """Last: what all of them did."""
    lines = [f"{'reader':<20} {'inputs':>7} {'refused':>8} {'read':>6} {'seconds':>8} {'MB more':>8}"]
    for name, count, tally, seconds, more in TABLE:
        lines.append(f"{name:<20} {count:>7,} {tally.refused:>8,} {tally.read:>6,} {seconds:>8.0f} {more:>8.0f}")
    given, refused = sum(row[1] for row in TABLE), sum(tally.refused for _, _, tally, _, _ in TABLE)
    lines += [f"{'together':<20} {given:>7,} {refused:>8,}", "no traceback, no hang, no file without an answer"]
    written = (
        f"{given:,} files and stores, {refused:,} of them refused, the others read; no traceback, at most "
        f"{max(row[4] for row in TABLE):.0f} MB more memory.\n\n{MACHINE}"
    )
    tell("fuzz", "\n".join(lines), written)
    assert refused >= 20_000


@contextmanager
def memory_limit(more_bytes: int) -> Iterator[None]:
    """An allocation beyond what is in use and `more_bytes` is an error here, before it is everybody's problem."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _measured(name: str, count: int, attack: Callable[[], Tally]) -> None:
    before, begin = peak_kb(), time.monotonic()
    with memory_limit(MEMORY_KB << 12):
        tally = attack()
    more = (peak_kb() - before) / 1024
    TABLE.append((name, count, tally, time.monotonic() - begin, more))
    assert tally.refused + tally.read == count
    assert more * 1024 < MEMORY_KB
