"""Bars on terminals, lines in logs, silence beside JSON."""

from __future__ import annotations

import io

import pytest

from gramline.pipeline.cli.terminal.progress import Reporter, show_progress
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


def log(clock: Clock | None = None) -> tuple[Reporter, list[str]]:
    lines = list[str]()
    return Reporter(lines.append, clock=clock or Clock()), lines


def test_the_rate_and_the_time_left_are_those_of_tiles_that_need_not_wait_for_a_start() -> None:
    clock = Clock()
    report, lines = log(clock)
    report(STARTED)
    clock.now += 60.0  # starting and compiling: the first tile of each of the two threads
    report(done(1))
    report(done(2))
    assert lines[1:] == ["1 of 6 tiles"]
    clock.now += 4.0
    report(done(3))
    clock.now += 30.0
    report(done(4))
    assert lines[2:] == ["4 of 6 tiles, 4.0/6.0 MB, 33.3 kB/s, 01:00 left"]


def test_large_tiles_count_more() -> None:
    clock = Clock()
    report, lines = log(clock)
    report(BuildStarted("x.zarr", n_tiles=4, n_present=0, tile_bytes=1_000_000, cells=1000, n_threads=1))
    for number, cells in ((1, 100), (2, 100), (3, 400)):
        clock.now += 40.0
        report(TileDone(done(number).report, number, cells))
    assert lines[-1] == "3 of 4 tiles, 2.4/4.0 MB, 40.0 kB/s, 00:40 left"


def test_long_times_show_hours() -> None:
    clock = Clock()
    report, lines = log(clock)
    report(STARTED)
    for number in (1, 2, 3):
        report(done(number))
    clock.now += 3600.0
    report(done(4))
    assert lines[-1].endswith("2:00:00 left")


def test_a_log_gets_a_line_now_and_then() -> None:
    clock = Clock()
    report, lines = log(clock)
    report(STARTED)
    assert lines == ["x.zarr: 6 of 10 tiles to compute on 2 threads"]
    for number in range(1, 7):
        clock.now += 10.0
        report(done(number))
    assert [line[:12] for line in lines[1:]] == ["3 of 6 tiles", "6 of 6 tiles"]
    report(TileFailed(1, 2, "RuntimeError: broken"))
    assert lines[-1] == "tile (1, 2) failed: RuntimeError: broken"


def test_a_log_of_a_job_tells_what_was_solved_and_the_time_left() -> None:
    clock = Clock()
    report, lines = log(clock)
    report(JobStarted(10, 2))
    report(TrainingStarted("zscore", 3))
    clock.now += 10.0
    report(ProblemsSolved(1))  # the first one waits for workers: no measure
    for _ in range(2):
        clock.now += 20.0
        report(ProblemsSolved(1))
    report(TrainingStarted("labeling-perceptron", 5))
    for number in (1, 2):
        clock.now += 20.0
        report(RoundDone(number, 7))
    report(TilesRead(30, 10, 2e9))
    report(ProblemsSolved(5))
    assert lines == [
        "2 of 10 problems were solved before",
        "training zscore: 3 problems (settings x folds)",
        "4 of 10 problems solved, 02:00 left",
        "training labeling-perceptron: 5 problems (settings x folds)",
        "round 2: 7 mistakes in all problems together",
        "10 of 10 problems solved",
    ]
    clock.now += 30.0
    report(TilesRead(30, 10, 2e9))
    report(Message("wait"))
    clock.now += 30.0
    report(SentenceParsed(3, 8))
    reads = "30 tiles read, 3.0 passes over the 10 stored ones, 2.0 GB/s"
    assert lines[6:] == [reads, "wait", "3 of 8 sentences"]


def test_a_log_of_nothing_to_do_is_empty() -> None:
    report, lines = log()
    report(BuildStarted("x.zarr", 10, 10, 1_000_000, 0, 0))
    report(BuildFinished(0, 0.1, 0.0))
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
    assert "1 of 6 tiles" in terminal.getvalue()
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
