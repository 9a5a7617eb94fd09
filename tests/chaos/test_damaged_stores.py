"""Files cut, zeroed, flipped, deleted, swapped and left over; disks full and read-only: found, told, mended."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chaos.reliability import Ledger
from chaos.undisturbed import Calm, learned, tiles

from gramline.pipeline.errors import NoRoomError, StoreError
from gramline.pipeline.gram import room
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.verify import verify_gram


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def swap(path: Path, draw: random.Random) -> None:
    """With another tile of the same store: whole, with a checksum that fits, in the wrong place."""
    others = [found for found in path.parents[1].rglob("*") if found.is_file() and found != path]
    other = draw.choice([found for found in others if found.read_bytes() != path.read_bytes()])
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


DAMAGE: dict[str, tuple[Callable[[Path, random.Random], object], int]] = {  # and how many tiles it damages
    "truncated": (lambda path, draw: path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size)]), 1),
    "zeroed": (lambda path, _draw: path.write_bytes(bytes(path.stat().st_size)), 1),
    "bit flipped": (flip, 1),
    "deleted": (lambda path, _draw: path.unlink(), 1),
    "swapped with another": (swap, 2),
}


def damaged_and_mended(calm: Calm, store: Path, ledger: Ledger, kind: str, times: int) -> None:
    """Any tile of a finished store, again and again: `verify` finds exactly it, `--repair` makes it the same again."""
    harm, count = DAMAGE[kind]
    seconds = 0.0
    for seed in range(times):
        draw = random.Random(f"{kind} {seed}")
        name = draw.choice(sorted(calm.tiles))
        harm(store / "tiles" / "c" / name, draw)
        assert len(verify_gram(store).bad) == count
        begin = time.monotonic()
        report = verify_gram(store, repair=True)
        seconds = max(seconds, time.monotonic() - begin)
        assert (report.n_repaired, report.is_good) == (count, True)
        assert calm.damage(store) == (0, 0)
    calm.settle(store, ledger, f"tile {kind}", times=times, seconds=seconds)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_tiles(calm: Calm, tmp_path: Path, ledger: Ledger, kind: str) -> None:
    calm.build(tmp_path / "a.zarr")
    damaged_and_mended(calm, tmp_path / "a.zarr", ledger, kind, times=1)
    assert ledger.rows[f"tile {kind}"].times >= 1


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", DAMAGE)
def test_many_damaged_tiles(calm: Calm, tmp_path: Path, ledger: Ledger, kind: str) -> None:
    calm.build(tmp_path / "a.zarr")
    damaged_and_mended(calm, tmp_path / "a.zarr", ledger, kind, times=25)
    assert ledger.rows[f"tile {kind}"].times >= 25


def damaged_documents(calm: Calm, store: Path, ledger: Ledger, times: int) -> None:
    """A damaged zarr.json is told; never are its numbers taken for others. The store is built anew."""
    refused, begin = 0, time.monotonic()
    for seed in range(times):
        draw = random.Random(seed)
        chosen = draw.choice(sorted(store.rglob("zarr.json")))
        content = chosen.read_bytes()
        harm = DAMAGE[draw.choice(("truncated", "zeroed", "bit flipped", "bit flipped", "deleted"))][0]
        harm(chosen, draw)
        try:
            same = (learned(store, calm.corpus) == calm.alpha).all()
            assert same, f"seed {seed}: {chosen.relative_to(store)} was misread"
            assert StoredGram.open(store).store.spec == StoredGram.open(calm.store).store.spec
        except StoreError as error:
            refused += "\n" not in str(error)
        chosen.write_bytes(content)
    assert refused > times // 2
    calm.settle(store, ledger, "zarr.json damaged", times=times, seconds=(time.monotonic() - begin) / times)


@pytest.mark.parametrize("times", [12, pytest.param(200, marks=[pytest.mark.chaos, pytest.mark.timeout(900)])])
def test_damaged_documents(calm: Calm, tmp_path: Path, ledger: Ledger, times: int) -> None:
    calm.build(tmp_path / "a.zarr")
    damaged_documents(calm, tmp_path / "a.zarr", ledger, times)
    assert ledger.rows["zarr.json damaged"].times >= times


def test_a_kernel_that_one_bit_changed_is_not_believed(calm: Calm, tmp_path: Path) -> None:
    """0.7 becomes 0.3: good JSON, a good kernel, and every number of the store would be taken for another's."""
    store = tmp_path / "a.zarr"
    calm.build(store)
    document = json.loads((store / "zarr.json").read_text())
    document["attributes"]["spec"]["kernel"]["c"] = 0.3
    (store / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"zarr.json is not what was written"):
        StoredGram.open(store)


