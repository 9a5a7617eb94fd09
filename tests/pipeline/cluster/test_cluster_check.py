"""`gramline cluster check` against real processes."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from dask_processes import process, scheduler

from gramline.pipeline.cli.main import run
from gramline.pipeline.cluster.facts import (
    HERE,
    NoteFailure,
    gather_facts,
    new_place,
    read_notes,
    remove_note,
    write_note,
)


@pytest.fixture(scope="module")
def lame(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of a worker with Dask's own allocator settings, and of one with too little memory and no gramline."""
    folder = tmp_path_factory.mktemp("lame")
    hollow = folder / "path" / "gramline"
    hollow.mkdir(parents=True)
    (hollow / "__init__.py").touch()  # hides the installed package
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(folder))
        for limit, settings in (
            ("1GiB", {"MALLOC_TRIM_THRESHOLD_": "65536"}),
            ("300MiB", {"PYTHONPATH": str(hollow.parent)}),
        ):
            options = (address, "--nthreads", "1", "--memory-limit", limit)
            stack.enter_context(process(folder, "worker", *options, settings=settings))
        yield address


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["cluster", "check", *arguments])
    written = capsys.readouterr()
    assert written.err == ""
    return code, written.out


def test_a_good_cluster_passes(dask_client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--scheduler", dask_client.scheduler.address, "--store", str(tmp_path / "new.gram.zarr"))
    code, out = check(capsys, *arguments, "--json")
    told = json.loads(out)
    wrong = {row["check"] for row in told["checks"] if not row["ok"]}
    assert wrong <= {"machines"}  # the test's workers may use 4 GiB, whatever this machine has
    assert (code, told["ok"]) == ((1, False) if wrong else (0, True))
    code, out = check(capsys, *arguments)
    lines = out.splitlines()
    assert lines[-1] == (
        f"all {len(told['checks'])} checks passed" if not wrong else f"1 of {len(told['checks'])} need mending"
    )
    assert [line.split()[0] for line in lines if line[13:15] == "ok"] == [
        row["check"] for row in told["checks"] if row["ok"]
    ]
    assert max(map(len, lines)) <= 80
    assert list(tmp_path.iterdir()) == []


def test_every_fault_is_told_with_what_to_do(lame: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--scheduler", lame, "--store", str(tmp_path), "--workers", "2", "--wait", "120")
    code, out = check(capsys, *arguments)
    assert code == 1
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1].endswith("need mending")
    code, out = check(capsys, *arguments, "--json")
    told = json.loads(out)
    wrong = {row["check"]: row["advice"] for row in told["checks"] if not row["ok"]}
    assert (code, told["ok"]) == (1, False)
    assert set(wrong) - {"machines"} == {"package", "memory", "allocator", "store"}
    assert wrong["package"].startswith("install gramline for worker tcp://127.0.0.1:")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler answers"),
        (["--scheduler", "tcp://192.0.2.1:8786"], "is not encrypted and not on loopback"),
    ],
)
def test_no_cluster_is_a_finding_too(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, *arguments)
    assert code == 1
    assert words in " ".join(out.split())
    assert "->" in out


def test_a_store_with_a_password_is_refused_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    store = "s3://me:tiger@bucket/grams"
    assert run(["cluster", "check", "--scheduler", "tcp://127.0.0.1:1", "--store", store]) == 2
    written = capsys.readouterr()
    assert "carries a user, a password" in written.err
    assert "tiger" not in written.out + written.err


def test_workers_that_do_not_come(dask_client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = check(capsys, "--scheduler", dask_client.scheduler.address, "--workers", "3", "--wait", "0.2")
    assert code == 1
    assert "2 of 3 workers came" in out


def test_a_folder_that_is_not_there(dask_client: Any, tmp_path: Path) -> None:
    notes = gather_facts(dask_client, str(tmp_path / "no" / "such" / "store")).notes
    assert notes is not None
    assert notes.failures == {HERE: NoteFailure("cannot write there: no such file or directory", errno.ENOENT)}


def test_notes_of_others_that_are_missing_or_wrong(tmp_path: Path) -> None:
    place = new_place(str(tmp_path), "token")
    name = write_note(place, "text")["name"]
    (Path(place) / "other").write_text("something")
    assert read_notes(place, [name], "text") == {}
    assert read_notes(place, ["gone", "other"], "text", patience=0) == {
        "gone": "No such file or directory",
        "other": "it holds something else",
    }
    missing = {"error": "No such file or directory", "number": errno.ENOENT}
    assert remove_note(place, name) == {}
    assert remove_note(place, name) == missing
    assert write_note(str(tmp_path / "gone"), "text") == missing


def test_a_store_is_not_written_into(tmp_path: Path) -> None:
    store = tmp_path / "a.gram.zarr"
    store.mkdir()
    assert Path(new_place(str(store), "first")).parent == store
    (store / "zarr.json").write_text("{}")
    assert Path(new_place(str(store), "second")).parent == tmp_path


def test_notes_in_an_object_store() -> None:
    place = new_place("memory://bucket/grams/", "token")
    name = write_note(place, "text")["name"]
    assert read_notes(place, [name, "gone"], "text", patience=0).keys() == {"gone"}
    assert remove_note(place, name) == {}
    assert read_notes(place, [name], "text", patience=0).keys() == {name}
