"""Help, version, exit codes, and one line per error."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import click
import pytest

from gramline.kernels.errors import KernelOverflowError, KernelWarning
from gramline.learners.errors import LearnerParameterError
from gramline.pipeline.cli import main
from gramline.pipeline.cli.terminal.failures import say_warnings_as_notes, to_failure
from gramline.pipeline.errors import ClusterError, InputError, RunError, TileFailedError
from gramline.pipeline.files import ADVICE
from gramline.pipeline.storage.places import storage_error


def _every_command(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command of the program, groups too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        yield (*words, name)
        if isinstance(found, click.Group):
            yield from _every_command(found, (*words, name))


COMMANDS = list(_every_command(main.gramline))
GROUPS = {words[:-1] for words in COMMANDS}


@pytest.fixture
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("wide_terminal")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(gramline: Any, command: tuple[str, ...]) -> None:
    answer = gramline(*command, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert "Usage: gramline " + " ".join(command) in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    if command not in GROUPS:
        assert "Example:" in answer.out
        assert "--json" in answer.out


@pytest.mark.usefixtures("wide_terminal")
def test_the_program_explains_itself(gramline: Any) -> None:
    answer = gramline("--help")
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80
    for command in main.COMMANDS:
        assert f"\n  {command} " in answer.out


@pytest.mark.parametrize("group", sorted(GROUPS), ids=" ".join)
def test_a_group_without_a_command_shows_its_help(gramline: Any, group: tuple[str, ...]) -> None:
    answer = gramline(*group)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"Usage: {' '.join(['gramline', *group])} [OPTIONS] COMMAND")
    assert "\nCommands:\n" in answer.err
    assert "error" not in answer.err


def test_version(gramline: Any) -> None:
    answer = gramline("--version")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("gramline ")


@pytest.mark.parametrize("group", sorted(GROUPS), ids=" ".join)
def test_lists_of_commands_do_not_wait_for_the_numerical_libraries(group: tuple[str, ...]) -> None:
    program = (
        f"import sys; from gramline.pipeline.cli.main import run; run([*{group!r}, '--help']); "
        "heavy = {'numpy', 'numba', 'dask', 'distributed', 'zarr', 'pyarrow', 'rich'} & set(sys.modules); "
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gramm"], "there is no command 'gramm'; did you mean 'gram'?"),
        (["gram", "biuld"], "did you mean 'build'?"),
        (["quux"], "known are demo, corpus, gram"),
        (["fit", "--nonsense"], "--nonsense"),
        (["predict"], "Missing argument 'MODEL'"),
        (["demo", "--sentences", "many"], "'many' is not a valid integer"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(gramline: Any, arguments: list[str], said: str) -> None:
    answer = gramline(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.error


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (InputError("a\n  b"), "a b", 2),
        (
            KernelOverflowError("a value", 1, 2, "float64", "lower c"),
            "a value between structure 1 and structure 2 does not fit float64; lower c",
            2,
        ),
        (LearnerParameterError("no"), "no", 2),
        (RunError("failed"), "failed", 1),
        (ClusterError("lost"), "lost", 1),
        (ConnectionResetError(errno.ECONNRESET, "Reset"), "reset", 1),
        (KeyboardInterrupt(), "stopped; nothing half-written is left, the same command begins again", 130),
        (click.Abort(), "stopped; nothing half-written is left, the same command begins again", 130),
    ],
)
def test_what_an_error_means(error: BaseException, line: str, code: int) -> None:
    failure = to_failure(error)
    assert failure is not None
    assert (failure.line, failure.code) == (line, code)


def test_a_full_disk_says_what_to_do() -> None:
    failure = to_failure(OSError(errno.ENOSPC, "No space left on device", "/data/x.zarr"))
    assert failure is not None
    assert failure.code == 2
    assert failure.line.startswith("/data/x.zarr: no space left on device; free some space")


@pytest.mark.parametrize("code", ADVICE, ids=errno.errorcode.get)
def test_what_the_system_refuses_has_one_advice_whoever_tells_it(code: int) -> None:
    error = OSError(code, os.strerror(code), "/data/x.zarr")
    raw, told = to_failure(error), to_failure(storage_error("/data/x.zarr", error))
    assert raw is not None
    assert told is not None
    assert raw.code == told.code == 2
    assert raw.line.endswith(f"; {ADVICE[code]}")
    assert told.line.endswith(f"; {ADVICE[code]}")


def test_the_cause_of_a_failed_tile_decides_the_exit_code() -> None:
    full, broken = (TileFailedError("why", "a.zarr", (0, 1), tries=1, n_more=0, advice="go on") for _ in range(2))
    full.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    broken.__cause__ = MemoryError()
    failures = [to_failure(full), to_failure(broken)]
    assert [failure and failure.code for failure in failures] == [2, 1]


def test_an_internal_error_shows_where(gramline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_context: click.Context) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(main.gramline, "invoke", broken)
    answer = gramline("demo")
    assert answer.code == 1
    assert "Traceback" in answer.err
    assert answer.err.splitlines()[-1].startswith("gramline: error: internal error")


def test_ctrl_c_leaves_quietly(gramline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_context: click.Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.gramline, "invoke", interrupted)
    answer = gramline("demo")
    assert answer.code == 130
    assert answer.error.startswith("stopped; ")


ABORTS_WHEN_TORN_DOWN = """
import atexit, os, sys
from gramline.pipeline.cli import main

class Threads:
    def __del__(self, abort=os.abort):
        abort()

def run(_arguments):
    print("done")
    return int(sys.argv[1])

atexit.register(print, "closed")
sys.modules["obstore"] = Threads()
main.run = run
main.main()
"""


@pytest.mark.parametrize("code", [0, 2])
def test_threads_of_an_object_store_do_not_decide_the_exit_code(code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ABORTS_WHEN_TORN_DOWN, str(code)], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "done\nclosed\n", "")


def test_warnings_of_kernels_are_notes_and_others_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_place: others.append(str(message)))
    say_warnings_as_notes()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("neighbours make 0.1 %", KernelWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: neighbours make 0.1 %\n"
    assert others == ["something else"]
