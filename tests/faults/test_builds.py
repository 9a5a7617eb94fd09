"""Scripted faults of a build: interrupted, failing, full, racing. What was done is kept and the end is the same."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gram_samples import KERNEL, ScriptedExecutor, chunks, corpus

from gramline.pipeline import StoredGram, build_gram
from gramline.pipeline.errors import RunError, StoreError, TileFailedError
from gramline.pipeline.events import Event, TileFailed
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.plan import TileTask
from gramline.pipeline.storage.places import refusal_number
from gramline.pipeline.storage.tile_array import TileArray

CORPUS = corpus(7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tiles of a build that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "a.zarr"
    build_gram(KERNEL, CORPUS, path, block_rows=16)
    return chunks(path)


def build(path: Path, executor: Any, **more: Any) -> StoredGram:
    return build_gram(KERNEL, CORPUS, path, block_rows=16, executor=executor, **more)


def test_interrupted_at_any_tile_and_resumed_gives_the_same_bytes(tmp_path: Path, whole: dict[str, bytes]) -> None:
    assert len(whole) == 6
    for stop in range(1, len(whole) + 1):
        path = tmp_path / f"{stop}.zarr"

        def interrupt(number: int, _task: TileTask, stop: int = stop) -> None:
            if number == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build(path, ScriptedExecutor(interrupt))
        assert len(chunks(path)) == stop - 1
        resumed = ScriptedExecutor()
        build(path, resumed)
        assert len(resumed.calls) == len(whole) - (stop - 1)
        assert chunks(path) == whole


def test_a_tile_that_fails_twice_is_tried_three_times(tmp_path: Path, whole: dict[str, bytes]) -> None:
    tries: list[TileTask] = []

    def fail_twice(_number: int, task: TileTask) -> None:
        if (task.i, task.j) == (1, 2):
            tries.append(task)
            if len(tries) <= 2:
                raise RuntimeError("a cosmic ray")

    executor = ScriptedExecutor(fail_twice)
    build(tmp_path / "a.zarr", executor)
    assert (len(tries), len(executor.calls)) == (3, len(whole) + 2)
    assert chunks(tmp_path / "a.zarr") == whole


def test_a_write_that_fails_for_a_moment_is_tried_again(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = TileArray.write, iter([OSError(errno.EIO, "Input/output error")])

    def shaky(self: TileArray, i: int, j: int, tile: Any) -> None:
        for failure in failures:
            raise failure
        write(self, i, j, tile)

    monkeypatch.setattr(TileArray, "write", shaky)
    executor = ScriptedExecutor()
    build(tmp_path / "a.zarr", executor)
    assert len(executor.calls) == len(whole) + 1
    assert chunks(tmp_path / "a.zarr") == whole


def test_a_poisonous_tile_is_named_and_all_others_are_kept(tmp_path: Path, whole: dict[str, bytes]) -> None:
    def poison(_number: int, task: TileTask) -> None:
        if (task.i, task.j) == (0, 1):
            raise RuntimeError("poison\nand a long story")

    heard: list[Event] = []
    executor = ScriptedExecutor(poison)
    with pytest.raises(TileFailedError) as failed:
        build(tmp_path / "a.zarr", executor, progress=heard.append)
    error, url = failed.value, str(tmp_path / "a.zarr")
    assert (error.url, error.tile, error.tries, error.n_more) == (url, (0, 1), 3, 0)
    kept = "the 5 other tiles are kept, run it again to go on"
    assert str(error) == f"tile (0, 1) of {url} failed in 3 tries: RuntimeError: poison; {kept}"
    assert len(executor.calls) == len(whole) - 1 + 3
    assert [event for event in heard if isinstance(event, TileFailed)] == [TileFailed(0, 1, "RuntimeError: poison")]
    assert chunks(tmp_path / "a.zarr") == {name: tile for name, tile in whole.items() if name != "0/1"}
    build(tmp_path / "a.zarr", ScriptedExecutor())
    assert chunks(tmp_path / "a.zarr") == whole


def test_a_full_disk_ends_the_build_in_one_sentence(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = TileArray.write, []

    def full_after_two(self: TileArray, i: int, j: int, tile: Any) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append((i, j))
        write(self, i, j, tile)

    monkeypatch.setattr(TileArray, "write", full_after_two)
    executor = ScriptedExecutor()
    with pytest.raises(StoreError, match=r"^no space left on the device while writing .*a.zarr; free some space"):
        build(tmp_path / "a.zarr", executor)
    assert len(executor.calls) == 3
    monkeypatch.undo()
    build(tmp_path / "a.zarr", executor)
    assert len(executor.calls) == 3 + len(whole) - 2
    assert chunks(tmp_path / "a.zarr") == whole


def test_a_full_disk_at_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gramline.pipeline.gram import packed_blocks

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packed_blocks, "NewArray", full)
    with pytest.raises(StoreError) as caught:
        build(tmp_path / "a.zarr", ScriptedExecutor())
    assert refusal_number(caught.value) == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_two_builds_at_once_end_well(tmp_path: Path, whole: dict[str, bytes]) -> None:
    with ThreadPoolExecutor(2) as pool:
        grams = list(pool.map(lambda _: build(tmp_path / "a.zarr", InlineExecutor()), range(2)))
    assert chunks(tmp_path / "a.zarr") == whole
    assert [gram.status().is_complete for gram in grams] == [True, True]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("left", [b"", b"torn", None])
def test_what_a_crash_may_leave_counts_as_absent(tmp_path: Path, whole: dict[str, bytes], left: bytes | None) -> None:
    build(tmp_path / "a.zarr", InlineExecutor())
    folder = tmp_path / "a.zarr" / "tiles" / "c" / "0"
    if left is None:
        (folder / "1").rename(folder / "1.abc.partial")
    else:
        (folder / "1").write_bytes(left)
    resumed = ScriptedExecutor()
    build(tmp_path / "a.zarr", resumed)
    assert [(task.i, task.j) for task in resumed.calls] == [(0, 1)]
    assert {name: tile for name, tile in chunks(tmp_path / "a.zarr").items() if "partial" not in name} == whole


def test_tiles_written_where_nobody_sees_them_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TileArray, "write", lambda *_: None)
    with pytest.raises(RunError, match=r"tile \(\d, \d\) of .* was written but is not there .* the same storage"):
        build(tmp_path / "a.zarr", ScriptedExecutor())


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(StoreError) as caught:
        build(tmp_path / "a.zarr", ScriptedExecutor())
    assert refusal_number(caught.value) == errno.EACCES
