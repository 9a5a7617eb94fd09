"""SIGTERM to a running command: closed in good order, one line, exit code 143, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.terminal.failures import to_failure
from gramline.pipeline.cli.terminal.stopping import Terminated, when_stopped

# The command, with a real SIGTERM to the process where one method is called.
PROGRAM = """
import os, signal, sys, threading, time
from importlib import import_module

def terminated(*arguments, **options):
    for _ in range(2):  # as `timeout` sends it: once to the process, once to its group
        os.kill(os.getpid(), signal.SIGTERM)
    while threading.current_thread() is threading.main_thread():
        time.sleep(0.01)  # until it is raised here
    return called(*arguments, **options)

module, name, method = sys.argv.pop(1).split(":")
owner = getattr(import_module(module), name)
called = getattr(owner, method)
setattr(owner, method, terminated)
from gramline.pipeline.cli.main import main
main()
"""
# The command, with a real SIGTERM to all of its processes while a worker writes a tile.
GROUP_PROGRAM = """
from gramline.pipeline.gram import missing
from gramline.pipeline.cli.main import main

def stopped_while_writing(task):  # it is of this program, so it travels to the worker as it stands here
    import os, signal, time
    from pathlib import Path
    from gramline.pipeline.gram.task import compute_tile

    replace = Path.replace

    def stopped(staged, target):
        Path.replace = replace
        os.killpg(0, signal.SIGTERM)
        while not signal.getitimer(signal.ITIMER_REAL)[0]:
            time.sleep(0.01)  # until this process has heard it as well
        return replace(staged, target)

    Path.replace = stopped
    return compute_tile(task)

missing.compute_tile = stopped_while_writing
main()
"""
FIRST_TILE = "gramline.pipeline.events:TileDone:__init__"
WORKER_STARTS = "distributed.nanny:Nanny:start_unsafe"
FIRST_RESULT = "gramline.pipeline.crossval.run_folder:RunFolder:write_unit"
MODEL_DONE = "gramline.pipeline.models.model:Model:save"
KEPT = "gramline: error: stopped; finished work is kept, the same command goes on where it was\n"


def _install_sigterm_handler() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def terminated(place: str, *arguments: str | Path) -> tuple[int, str]:
    """Exit code and stderr of a command that was ended at `place`."""
    return ended(PROGRAM, place, *arguments)


def ended(program: str, *arguments: str | Path) -> tuple[int, str]:
    """Exit code and stderr of a program that ends itself; none of its processes outlives it."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_install_sigterm_handler,
    )
    _, err = process.communicate()
    while _is_alive(process.pid):
        time.sleep(0.05)  # the time limit of the test is the only one
    return process.returncode, err


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("where", [["--inline"], ["--workers", "1"]], ids=["inline", "cluster"])
def test_a_build_keeps_its_tiles_and_goes_on(gramline: Any, corpus: Path, tmp_path: Path, where: list[str]) -> None:
    build = ["gram", "build", corpus, "-o", tmp_path / "x.zarr", "--block-rows", "5", "--c", "0.5"]
    assert terminated(FIRST_TILE, *build, *where) == (143, KEPT)
    check_going_on(gramline, build, tmp_path)


def test_workers_that_hear_it_too_finish_their_tile(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    build = ["gram", "build", corpus, "-o", tmp_path / "x.zarr", "--block-rows", "5", "--c", "0.5"]
    assert ended(GROUP_PROGRAM, *build, "--workers", "1") == (143, KEPT)
    check_going_on(gramline, build, tmp_path)


def check_going_on(gramline: Any, build: list[Any], tmp_path: Path) -> None:
    """A build that was stopped has left finished tiles and nothing else, and the same command uses them."""
    assert not list(tmp_path.rglob("*.partial*"))
    present = gramline("gram", "status", tmp_path / "x.zarr", "--json").json["n_present"]
    assert present >= 1
    again = gramline(*build, "--inline", "--json").json
    assert (again["reused"], again["computed"] + again["reused"]) == (present, again["n_tiles"])
    assert gramline("gram", "verify", tmp_path / "x.zarr", "--inline").code == 0


def test_a_cluster_that_only_begins_is_ended_as_well(corpus: Path, tmp_path: Path) -> None:
    build = ["gram", "build", corpus, "-o", tmp_path / "x.zarr", "--workers", "1"]
    assert terminated(WORKER_STARTS, *build) == (143, KEPT)
    assert [path.name for path in tmp_path.iterdir()] == [corpus.name]


def test_a_fit_leaves_no_model_behind(gram: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, err = terminated(MODEL_DONE, "fit", gram, "-o", tmp_path / "model.zarr")
    assert code == 143
    assert err == (
        "gramline: error: stopped; no model was written, the Gram matrix is kept; the same command trains again\n"
    )
    assert sorted(tmp_path.iterdir()) == before


def test_a_cross_validation_goes_on(gramline: Any, gram: Path, tmp_path: Path) -> None:
    cv = ["cv", gram, "--folds", "2", "-o", tmp_path / "cv.run"]
    assert terminated(FIRST_RESULT, *cv, "--inline") == (143, KEPT)
    assert not list(tmp_path.rglob("*.partial*"))
    assert gramline(*cv, "--inline").code == 0


def test_ctrl_c_and_sigterm_say_the_same_with_their_own_codes() -> None:
    with pytest.raises(KeyboardInterrupt) as stop, when_stopped("nothing was written"):
        raise KeyboardInterrupt
    failures = [to_failure(error) for error in (KeyboardInterrupt(), Terminated(), stop.value)]
    assert [failure and failure.code for failure in failures] == [130, 143, 130]
    assert failures[0] is not None
    assert failures[1] is not None
    assert failures[0].line == failures[1].line
    assert failures[2] is not None
    assert failures[2].line == "stopped; nothing was written"


def test_an_experiment_says_that_it_begins_again(tmp_path: Path) -> None:
    code, err = terminated(
        "gramline.pipeline.experiments.base:Experiment:run", "reproduce", "zscore-artificial", "--quick", "-o", tmp_path
    )
    assert code == 143
    assert err == (
        "gramline: error: stopped; zscore-artificial was not finished and is not saved; "
        "the same command begins it again\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_keeps_nothing_does_not_promise_to_go_on(gram: Path) -> None:
    code, err = terminated("gramline.pipeline.gram.stored:StoredGram:open", "gram", "status", gram)
    assert code == 143
    assert err == "gramline: error: stopped; nothing half-written is left, the same command begins again\n"
