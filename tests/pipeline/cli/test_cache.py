"""gramline cache: ls, show, verify, rm and gc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.locks import FileLock


@pytest.fixture
def cache(gramline: Any, corpus: Path, tmp_path: Path) -> Path:
    """Two Gram matrices that a job made."""
    job = tmp_path / "job.toml"
    job.write_text(
        f'[corpus]\npath = "{corpus.name}"\n[kernel]\nc = [0.5, 0.9]\n[folds]\ncount = 2\n[cluster]\ninline = true\n'
        "[gram]\nblock_rows = 5\n"
    )
    assert gramline("cv", job, "--json").code == 0
    return tmp_path / "gramline-cache"


def test_what_is_there(gramline: Any, cache: Path) -> None:
    listed = gramline("cache", "ls", "--cache", cache, "--json").json
    assert [entry["kernel"]["c"] for entry in sorted(listed["entries"], key=lambda e: e["kernel"]["c"])] == [0.5, 0.9]
    assert listed["bytes"] == sum(entry["bytes"] for entry in listed["entries"])
    spoken = gramline("cache", "ls", "--cache", cache).out
    assert "2 matrices" in spoken
    assert listed["entries"][0]["name"][:10] in spoken
    name = listed["entries"][0]["name"][:6]
    shown = gramline("cache", "show", name, "--cache", cache).out
    assert "train.parquet" in shown
    assert "sequence-labeling(" in shown
    assert gramline("cache", "show", name, "--cache", cache, "--json").json["made"]["structures"] == 5


def test_long_paths_stay_within_80_columns(gramline: Any, cache: Path, tmp_path: Path) -> None:
    long = tmp_path / "a folder with a rather long name" / ("and-another-one-inside-that-is-longer-" * 3)
    long.parent.mkdir()
    entry = GramCache(cache.rename(long)).entries()[0]
    shown = gramline("cache", "show", entry.name[:6], "--cache", long).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "".join(str(Path(entry.store).relative_to(tmp_path)).split()) in "".join(shown.split())
    for settings in ([], ["--set", "rounds=3"]):  # all tiles are reused, and with another cache none is
        target = long if not settings else long.with_name("other" * 20)
        ran = gramline("cv", tmp_path / "job.toml", *settings, "--cache", target, "-o", long.parent / "out.run")
        assert ran.code == 0
        commands = [line for line in ran.out.splitlines() if " gramline " in line]  # to be copied, so never broken
        assert max(len(line) for line in ran.out.splitlines() if line not in commands) <= 80
        assert ("all reused" in ran.out) == (not settings)
    planned = gramline("cv", tmp_path / "job.toml", "--plan", "--cache", long, "-o", long.parent / "out.run").out
    assert max(map(len, planned.splitlines())) <= 80


def test_damage_is_found_and_repaired(gramline: Any, cache: Path) -> None:
    assert gramline("cache", "verify", "--cache", cache).code == 0
    entry = GramCache(cache).entries()[0]
    tile = next(path for path in (entry.folder / "gram.zarr" / "tiles" / "c").rglob("*") if path.is_file())
    content = bytearray(tile.read_bytes())
    content[3] ^= 1
    tile.write_bytes(content)
    bad = gramline("cache", "verify", entry.name, "--cache", cache)
    assert bad.code == 1
    assert "is damaged" in bad.error
    assert gramline("cache", "verify", "--cache", cache, "--repair", "--json").code == 0
    assert gramline("cache", "verify", "--cache", cache, "--json").code == 0


def test_clearing_says_what_it_would_free_and_spares_what_is_in_use(gramline: Any, cache: Path, corpus: Path) -> None:
    before = gramline("cache", "ls", "--cache", cache, "--json").json
    told = gramline("cache", "gc", "--older-than", "0", "--dry-run", "--cache", cache)
    assert told.out.count("would delete") == 2
    assert "would be freed" in told.out
    assert gramline("cache", "ls", "--cache", cache, "--json").json["bytes"] == before["bytes"]
    opened = GramCache(cache)
    entry = opened.entries()[0]
    kernel = entry.status()
    assert kernel is not None
    from gramline.kernels.base import Kernel
    from gramline.kernels.catalogue import from_dict

    used: Any = from_dict(kernel.kernel, Kernel)  # type: ignore[type-abstract]
    with opened.using(used, Corpus.load(corpus).packed()):
        cleared = gramline("cache", "gc", "--all", "--cache", cache)
        assert f"kept {entry.name}: it is in use" in cleared.out
        assert gramline("cache", "ls", "--cache", cache, "--json").json["entries"][0]["in_use"]
    freed = gramline("cache", "gc", "--keep", "1B", "--cache", cache, "--json").json
    assert [item["name"] for item in freed["removed"]] == [entry.name]
    assert "holds no Gram matrix" in gramline("cache", "ls", "--cache", cache).out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["gc"], "say what may go"),
        (["gc", "--keep", "lots"], "--keep must be a size such as 2GiB or 500MB, got 'lots'"),
        (["show", "zz"], "no store whose name begins with 'zz'"),
    ],
)
def test_bad_requests(gramline: Any, tmp_path: Path, command: list[str], said: str) -> None:
    answer = gramline("cache", *command, "--cache", tmp_path)
    assert answer.code == 2
    assert said in answer.error


def test_a_cache_that_is_not_there(gramline: Any, tmp_path: Path) -> None:
    assert "there is no cache folder" in gramline("cache", "ls", "--cache", tmp_path / "none").error


def test_one_is_removed_by_name(gramline: Any, cache: Path) -> None:
    first, second = (entry.name for entry in GramCache(cache).entries())
    freed = gramline("cache", "rm", first[:8], "--cache", cache, "--json").json
    assert [item["name"] for item in freed["removed"]] == [first]
    assert [entry.name for entry in GramCache(cache).entries()] == [second]
    lock = FileLock.acquire(GramCache(cache).entry(second).folder / "lock", shared=True)
    assert lock is not None
    with lock:
        answer = gramline("cache", "rm", second, "--cache", cache)
        assert answer.code == 1
        assert f"{second} in {cache} is in use; wait for the job" in answer.error
    assert f"deleted {second}" in gramline("cache", "rm", second, "--cache", cache).out
    assert "no store whose name begins with" in gramline("cache", "rm", second, "--cache", cache).error


def test_only_so_much_is_kept(gramline: Any, cache: Path) -> None:
    held = gramline("cache", "ls", "--cache", cache, "--json").json["bytes"]
    assert gramline("cache", "gc", "--keep-under", f"{held}B", "--cache", cache, "--json").json["removed"] == []
    assert len(gramline("cache", "gc", "--keep-under", f"{held - 1}B", "--cache", cache, "--json").json["removed"]) == 1
