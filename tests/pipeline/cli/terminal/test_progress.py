"""Bars on terminals, lines in logs, silence beside JSON."""

from __future__ import annotations

import io

import pytest

from gramline.pipeline.cli.terminal.progress import LogLines, Pace, show_progress
from gramline.pipeline.events import (
    BuildFinished,
    BuildStarted,
    Event,
    JobStarted,
    Message,
    ProblemsSolved,
    RoundDone,
    SentenceParsed,
    TileChecked,
    TileDone,
    TileFailed,
    TileReport,
    TilesRead,
    TrainingStarted,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STARTED = BuildStarted("x.zarr", n_tiles=10, n_present=4, tile_bytes=1_000_000, cells=600, n_threads=2)


def done(number: int) -> TileDone:
    return TileDone(TileReport(0, number, 0.0, 0.1, 0.0, 1_000_000, "host:1"), number, cells=100)


def test_pace_knows_the_rate_and_the_time_left() -> None:
    clock = Clock()
    pace = Pace(STARTED, clock)
    clock.now += 60.0  # starting and compiling: the first tile of each of the two threads
    pace.add(done(1))
    pace.add(done(2))
    assert pace.seconds_left is None
    assert "left" not in pace.line()
    clock.now += 4.0
    pace.add(done(3))
    assert pace.seconds_left == pytest.approx(12.0)
    assert pace.bytes_per_second == pytest.approx(3e6 / 64.0)
    assert pace.line() == "3 of 6 tiles, 3 MB, 0 MB/s, 0:12 left"


def test_long_times_show_hours() -> None:
    clock = Clock()
    pace = Pace(STARTED, clock)
    pace.add(done(1))
    pace.add(done(2))
    clock.now += 3600.0
    pace.add(done(3))
    assert pace.line().endswith("3:00:00 left")


def test_a_log_gets_a_line_now_and_then() -> None:
    clock, lines = Clock(), list[str]()
    log = LogLines(lines.append, every=30.0, clock=clock)
    log(STARTED)
    assert lines == ["x.zarr: 6 of 10 tiles to compute on 2 threads"]
    for number in range(1, 7):
        clock.now += 10.0
        log(done(number))
    assert [line[:12] for line in lines[1:]] == ["3 of 6 tiles", "6 of 6 tiles"]
    log(TileFailed(1, 2, "RuntimeError: broken"))
    assert lines[-1] == "tile (1, 2) failed: RuntimeError: broken"


def test_a_log_of_a_job_tells_what_was_solved_and_the_time_left() -> None:
    clock, lines = Clock(), list[str]()
    log = LogLines(lines.append, every=30.0, clock=clock)
    log(JobStarted(10, 2))
    log(TrainingStarted("zscore", 3))
    clock.now += 10.0
    log(ProblemsSolved(1))  # the first one waits for workers: no measure
    for _ in range(2):
        clock.now += 20.0
        log(ProblemsSolved(1))
    log(TrainingStarted("labeling-perceptron", 5))
    for number in (1, 2):
        clock.now += 20.0
        log(RoundDone(number, 7))
    log(TilesRead(30, 10, 2e9))
    log(ProblemsSolved(5))
    assert lines == [
        "2 of 10 problems were solved before",
        "training zscore: 3 problems (settings x folds)",
        "4 of 10 problems solved, about 120 s left",
        "training labeling-perceptron: 5 problems (settings x folds)",
        "round 2: 7 mistakes in all problems together",
        "10 of 10 problems solved",
    ]
    clock.now += 30.0
    log(TilesRead(30, 10, 2e9))
    log(Message("wait"))
    clock.now += 30.0
    log(SentenceParsed(3, 8))
    reads = "30 tiles read, 3.0 passes over the 10 stored ones, 2.0 GB/s"
    assert lines[6:] == [reads, "wait", "3 of 8 sentences"]


def test_a_log_of_nothing_to_do_is_empty() -> None:
    lines = list[str]()
    log = LogLines(lines.append)
    log(BuildStarted("x.zarr", 10, 10, 1_000_000, 0, 0))
    log(BuildFinished(0, 0.1, 0.0))
    assert lines == []


EVENTS: list[Event] = [
    STARTED,
    done(1),
    TileFailed(0, 3, "OSError: [1, 2]"),
    BuildFinished(1, 1.0, 0.1),
    TileChecked(0, 0, None, 1, 2),
    TileChecked(0, 1, None, 2, 2),
    JobStarted(2, 0),
    TrainingStarted("zscore", 2),
    ProblemsSolved(1),
    TilesRead(30, 10, 2e9),
    ProblemsSolved(1),
    SentenceParsed(1, 1),
]


def test_a_terminal_gets_a_bar() -> None:
    terminal, log = Terminal(), io.StringIO()
    with show_progress(True, terminal, log) as listener:
        for event in EVENTS:
            listener(event)
    assert "1 of 6 tiles, 1 MB" in terminal.getvalue()
    assert "tile (0, 3) failed: OSError: [1, 2]" in terminal.getvalue()
    assert "2 of 2 tiles checked" in terminal.getvalue()
    assert "2 of 2 problems solved" in terminal.getvalue()
    assert "1 of 1 sentences" in terminal.getvalue()
    assert log.getvalue() == ""


def test_a_bar_gives_the_terminal_back_after_an_error() -> None:
    terminal = Terminal()

    def interrupted() -> None:
        with show_progress(True, terminal) as listener:
            listener(STARTED)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")


def test_what_is_no_terminal_gets_lines() -> None:
    screen, log = io.StringIO(), io.StringIO()
    with show_progress(True, screen, log) as listener:
        for event in EVENTS:
            listener(event)
    assert screen.getvalue() == ""
    assert log.getvalue().splitlines()[0] == "x.zarr: 6 of 10 tiles to compute on 2 threads"


def test_unwanted_progress_is_silent() -> None:
    terminal, log = Terminal(), io.StringIO()
    with show_progress(False, terminal, log) as listener:
        for event in EVENTS:
            listener(event)
    assert terminal.getvalue() == log.getvalue() == ""