def test_strays_are_ignored_and_swept(calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    store = tmp_path / "a.zarr"
    calm.build(store)
    for name in ("tiles/c/0/0.abc.partial", "tiles/c/1.def.partial", "rows/0/symbols/c/x.partial"):
        (store / name).write_bytes(b"half")
        os.utime(store / name, (1, 1))
    begin = time.monotonic()
    assert StoredGram.open(store).status().is_complete
    report = verify_gram(store, repair=True)
    assert (report.bad, report.n_strays) == ((), 3)
    calm.settle(store, ledger, "temporary file left over", times=3, seconds=time.monotonic() - begin)


@contextmanager
def files_no_larger_than(limit: int) -> Iterator[None]:
    """What a quota does to a process: writing beyond it fails, in the middle of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_stops_in_the_middle_of_a_tile(calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    store = tmp_path / "a.zarr"

    def begin_small(_event: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calm.build(store, progress=begin_small)  # the store, without a tile
    with files_no_larger_than(1000), pytest.raises(StoreError, match="cannot be written or read: File too large"):
        calm.build(store)
    assert tiles(store) == {}
    assert not list(store.rglob("*.partial"))
    begin = time.monotonic()
    calm.build(store)
    calm.settle(store, ledger, "file size limit in the middle of a tile", seconds=time.monotonic() - begin)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A file system of its own; skips where this user may not mount one."""
    folder.mkdir(exist_ok=True)
    made = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"mounting a file system needs root: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@pytest.mark.chaos
def test_a_full_disk(calm: Calm, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one: refused before; full in the middle of a tile, as others write too; given more room, it goes on."""
    size = sum(map(len, calm.tiles.values())) // 2 + 400_000
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", f"size={size}", "tmpfs") as disk:
        store = disk / "a.zarr"
        with pytest.raises(NoRoomError, match="but the disk has"):
            calm.build(store)
        assert not store.exists()
        monkeypatch.setattr(room, "free_bytes", lambda _place: None)
        with pytest.raises(StoreError, match="no space left on the device"):
            calm.build(store)
        kept = tiles(store)
        assert 0 < len(kept) < len(calm.tiles)
        assert not list(store.rglob("*.partial"))
        assert all(calm.tiles[name] == content for name, content in kept.items())
        subprocess.run(["mount", "-o", f"remount,size={4 * size}", str(disk)], check=True)
        begin = time.monotonic()
        calm.build(store)
        calm.settle(store, ledger, "disk full in the middle of a tile", seconds=time.monotonic() - begin)


@pytest.mark.chaos
def test_a_read_only_store(calm: Calm, tmp_path: Path, ledger: Ledger) -> None:
    """Nothing can be built there, in one sentence; but a finished one is read, checked and learned from."""
    half, whole = tmp_path / "half.zarr", tmp_path / "whole.zarr"
    calm.build(whole)
    calm.build(half)
    missing = half / "tiles" / "c" / "0" / "1"
    missing.unlink()
    with mounted(tmp_path / "view", "--bind", str(tmp_path)) as view:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(view)], check=True)
        with pytest.raises(StoreError, match="Read-only file system"):
            calm.build(view / "half.zarr")
        with pytest.raises(StoreError, match="Read-only file system"):
            calm.build(view / "new.zarr")
        assert verify_gram(view / "whole.zarr").is_good
        assert (learned(view / "whole.zarr", calm.corpus) == calm.alpha).all()
    begin = time.monotonic()
    calm.build(half)
    calm.settle(half, ledger, "read-only store", times=2, seconds=time.monotonic() - begin)
