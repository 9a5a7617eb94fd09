"""Events as JSON lines and as lines with times."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.terminal.event_log import Telling, event_log, say_event
from gramline.pipeline.events import Message, RoundDone, TaskRetried, TileDone, TileReport, WorkerLost

TILE = TileDone(TileReport(0, 3, 0.25, 1.5, 0.0, 800, "host:1"), 2, cells=100)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_event_is_a_line_with_a_time(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with event_log(str(path), "gramline cv") as log:
        with Telling(log).show(as_json=True) as listener:
            listener(TILE)
            listener(TaskRetried("compute_tile-0-3", "OSError: gone", 1))
            listener(WorkerLost("tcp://127.0.0.1:1", "it ended", 1))
        assert len(lines(path)) == 4  # each at once, not when the file is closed
    told = lines(path)
    assert [one["event"] for one in told] == ["start", "tile", "retry", "worker lost", "done"]
    assert told[0]["command"] == "gramline cv"
    assert (told[1]["i"], told[1]["j"], told[1]["compute_seconds"], told[1]["n_done"]) == (0, 3, 1.5, 2)
    times = [datetime.fromisoformat(one["time"]) for one in told]
    assert times == sorted(times)
    assert told[-1]["seconds"] >= 0


@pytest.mark.parametrize(("error", "name"), [(ValueError("no"), "failed"), (KeyboardInterrupt(), "stopped")])
def test_how_a_command_ended_is_in_the_log(tmp_path: Path, error: BaseException, name: str) -> None:
    path = tmp_path / "events.jsonl"
    for _ in range(2):

        def fail() -> None:
            with event_log(str(path), "gramline fit"):
                raise error

        with pytest.raises(type(error)):
            fail()
    assert [one["event"] for one in lines(path)] == ["start", name] * 2  # a second command goes on below


def test_lines_with_times(capsys: pytest.CaptureFixture[str]) -> None:
    say_event(TILE)
    say_event(RoundDone(2, 7))
    with Telling(is_verbose=True).show(as_json=False) as listener:
        listener(Message("wait"))
    written = capsys.readouterr()
    first, second, third = written.err.splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d tile: i=0 j=3 read_seconds=0.25 .*worker=host:1 n_done=2 cells=100", first)
    assert re.fullmatch(r"\d\d:\d\d:\d\d round: number=2 mistakes=7 what=mistakes", second)
    assert third.endswith("message: text=wait")
    assert written.out == ""
